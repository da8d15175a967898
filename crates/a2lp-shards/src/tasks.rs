//! Stages that need no conversation: every task reads results of the stage before and leaves its own.
//!
//! ```text
//! Ingest (part) → Centres → Assign (chunk) → [groups] → Gather (block) → Search (block) → Join (block)
//! ```

use crate::error::ShardError;
use crate::job::{Job, names};
use crate::parts::{PartLabels, Parts};
use crate::storage::Storage;
use a2lp::Classes;
use a2lp::blocks::{
    BlockLists, BlockSearch, CHUNK, Edge, Grouping, Neighbour, RowStore, SEGMENT, SentEdge, centre_sample,
    join_edges, label_record_bytes, labels_from_records, merge_nearest, nearest_in, positions_by_group,
    probe_sample, recall_sample, scale_rows, sent_edges,
};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// A piece of work that any worker can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Reads, checks and scales a part; keeps the sampled rows aside.
    Ingest { part: usize },
    /// Finds the centres of the groups.
    Centres,
    /// Puts the rows of a chunk in the order of their groups, and finds those that are nearest to the sampled rows.
    Assign { chunk: usize },
    /// Gives every row its position, and decides how many groups rows look at.
    Group,
    /// Brings the rows of a block together.
    Gather { block: usize, signed: bool },
    /// Finds the neighbours of a block.
    Search { block: usize, signed: bool, probes: usize },
    /// Joins the edges from and to a block.
    Join { block: usize },
    /// Writes the labels of a target part.
    Write { part: usize },
}

/// What a task found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Is any number below zero?
    pub negative: bool,
    /// Rows of zeros, and the first of them.
    pub zeros: usize,
    /// The first row of zeros.
    pub first_zero: Option<usize>,
    /// Groups, and how many of them a row looks at.
    pub groups: usize,
    /// Groups that a row looks at.
    pub probes: usize,
    /// True neighbours found, of those in the sample.
    pub hits: usize,
    /// True neighbours in the sample.
    pub truths: usize,
    /// Bytes of results read and written.
    pub bytes: u64,
}

impl Task {
    /// Where the task notes that it is done.
    pub(crate) fn marker(&self) -> String {
        match self {
            Task::Ingest { part } => names::of("done/ingest", *part),
            Task::Centres => "done/centres".into(),
            Task::Assign { chunk } => names::of("done/assign", *chunk),
            Task::Group => "done/group".into(),
            Task::Gather { block, .. } => names::of("done/gather", *block),
            Task::Search { block, .. } => names::of("done/search", *block),
            Task::Join { block } => names::of("done/join", *block),
            Task::Write { part } => names::of("done/write", *part),
        }
    }
}

/// The rows at all positions, and the positions of all rows.
pub(crate) struct Order {
    pub(crate) rows: Vec<u32>,
    pub(crate) positions: Vec<u32>,
}

/// Does tasks. Memory is bounded by the size of chunks and blocks.
pub(crate) struct TaskRunner {
    pub(crate) job: Arc<Job>,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) parts: Arc<dyn Parts>,
    /// Where temporary files go.
    pub(crate) scratch: Option<PathBuf>,
    order: OnceLock<Arc<Order>>,
    samples: OnceLock<Samples>,
}

/// Numbers of sampled rows, in order of number.
struct Samples {
    centre: Vec<usize>,
    query: Vec<usize>,
}

/// Rows that are compared with everything: those that decide how much is looked at, then those on which the recall is measured.
pub(crate) fn query_rows(rows: usize) -> Vec<usize> {
    let mut queries = probe_sample(rows);
    queries.extend(recall_sample(rows));
    queries
}

impl TaskRunner {
    pub(crate) fn new(
        job: Arc<Job>,
        storage: Arc<dyn Storage>,
        parts: Arc<dyn Parts>,
        scratch: Option<PathBuf>,
    ) -> Self {
        TaskRunner { job, storage, parts, scratch, order: OnceLock::new(), samples: OnceLock::new() }
    }

    /// Does a task and notes that it is done.
    pub(crate) fn run(&self, task: &Task) -> Result<Found, ShardError> {
        let found = match *task {
            Task::Ingest { part } => self.ingest(part)?,
            Task::Centres => self.centres()?,
            Task::Assign { chunk } => self.assign(chunk)?,
            Task::Group => self.group()?,
            Task::Gather { block, signed } => self.gather(block, signed)?,
            Task::Search { block, signed, probes } => self.search(block, signed, probes)?,
            Task::Join { block } => self.join(block)?,
            Task::Write { part } => self.write(part)?,
        };
        self.storage.write(&task.marker(), &[&encode(&found)])?;
        self.tidy(task)?;
        Ok(found)
    }

    /// Removes what only this task needed. The task is done by then: one that is lost earlier finds everything when it begins again.
    fn tidy(&self, task: &Task) -> Result<(), ShardError> {
        let (kinds, chunks): (&[&str], Range<usize>) = match *task {
            Task::Centres => (&["sample"], 0..self.job.chunks()),
            Task::Assign { chunk } => (&["rows"], chunk..chunk + 1),
            Task::Group => (&["groups", "near", "query"], 0..self.job.chunks()),
            _ => return Ok(()),
        };
        for kind in kinds {
            chunks.clone().try_for_each(|chunk| self.storage.remove(&names::of(kind, chunk)))?;
        }
        Ok(())
    }

    pub(crate) fn order(&self) -> Result<Arc<Order>, ShardError> {
        if let Some(order) = self.order.get() {
            return Ok(order.clone());
        }
        let rows: Vec<u32> = self.storage.read_all(names::ORDER)?;
        let mut positions = vec![0u32; rows.len()];
        rows.iter().zip(0..).for_each(|(&row, position)| positions[row as usize] = position);
        Ok(self.order.get_or_init(|| Arc::new(Order { rows, positions })).clone())
    }

    fn samples(&self) -> &Samples {
        self.samples.get_or_init(|| {
            let sorted = |mut rows: Vec<usize>| {
                rows.sort_unstable();
                rows.dedup();
                rows
            };
            let rows = self.job.rows();
            Samples {
                centre: sorted(centre_sample(rows, self.job.settings.seed)),
                query: sorted(query_rows(rows)),
            }
        })
    }

    fn ingest(&self, part: usize) -> Result<Found, ShardError> {
        let Job { columns, chunk_rows, settings, .. } = &*self.job;
        let (rows, chunks) = (self.job.part(part), self.job.chunks_of(part));
        let mut found = Found::default();
        let mut waiting: Vec<f32> = Vec::with_capacity(chunk_rows.min(&rows.len()) * columns);
        let mut chunk = chunks.start;
        let mut first = rows.start;
        let mut keep = |values: &mut Vec<f32>, first: &mut usize| -> Result<(), ShardError> {
            for (row, values) in (*first..).zip(values.chunks_exact(*columns)) {
                if let Some(column) = values.iter().position(|value| !value.is_finite()) {
                    return Err(self.job.not_finite(row, column, values[column]).into());
                }
                found.negative |= values.iter().any(|&value| value < 0.0);
                if values.iter().all(|&value| value == 0.0) {
                    found.zeros += 1;
                    found.first_zero.get_or_insert(row);
                }
            }
            scale_rows(values, *columns, settings.similarity);
            let range = *first..*first + values.len() / columns;
            for (kind, sample) in [("sample", &self.samples().centre), ("query", &self.samples().query)] {
                let picked = within(sample, &range);
                let rows: Vec<f32> = picked
                    .iter()
                    .flat_map(|row| row_of(values, row - range.start, *columns))
                    .copied()
                    .collect();
                self.storage.write(&names::of(kind, chunk), &[bytemuck::cast_slice(&rows)])?;
            }
            self.storage.write(&names::of("rows", chunk), &[bytemuck::cast_slice(values)])?;
            found.bytes += 4 * values.len() as u64;
            *first = range.end;
            chunk += 1;
            values.clear();
            Ok(())
        };
        let most = chunk_rows * columns;
        self.parts.read(part, &mut |mut values| {
            while waiting.len() + values.len() >= most {
                let (now, later) = values.split_at(most - waiting.len());
                waiting.extend_from_slice(now);
                values = later;
                keep(&mut waiting, &mut first)?;
            }
            waiting.extend_from_slice(values);
            Ok(())
        })?;
        if !waiting.is_empty() {
            keep(&mut waiting, &mut first)?;
        }
        if first != rows.end {
            return Err(ShardError::Broken(format!(
                "part {part} of the input has {} rows where it had {}; files must not change during a run",
                first - rows.start,
                rows.len()
            )));
        }
        Ok(found)
    }

    /// The rows that were kept aside, in the order of these numbers, held once: there may be many.
    fn picked(&self, kind: &str, wanted: &[usize]) -> Result<Vec<f32>, ShardError> {
        let columns = self.job.columns;
        let mut places: Vec<(usize, usize)> = wanted.iter().copied().zip(0..).collect();
        places.sort_unstable();
        let mut same = places.chunk_by(|a, b| a.0 == b.0);
        let mut rows = vec![0f32; wanted.len() * columns];
        for chunk in 0..self.job.chunks() {
            let picked: Vec<f32> = self.storage.read_all(&names::of(kind, chunk))?;
            for (row, places) in picked.chunks_exact(columns).zip(&mut same) {
                for (_, at) in places {
                    rows[at * columns..][..columns].copy_from_slice(row);
                }
            }
        }
        Ok(rows)
    }

    /// The sampled rows that are compared with everything.
    pub(crate) fn queries(&self) -> Result<Vec<f32>, ShardError> {
        self.picked("query", &query_rows(self.job.rows()))
    }

    fn centres(&self) -> Result<Found, ShardError> {
        let Job { columns, settings, .. } = &*self.job;
        let rows = self.job.rows();
        let sample = self.picked("sample", &centre_sample(rows, settings.seed))?;
        let count = a2lp::blocks::group_count(rows);
        let grouping = Grouping::find(sample, *columns, settings.similarity, count);
        self.storage.write(names::CENTRES, &[bytemuck::cast_slice(grouping.vectors())])?;
        Ok(Found::default())
    }

    pub(crate) fn grouping(&self) -> Result<Grouping, ShardError> {
        let vectors = self.storage.read_all(names::CENTRES)?;
        Ok(Grouping::from_vectors(vectors, self.job.columns, self.job.settings.similarity))
    }

    fn assign(&self, chunk: usize) -> Result<Found, ShardError> {
        let Job { columns, settings, .. } = &*self.job;
        let first = self.job.chunk_rows()[chunk].start;
        let rows: Vec<f32> = self.storage.read_all(&names::of("rows", chunk))?;
        let groups = self.grouping()?.assign(&rows);
        let mut order: Vec<u32> = (0..groups.len() as u32).collect();
        order.sort_by_key(|&row| groups[row as usize]);
        let queries = query_rows(self.job.rows());
        let nearest =
            nearest_in(&rows, *columns, first, &self.queries()?, &queries, self.job.k(), settings.similarity);
        let nearest: Vec<Vec<u64>> =
            nearest.iter().map(|list| list.iter().map(|neighbour| neighbour.to_bits()).collect()).collect();
        self.storage.write(&names::of("near", chunk), &[&encode(&nearest)])?;
        self.storage.write(&names::of("groups", chunk), &[bytemuck::cast_slice(&groups)])?;
        let sorted: Vec<f32> =
            order.iter().flat_map(|&row| row_of(&rows, row as usize, *columns)).copied().collect();
        self.storage.write(&names::of("run", chunk), &[bytemuck::cast_slice(&sorted)])?;
        Ok(Found { bytes: 8 * rows.len() as u64, ..Found::default() })
    }

    fn group(&self) -> Result<Found, ShardError> {
        let (rows, k) = (self.job.rows(), self.job.k());
        let chunks = self.job.chunk_rows();
        let mut groups: Vec<u32> = Vec::with_capacity(rows);
        let mut truth: Vec<Vec<Neighbour>> = vec![Vec::new(); query_rows(rows).len()];
        for chunk in 0..chunks.len() {
            groups.extend(self.storage.read_all::<u32>(&names::of("groups", chunk))?);
            let near: Vec<Vec<u64>> = decode(&self.storage.read_all::<u8>(&names::of("near", chunk))?)?;
            for (all, near) in truth.iter_mut().zip(near) {
                let near = near.into_iter().map(Neighbour::from_bits);
                *all = merge_nearest(std::mem::take(all).into_iter().chain(near), k);
            }
        }
        let grouping = self.grouping()?;
        let mut sample = self.queries()?;
        let numbers = probe_sample(rows);
        sample.truncate(numbers.len() * self.job.columns);
        let home = |row: u32| groups[row as usize];
        let probes = grouping.probes(sample, &numbers, &truth[..numbers.len()], home);
        let (order, starts) = positions_by_group(&groups, grouping.groups());
        drop(groups);

        // Rows of every chunk that stand before each block.
        let blocks = self.job.blocks();
        let mut bounds = vec![0u32; chunks.len() * (blocks + 1)];
        for (position, &number) in order.iter().enumerate() {
            let chunk = chunks.partition_point(|rows| rows.end <= number as usize);
            bounds[chunk * (blocks + 1) + position / self.job.block_rows + 1] += 1;
        }
        for bounds in bounds.chunks_exact_mut(blocks + 1) {
            for block in 0..blocks {
                bounds[block + 1] += bounds[block];
            }
        }
        let truth: Vec<Vec<u64>> =
            truth.iter().map(|list| list.iter().map(|neighbour| neighbour.to_bits()).collect()).collect();
        let starts: Vec<u64> = starts.into_iter().map(|start| start as u64).collect();
        self.storage.write(names::TRUTH, &[&encode(&truth)])?;
        self.storage.write(names::BOUNDS, &[bytemuck::cast_slice(&bounds)])?;
        self.storage.write(names::STARTS, &[bytemuck::cast_slice(&starts)])?;
        self.storage.write(names::ORDER, &[bytemuck::cast_slice(&order)])?;
        Ok(Found { groups: grouping.groups(), probes, ..Found::default() })
    }

    fn gather(&self, block: usize, signed: bool) -> Result<Found, ShardError> {
        let columns = self.job.columns;
        let positions = self.job.block(block);
        let numbers: Vec<u32> = self.storage.read(names::ORDER, positions.start, positions.len())?;
        let chunks = self.job.chunk_rows();
        // Where the rows of this block stand in every chunk.
        let bounds: Vec<u32> = self.storage.read_all(names::BOUNDS)?;
        let blocks = self.job.blocks();
        let mut piles: Vec<std::vec::IntoIter<f32>> = Vec::with_capacity(chunks.len());
        for chunk in 0..chunks.len() {
            let [start, end] = [block, block + 1].map(|at| bounds[chunk * (blocks + 1) + at] as usize);
            let rows =
                self.storage.read(&names::of("run", chunk), start * columns, (end - start) * columns)?;
            piles.push(rows.into_iter());
        }
        let mut rows: Vec<f32> = Vec::with_capacity(numbers.len() * columns);
        for &number in &numbers {
            let chunk = chunks.partition_point(|rows| rows.end <= number as usize);
            rows.extend(piles[chunk].by_ref().take(columns));
        }
        drop(piles);
        self.storage.write(&names::of("features", block), &[bytemuck::cast_slice(&rows)])?;
        let bytes = 8 * rows.len() as u64;
        let records = self.job.six_bits(signed).records(rows);
        self.storage.write(&names::of("bits", block), &[&records])?;
        Ok(Found { bytes: bytes + records.len() as u64, ..Found::default() })
    }

    fn search(&self, block: usize, signed: bool, probes: usize) -> Result<Found, ShardError> {
        let own = self.job.block(block);
        let order = self.order()?;
        let grouping = self.grouping()?;
        let starts: Vec<u64> = self.storage.read_all(names::STARTS)?;
        let starts: Vec<usize> = starts.into_iter().map(|start| start as usize).collect();
        let six_bits = self.job.six_bits(signed);
        let (k, row_bytes) = (self.job.k(), 4 * self.job.columns);
        let piece = (PIECE_BYTES / row_bytes).clamp(CHUNK / 2, SEGMENT);
        let batch = (PIECE_BYTES / (row_bytes * 2 * k.max(16))).clamp(16, piece);
        let search = BlockSearch { grouping: &grouping, starts: &starts, probes, k, six_bits, batch };
        let store = StoredRows { runner: self, order: &order, record: six_bits.record_bytes() };
        let lists = search.find(&store, own.clone(), piece)?;
        let found = self.measure(&lists, &own, &order)?;

        let position = |number: u32| order.positions[number as usize] as usize;
        let sent = sent_edges(&lists, own.start, position, self.job.settings.similarity);
        let bound =
            |block: usize| sent.partition_point(|edge| (edge.to as usize) < block * self.job.block_rows);
        let bounds: Vec<u32> = (0..=self.job.blocks()).map(|block| bound(block) as u32).collect();
        let packed: Vec<[u32; 4]> =
            sent.iter().map(|e| [e.to, e.from, e.weight.to_bits(), u32::from(e.rank)]).collect();
        self.storage.write(&names::of("sent", block), &[bytemuck::cast_slice(&packed)])?;
        self.storage.write(&names::of("sent-bounds", block), &[bytemuck::cast_slice(&bounds)])?;
        write_lists(&*self.storage, &names::of("lists", block), &lists, k)?;
        Ok(Found { bytes: 16 * packed.len() as u64 + 8 * (k * lists.rows()) as u64, ..found })
    }

    /// How many of the true neighbours of sampled rows the lists have.
    fn measure(&self, lists: &BlockLists, own: &Range<usize>, order: &Order) -> Result<Found, ShardError> {
        let truth: Vec<Vec<u64>> = decode(&self.storage.read_all::<u8>(names::TRUTH)?)?;
        let rows = self.job.rows();
        let mut found = Found::default();
        for (number, truth) in recall_sample(rows).into_iter().zip(&truth[probe_sample(rows).len()..]) {
            let position = order.positions[number] as usize;
            if own.contains(&position) {
                let listed: Vec<Neighbour> = lists.of(position - own.start).collect();
                found.truths += truth.len();
                found.hits +=
                    truth.iter().filter(|&&bits| listed.contains(&Neighbour::from_bits(bits))).count();
            }
        }
        Ok(found)
    }

    fn sent(&self, from: usize, to: usize) -> Result<Vec<SentEdge>, ShardError> {
        let bounds: Vec<u32> = self.storage.read(&names::of("sent-bounds", from), to, 2)?;
        let count = (bounds[1] - bounds[0]) as usize;
        let packed: Vec<[u32; 4]> = self.storage.read(&names::of("sent", from), bounds[0] as usize, count)?;
        let edge = |[to, from, weight, rank]: [u32; 4]| SentEdge {
            to,
            from,
            weight: f32::from_bits(weight),
            rank: rank as u16,
        };
        Ok(packed.into_iter().map(edge).collect())
    }

    fn join(&self, block: usize) -> Result<Found, ShardError> {
        let (positions, blocks) = (self.job.block(block), self.job.blocks());
        let (mut own, mut incoming) = (Vec::new(), Vec::new());
        for other in 0..blocks {
            own.extend(self.sent(block, other)?);
            incoming.extend(self.sent(other, block)?);
        }
        let (ends, edges) = join_edges(positions.start, positions.len(), &own, &incoming);
        let packed: Vec<[u32; 3]> = edges
            .iter()
            .map(|e| [e.column, e.weight.to_bits(), u32::from(e.rank) | u32::from(e.rank_back) << 16])
            .collect();
        self.storage.write(&names::of("edges", block), &[bytemuck::cast_slice(&packed)])?;
        self.storage.write(&names::of("edge-ends", block), &[bytemuck::cast_slice(&ends)])?;
        Ok(Found {
            bytes: 16 * (own.len() + incoming.len()) as u64 + 12 * edges.len() as u64,
            ..Found::default()
        })
    }

    /// The joined edges of a block: where those of each row end, and all of them.
    pub(crate) fn edges(&self, block: usize) -> Result<(Vec<u32>, Vec<Edge>), ShardError> {
        let ends = self.storage.read_all(&names::of("edge-ends", block))?;
        let packed: Vec<[u32; 3]> = self.storage.read_all(&names::of("edges", block))?;
        let edge = |[column, weight, ranks]: [u32; 3]| Edge {
            column,
            weight: f32::from_bits(weight),
            rank: ranks as u16,
            rank_back: (ranks >> 16) as u16,
        };
        Ok((ends, packed.into_iter().map(edge).collect()))
    }

    fn write(&self, part: usize) -> Result<Found, ShardError> {
        let classes = Classes::new(self.job.classes.clone())?;
        let rows = self.job.part(part);
        let source_rows = self.job.source_rows();
        let bytes = label_record_bytes(classes.len());
        let mut records: Vec<u8> = vec![0; rows.len() * bytes];
        for block in 0..self.job.blocks() {
            // Results of a block are sorted by row; those of a part stand together.
            let all: Vec<u32> = self.storage.read_all(&names::of("result-rows", block))?;
            let bound = |row: usize| all.partition_point(|&other| (other as usize) < row);
            let range = bound(rows.start)..bound(rows.end);
            let found: Vec<u8> =
                self.storage.read(&names::of("result", block), range.start * bytes, range.len() * bytes)?;
            for (&number, record) in all[range].iter().zip(found.chunks_exact(bytes)) {
                records[(number as usize - rows.start) * bytes..][..bytes].copy_from_slice(record);
            }
        }
        let labels = labels_from_records(&records, classes.len());
        let first = rows.start - source_rows;
        let probabilities = self.job.probabilities;
        self.parts.write(part, &PartLabels { classes: &classes, labels: &labels, first, probabilities })?;
        Ok(Found::default())
    }
}

/// Bytes of full rows that a thread holds at a time while it searches.
const PIECE_BYTES: usize = 16 << 20;

/// The numbers within a range, of sorted ones.
fn within<'a>(sorted: &'a [usize], range: &Range<usize>) -> &'a [usize] {
    &sorted[sorted.partition_point(|row| *row < range.start)..sorted.partition_point(|row| *row < range.end)]
}

fn row_of(values: &[f32], row: usize, columns: usize) -> &[f32] {
    &values[row * columns..][..columns]
}

/// Writes lists, `k` slots each.
pub(crate) fn write_lists(
    storage: &dyn Storage,
    name: &str,
    lists: &BlockLists,
    k: usize,
) -> Result<(), ShardError> {
    let mut slots = vec![0u64; lists.rows() * k];
    for (row, slots) in slots.chunks_exact_mut(k.max(1)).enumerate() {
        slots.iter_mut().zip(lists.of(row)).for_each(|(slot, neighbour)| *slot = neighbour.to_bits());
    }
    storage.write(name, &[bytemuck::cast_slice(&slots)])
}

/// Reads them again.
pub(crate) fn read_lists(storage: &dyn Storage, name: &str, k: usize) -> Result<BlockLists, ShardError> {
    let slots: Vec<u64> = storage.read_all(name)?;
    let lengths: Vec<u32> = slots
        .chunks_exact(k.max(1))
        .map(|slots| slots.iter().take_while(|&&slot| slot != 0).count() as u32)
        .collect();
    let taken: Vec<u64> = slots.into_iter().filter(|&slot| slot != 0).collect();
    BlockLists::from_parts(&lengths, &taken, k)
        .ok_or_else(|| ShardError::storage(name, "it is damaged; remove the work folder and start again"))
}

/// Messages and small results as bytes.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap_or_default()
}

/// From those bytes.
pub(crate) fn decode<T: for<'d> Deserialize<'d>>(bytes: &[u8]) -> Result<T, ShardError> {
    postcard::from_bytes(bytes)
        .map_err(|error| ShardError::Broken(format!("a message cannot be read: {error}")))
}

/// Rows in the storage, by position.
struct StoredRows<'a> {
    runner: &'a TaskRunner,
    order: &'a Order,
    /// Bytes of a six-bit record.
    record: usize,
}

impl StoredRows<'_> {
    /// Calls `read(block, first row there, rows)` for the parts of a stretch of positions.
    fn by_block(
        &self,
        positions: Range<usize>,
        mut read: impl FnMut(usize, usize, usize) -> Result<(), ShardError>,
    ) -> Result<(), ShardError> {
        let block_rows = self.runner.job.block_rows;
        let mut at = positions.start;
        while at < positions.end {
            let block = at / block_rows;
            let end = positions.end.min((block + 1) * block_rows);
            read(block, at - block * block_rows, end - at)?;
            at = end;
        }
        Ok(())
    }
}

impl RowStore for StoredRows<'_> {
    type Failure = ShardError;

    fn number(&self, position: usize) -> u32 {
        self.order.rows[position]
    }

    fn position(&self, number: u32) -> usize {
        self.order.positions[number as usize] as usize
    }

    fn features(&self, positions: &[usize]) -> Result<Vec<f32>, ShardError> {
        let columns = self.runner.job.columns;
        let mut values = vec![0f32; positions.len() * columns];
        let mut rest = &mut values[..];
        // Rows that follow each other are read at once.
        for stretch in positions.chunk_by(|a, b| a + 1 == *b) {
            self.by_block(stretch[0]..stretch[0] + stretch.len(), |block, first, rows| {
                let (now, later) = std::mem::take(&mut rest).split_at_mut(rows * columns);
                rest = later;
                let offset = (4 * first * columns) as u64;
                let name = names::of("features", block);
                self.runner.storage.read_into(&name, offset, bytemuck::cast_slice_mut(now))
            })?;
        }
        Ok(values)
    }

    fn records(&self, positions: Range<usize>) -> Result<Vec<u8>, ShardError> {
        let mut records = vec![0u8; positions.len() * self.record];
        let mut rest = &mut records[..];
        self.by_block(positions, |block, first, rows| {
            let (now, later) = std::mem::take(&mut rest).split_at_mut(rows * self.record);
            rest = later;
            let name = names::of("bits", block);
            self.runner.storage.read_into(&name, (first * self.record) as u64, now)
        })?;
        Ok(records)
    }
}
