//! A worker during the rounds: its blocks, and the rows of others that it needs. One step after the other; between two steps,
//! workers exchange parcels.

use crate::error::ShardError;
use crate::job::names;
use crate::panel::{Panel, Vectors};
use crate::shelf::{Room, Shelf};
use crate::tasks::{TaskRunner, read_lists, write_lists};
use a2lp::blocks::{
    self, ClassSum, Matrix, Neighbour, any_unsettled, label_records, mark_low_confidence, read_labels,
};
use a2lp::{PseudoLabels, Status};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What the driver asks of every worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Step {
    /// Takes over blocks. Sends the positions of rows that it needs of others.
    Open { workers: usize, worker: usize, width: usize, memory: usize },
    /// Notes whom it has to send what.
    Subscribe,
    /// Goes back to the end of a round; 0 is the start, where F is Y, whose values are `entries`. Sends how many neighbours of its
    /// rows are left.
    Restore { round: usize, entries: Vec<f32> },
    /// Makes A + Aᵀ. `listed` are the rows that anchors list. Sends row sums.
    Weigh { anchors: usize, listed: Vec<(u32, u32, f32)> },
    /// Makes S, from the row sums of the anchors. Sends what labels reach.
    Normalise { degrees: Vec<f64> },
    /// Lets labels reach further. Sends what they reach.
    Spread,
    /// Begins to solve for a panel of classes. `anchors` is F of the anchors, `entries` the values of Y. Sends x.
    Begin { first: usize, count: usize, anchors: Vec<f32>, entries: Vec<f32> },
    /// Makes the first residual. Sends p.
    Residual,
    /// q = (I − αS)p.
    Multiply { anchors: Vec<f32> },
    /// r ← r − step·q.
    Descend { step: Vec<f32> },
    /// x ← x + step·p, p ← r + keep·p. Sends p.
    Advance { step: Vec<f32>, keep: Vec<f32> },
    /// Puts x into F.
    Finish,
    /// Is any reached row of F below this?
    Unsettled { least: f64 },
    /// Reads labels from F.
    Read { error: f32, candidates: Vec<bool> },
    /// Adds up the items of every class.
    Sum { trusted: Vec<bool> },
    /// Takes new anchors into the lists, and keeps the state of the round.
    Insert { round: usize, anchors: Vec<f32>, first: u32, replaces: bool },
    /// Keeps F of the last round.
    Results { error: f32, candidates: Vec<bool> },
}

/// What a worker answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Sums over chunks, one after the other, for the classes of the panel.
    pub sums: Vec<f64>,
    /// What segments add to the rows of anchors: segment after segment, anchor after anchor.
    pub to_anchors: Vec<f32>,
    /// Row sums of the anchors, segment after segment.
    pub degrees: Vec<f64>,
    /// A row whose sum is not finite.
    pub overflow: Option<u32>,
    /// Something is not settled, or has changed.
    pub more: bool,
    /// What was read from F.
    pub read: ReadLabels,
    /// Sums of items, segment after segment.
    pub class_sums: Vec<Vec<ClassSum>>,
    /// The rows that are nearest to each new anchor.
    pub nearest: Vec<Vec<u64>>,
    /// Bytes that other workers are sent.
    pub sent_bytes: u64,
    /// Most bytes of memory that the process has held, if the system tells.
    pub peak_bytes: u64,
}

/// Figures of a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReadLabels {
    /// Items of every class.
    pub counts: Vec<u64>,
    /// Classes of which an item has some weight.
    pub trusted: Vec<bool>,
    /// Items whose label is not that of the round before.
    pub changed: u64,
    /// Items that no label reaches.
    pub unreached: u64,
    /// Items whose scores are within the solver's error.
    pub weak: u64,
    /// Items below the minimum confidence.
    pub low_confidence: u64,
    /// Sums of the confidences, block after block.
    pub confidence: Vec<f64>,
}

/// Works on the labels of a block: its number, the labels, and the rows that they belong to.
type OnLabels<'a> = &'a mut dyn FnMut(&mut State, usize, PseudoLabels, Vec<u32>) -> Result<(), ShardError>;

/// Bytes for every worker.
pub(crate) type Parcels = Vec<Vec<u8>>;

/// The state of a worker.
pub(crate) struct State {
    workers: usize,
    worker: usize,
    blocks: Range<usize>,
    /// Positions of all blocks.
    own: Range<usize>,
    /// Positions of the rows of others that are needed, ascending.
    halo: Vec<u32>,
    /// Rows that each worker is sent, counted from the first own one.
    sent: Vec<Vec<u32>>,
    /// Classes of a panel.
    width: usize,
    /// The round whose lists are in force; 0 is the start.
    round: usize,
    /// The numbers of the own rows, and the classes of those that are of the source.
    numbers: Vec<u32>,
    labels: Vec<u32>,
    /// Neighbours that are left in the lists of the own rows, then of the halo.
    kept: Vec<u16>,
    degrees: Vec<f64>,
    halo_degrees: Vec<f64>,
    anchors: usize,
    /// S of every block.
    matrices: Vec<Shelf<Matrix>>,
    /// The entries of S between the rows of every block and the anchors: for every segment, a row per anchor.
    to_anchors: Vec<Shelf<Matrix>>,
    /// Own rows, then halo.
    reached: Vec<bool>,
    /// F of every block.
    scores: Vec<Shelf<Vec<f32>>>,
    /// The labels of the own target items in the round before.
    before: Vec<u32>,
    /// The error bound and the candidate classes of the last reading.
    error: f32,
    candidates: Vec<bool>,
    panel: Option<Box<dyn Panel>>,
    room: Room,
}

/// No class.
const NONE: u32 = u32::MAX;

impl State {
    /// Numbers of own rows and of rows of others.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        (self.own.len(), self.halo.len())
    }

    /// S of every block, and its entries of the anchors.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (&Shelf<Matrix>, &Shelf<Matrix>)> {
        self.matrices.iter().zip(&self.to_anchors)
    }

    /// F of every block.
    pub(crate) fn scores(&self) -> &[Shelf<Vec<f32>>] {
        &self.scores
    }

    /// Changes F of every block.
    pub(crate) fn change_scores(&mut self, change: &mut dyn FnMut(&mut [f32])) -> Result<(), ShardError> {
        for at in 0..self.scores.len() {
            let mut scores = self.scores[at].take()?;
            change(&mut scores);
            self.scores[at] = self.room.shelve(scores)?;
        }
        Ok(())
    }

    /// The classes of the own rows; rows without one have a number that no class has.
    pub(crate) fn labels(&self) -> &[u32] {
        &self.labels
    }

    pub(crate) fn open(runner: &TaskRunner, step: &Step) -> Result<(State, Answer, Parcels), ShardError> {
        let Step::Open { workers, worker, width, memory } = *step else {
            return Err(ShardError::Broken("a worker must be opened first".into()));
        };
        let job = &*runner.job;
        let blocks = job.blocks_of(worker, workers);
        let own = match blocks.is_empty() {
            true => 0..0,
            false => job.block(blocks.start).start..job.block(blocks.end - 1).end,
        };
        let mut halo: Vec<u32> = Vec::new();
        for block in blocks.clone() {
            let (_, edges) = runner.edges(block)?;
            halo.extend(
                edges.iter().map(|edge| edge.column).filter(|&column| !own.contains(&(column as usize))),
            );
            halo.sort_unstable();
            halo.dedup();
        }
        let order = runner.order()?;
        let numbers: Vec<u32> = order.rows[own.clone()].to_vec();
        let all: Vec<u32> = runner.storage.read_all(names::LABELS)?;
        let labels =
            numbers.iter().map(|&number| all.get(number as usize).copied().unwrap_or(NONE)).collect();
        let targets = numbers.iter().filter(|&&number| number as usize >= job.source_rows()).count();
        let state = State {
            workers,
            worker,
            sent: vec![Vec::new(); workers],
            width,
            round: 0,
            numbers,
            labels,
            kept: Vec::new(),
            degrees: Vec::new(),
            halo_degrees: Vec::new(),
            anchors: 0,
            matrices: Vec::new(),
            to_anchors: Vec::new(),
            reached: Vec::new(),
            scores: Vec::new(),
            before: vec![NONE; targets],
            error: 0.0,
            candidates: Vec::new(),
            panel: None,
            room: Room::new(runner.scratch.as_deref(), memory)?,
            blocks,
            own,
            halo,
        };
        // Everyone is told which of their rows are needed here.
        let asked = (0..workers)
            .map(|other| {
                let rows = job.blocks_of(other, workers);
                let positions = rows.start * job.block_rows..rows.end * job.block_rows;
                bytemuck::cast_slice(state.halo_within(&positions)).to_vec()
            })
            .collect();
        Ok((state, Answer::default(), asked))
    }

    /// The halo rows at these positions.
    fn halo_within(&self, positions: &Range<usize>) -> &[u32] {
        let bound = |position: usize| self.halo.partition_point(|&other| (other as usize) < position);
        &self.halo[bound(positions.start)..bound(positions.end)]
    }

    /// Takes a step. `parcels` are what the other workers have sent in the step before.
    pub(crate) fn step(
        &mut self,
        runner: &TaskRunner,
        step: &Step,
        parcels: &[&[u8]],
    ) -> Result<(Answer, Parcels), ShardError> {
        let mut answer = Answer::default();
        let mut sent = Parcels::new();
        match step {
            Step::Open { .. } => return Err(ShardError::Broken("a worker is opened once".into())),
            Step::Subscribe => {
                for (other, parcel) in parcels.iter().enumerate() {
                    let rows: Vec<u32> = bytemuck::allocation::pod_collect_to_vec(parcel);
                    self.sent[other] = rows.iter().map(|&row| row - self.own.start as u32).collect();
                }
            }
            Step::Restore { round, entries } => sent = self.restore(runner, *round, entries)?,
            Step::Weigh { anchors, listed } => {
                let halo: Vec<u16> = self.received(parcels)?;
                self.kept.truncate(self.own.len());
                self.kept.extend(halo);
                answer.degrees = self.weigh(runner, *anchors, listed)?;
                answer.overflow = self.overflow();
                sent = self.parcels(&self.degrees);
            }
            Step::Normalise { degrees } => {
                self.halo_degrees = self.received(parcels)?;
                self.normalise(runner, degrees)?;
                answer.more = self.spread(runner)?;
                sent = self.reached_parcels();
            }
            Step::Spread => {
                let halo: Vec<u8> = self.received(parcels)?;
                let own = self.own.len();
                for (reached, halo) in self.reached[own..].iter_mut().zip(halo) {
                    *reached |= halo != 0;
                }
                answer.more = self.spread(runner)?;
                sent = self.reached_parcels();
            }
            Step::Begin { first, count, anchors, entries } => {
                let classes = *first..first + count;
                let alpha = runner.job.settings.alpha as f32;
                let mut panel: Box<dyn Panel> = match self.width {
                    4 => Box::new(Vectors::<4>::new(alpha)),
                    8 => Box::new(Vectors::<8>::new(alpha)),
                    12 => Box::new(Vectors::<12>::new(alpha)),
                    _ => Box::new(Vectors::<16>::new(alpha)),
                };
                panel.begin(self, classes, runner.job.classes.len(), anchors, entries)?;
                sent = self.parcels_of_panel(&*panel);
                self.panel = Some(panel);
            }
            Step::Residual => {
                let mut panel = self.take_panel()?;
                panel.receive(self, parcels)?;
                panel.residual(self, &mut answer)?;
                sent = self.parcels_of_panel(&*panel);
                self.panel = Some(panel);
            }
            Step::Multiply { anchors } => {
                let mut panel = self.take_panel()?;
                panel.receive(self, parcels)?;
                panel.multiply(self, anchors, &mut answer)?;
                self.panel = Some(panel);
            }
            Step::Descend { step } => {
                let mut panel = self.take_panel()?;
                answer.sums = panel.descend(step);
                self.panel = Some(panel);
            }
            Step::Advance { step, keep } => {
                let mut panel = self.take_panel()?;
                panel.advance(step, keep);
                sent = self.parcels_of_panel(&*panel);
                self.panel = Some(panel);
            }
            Step::Finish => {
                let panel = self.take_panel()?;
                panel.finish(self, runner.job.classes.len())?;
            }
            Step::Unsettled { least } => {
                let classes = runner.job.classes.len();
                for (at, rows) in self.rows_of_blocks(runner).into_iter().enumerate() {
                    let scores = self.scores[at].get()?;
                    answer.more |= any_unsettled(&scores, classes, &self.reached[rows], *least);
                }
            }
            Step::Read { error, candidates } => answer.read = self.read(runner, *error, candidates)?,
            Step::Sum { trusted } => answer.class_sums = self.sum(runner, trusted)?,
            Step::Insert { round, anchors, first, replaces } => {
                answer.nearest = self.insert(runner, *round, anchors, *first, *replaces)?;
            }
            Step::Results { error, candidates } => answer.read = self.results(runner, *error, candidates)?,
        }
        if sent.is_empty() {
            sent = vec![Vec::new(); self.workers];
        }
        answer.sent_bytes = sent.iter().map(|parcel| parcel.len() as u64).sum();
        answer.peak_bytes = crate::memory::peak().unwrap_or(0);
        Ok((answer, sent))
    }

    fn take_panel(&mut self) -> Result<Box<dyn Panel>, ShardError> {
        self.panel.take().ok_or_else(|| ShardError::Broken("no classes are being solved for".into()))
    }

    /// The own rows of every block, counted from the first.
    fn rows_of_blocks(&self, runner: &TaskRunner) -> Vec<Range<usize>> {
        let rows = |block: usize| {
            let positions = runner.job.block(block);
            positions.start - self.own.start..positions.end - self.own.start
        };
        self.blocks.clone().map(rows).collect()
    }

    /// What every other worker is sent of values of the own rows.
    fn parcels<T: bytemuck::Pod>(&self, values: &[T]) -> Parcels {
        let parcel = |rows: &Vec<u32>| {
            let picked: Vec<T> = rows.iter().map(|&row| values[row as usize]).collect();
            bytemuck::cast_slice(&picked).to_vec()
        };
        self.sent.iter().map(parcel).collect()
    }

    fn reached_parcels(&self) -> Parcels {
        let flags: Vec<u8> =
            self.reached[..self.own.len()].iter().map(|&reached| u8::from(reached)).collect();
        self.parcels(&flags)
    }

    fn parcels_of_panel(&self, panel: &dyn Panel) -> Parcels {
        self.sent.iter().map(|rows| panel.rows(rows)).collect()
    }

    /// The halo, from what the other workers have sent: workers own ascending positions, so their parcels follow each other.
    fn received<T: bytemuck::Pod>(&self, parcels: &[&[u8]]) -> Result<Vec<T>, ShardError> {
        let halo: Vec<T> = parcels
            .iter()
            .flat_map(|parcel| bytemuck::allocation::pod_collect_to_vec::<u8, T>(parcel))
            .collect();
        if halo.len() != self.halo.len() {
            return Err(ShardError::Broken(format!(
                "worker {} needs {} rows of others and was sent {}",
                self.worker,
                self.halo.len(),
                halo.len()
            )));
        }
        Ok(halo)
    }

    fn restore(&mut self, runner: &TaskRunner, round: usize, entries: &[f32]) -> Result<Parcels, ShardError> {
        let job = &*runner.job;
        let rows_in_all = job.rows() as u32;
        self.round = round;
        self.kept.clear();
        for block in self.blocks.clone() {
            let lists = read_lists(&*runner.storage, &lists_name(round, block), job.k())?;
            self.kept.extend((0..lists.rows()).map(|row| lists.kept(row, rows_in_all) as u16));
        }
        // F stays in memory from round to round; only a worker that starts anew reads it.
        if self.scores.is_empty() {
            let mut before = Vec::new();
            for (block, rows) in self.blocks.clone().zip(self.rows_of_blocks(runner)) {
                let scores = match round {
                    0 => self.label_rows(rows, entries),
                    _ => {
                        before.extend(
                            runner.storage.read_all::<u32>(&names::of_round("labels", round, block))?,
                        );
                        runner.storage.read_all(&names::of_round("scores", round, block))?
                    }
                };
                self.scores.push(self.room.shelve(scores)?);
            }
            if round > 0 {
                self.before = before;
            }
        }
        Ok(self.parcels(&self.kept[..self.own.len()]))
    }

    /// Rows of Y.
    fn label_rows(&self, rows: Range<usize>, entries: &[f32]) -> Vec<f32> {
        let mut values = vec![0f32; rows.len() * entries.len()];
        for (row, &label) in values.chunks_exact_mut(entries.len()).zip(&self.labels[rows]) {
            if label != NONE {
                row[label as usize] = entries[label as usize];
            }
        }
        values
    }

    /// A + Aᵀ of every block. Returns what they add to the row sums of the anchors.
    fn weigh(
        &mut self,
        runner: &TaskRunner,
        anchors: usize,
        listed: &[(u32, u32, f32)],
    ) -> Result<Vec<f64>, ShardError> {
        let (job, order) = (&*runner.job, runner.order()?);
        let rows_in_all = job.rows() as u32;
        let similarity = job.settings.similarity;
        self.anchors = anchors;
        self.degrees.clear();
        self.matrices.clear();
        self.to_anchors.clear();
        let mut sums: Vec<f64> = Vec::new();
        let mut by_position: Vec<(u32, u32, f32)> = listed
            .iter()
            .map(|&(number, anchor, weight)| (order.positions[number as usize], anchor, weight))
            .filter(|(position, ..)| self.own.contains(&(*position as usize)))
            .collect();
        by_position.sort_unstable_by_key(|entry| (entry.0, entry.1));
        for block in self.blocks.clone() {
            let positions = job.block(block);
            let (ends, edges) = runner.edges(block)?;
            let lists = read_lists(&*runner.storage, &lists_name(self.round, block), job.k())?;
            let back = |position: u32| by_position.partition_point(|entry| entry.0 < position);
            let links: Vec<Vec<(u32, f32)>> = positions
                .clone()
                .zip(0..)
                .map(|(position, row)| {
                    let position = position as u32;
                    let out = lists.of(row).filter(|neighbour| neighbour.node() >= rows_in_all);
                    let mut links: Vec<(u32, f32)> = out
                        .map(|n: Neighbour| (n.node() - rows_in_all, n.weight(similarity)))
                        .filter(|link| link.1 > 0.0)
                        .collect();
                    let back = &by_position[back(position)..back(position + 1)];
                    links.extend(back.iter().map(|&(_, anchor, weight)| (anchor, weight)));
                    blocks::add_up(&mut links);
                    links
                })
                .collect();
            let (own, halo, kept) = (&self.own, &self.halo, &self.kept);
            let kept = |position: u32| kept[column_of(own, halo, position) as usize];
            let (matrix, degrees) =
                Matrix::weights(&ends, &edges, positions.start, kept, &links, rows_in_all);
            sums.extend(Matrix::anchor_degrees(&links, anchors).into_iter().flatten());
            self.degrees.extend(degrees);
            let matrix = self.room.shelve(matrix)?;
            self.matrices.push(matrix);
        }
        Ok(sums)
    }

    fn overflow(&self) -> Option<u32> {
        self.degrees.iter().position(|degree| !degree.is_finite()).map(|row| self.numbers[row])
    }

    /// S of every block, from A + Aᵀ.
    fn normalise(&mut self, runner: &TaskRunner, anchor_degrees: &[f64]) -> Result<(), ShardError> {
        let first_anchor = runner.job.rows();
        let (own, halo, anchors_at) = (self.own.clone(), &self.halo, self.own.len() + self.halo.len());
        let scales: Vec<f64> = self
            .degrees
            .iter()
            .chain(&self.halo_degrees)
            .chain(anchor_degrees)
            .map(|&degree| blocks::inverse_root(degree))
            .collect();
        let column = |position: u32| match (position as usize).checked_sub(first_anchor) {
            Some(anchor) => (anchors_at + anchor) as u32,
            None => column_of(&own, halo, position),
        };
        let scale = |position: u32| scales[column(position) as usize];
        let mut matrices = Vec::with_capacity(self.matrices.len());
        let mut to_anchors = Vec::with_capacity(self.matrices.len());
        let mut first = own.start;
        for shelf in &mut self.matrices {
            let mut matrix = shelf.take()?;
            let rows = matrix.ends.len();
            matrix.normalise(first, scale, column);
            let anchor_of = |column: u32| (column as usize).checked_sub(anchors_at);
            let entries = blocks::anchor_entries(&matrix, first - own.start, anchor_of, self.anchors);
            to_anchors.push(self.room.shelve(entries)?);
            matrices.push(self.room.shelve(matrix)?);
            first += rows;
        }
        (self.matrices, self.to_anchors) = (matrices, to_anchors);
        let labelled = self.labels.iter().map(|&label| label != NONE);
        self.reached = labelled.chain(self.halo.iter().map(|_| false)).collect();
        Ok(())
    }

    /// Lets labels reach as far as they can within the own rows. Did they get any further?
    fn spread(&mut self, runner: &TaskRunner) -> Result<bool, ShardError> {
        let anchors_at = self.own.len() + self.halo.len();
        let mut any = false;
        loop {
            let mut further = false;
            for (at, rows) in self.rows_of_blocks(runner).into_iter().enumerate() {
                if self.reached[rows.clone()].iter().all(|&reached| reached) {
                    continue;
                }
                let matrix = self.matrices[at].get()?;
                for (row, own) in rows.enumerate() {
                    // Anchors are labelled.
                    let reaches = |&(column, _): &(u32, f32)| {
                        column as usize >= anchors_at || self.reached[column as usize]
                    };
                    if !self.reached[own] && matrix.row(row).iter().any(reaches) {
                        self.reached[own] = true;
                        further = true;
                    }
                }
            }
            any |= further;
            if !further {
                return Ok(any);
            }
        }
    }

    /// The labels of the target items of a block, and the rows of the block that they are.
    fn labels_of(
        &self,
        runner: &TaskRunner,
        at: usize,
        rows: &Range<usize>,
        error: f32,
        candidates: &[bool],
    ) -> Result<(PseudoLabels, Vec<u32>), ShardError> {
        let (classes, source_rows) = (candidates.len(), runner.job.source_rows() as u32);
        let items: Vec<u32> = (0..rows.len() as u32)
            .filter(|&row| self.numbers[rows.start + row as usize] >= source_rows)
            .collect();
        let scores = self.scores[at].get()?;
        let of_items: Vec<f32> =
            items.iter().flat_map(|&row| &scores[row as usize * classes..][..classes]).copied().collect();
        let reached: Vec<bool> = items.iter().map(|&row| self.reached[rows.start + row as usize]).collect();
        Ok((read_labels(of_items, error, &reached, candidates), items))
    }

    /// Reads the labels of all blocks, and hands them on with the number of the block and the rows that they belong to.
    fn for_each_labels(
        &mut self,
        runner: &TaskRunner,
        error: f32,
        candidates: &[bool],
        work: OnLabels<'_>,
    ) -> Result<(), ShardError> {
        (self.error, self.candidates) = (error, candidates.to_vec());
        for (at, rows) in self.rows_of_blocks(runner).into_iter().enumerate() {
            let (labels, items) = self.labels_of(runner, at, &rows, error, candidates)?;
            work(self, self.blocks.start + at, labels, items)?;
        }
        Ok(())
    }

    fn read(
        &mut self,
        runner: &TaskRunner,
        error: f32,
        candidates: &[bool],
    ) -> Result<ReadLabels, ShardError> {
        let mut read = ReadLabels::new(candidates.len());
        let mut first = 0;
        self.for_each_labels(runner, error, candidates, &mut |state, _, labels, _| {
            read.add(&labels);
            for (before, label) in state.before[first..].iter_mut().zip(labels.labels()) {
                let label = label.unwrap_or(NONE);
                read.changed += u64::from(*before != label);
                *before = label;
            }
            first += labels.len();
            Ok(())
        })?;
        Ok(read)
    }

    fn sum(&mut self, runner: &TaskRunner, trusted: &[bool]) -> Result<Vec<Vec<ClassSum>>, ShardError> {
        let (error, candidates) = (self.error, self.candidates.clone());
        let mut sums = Vec::new();
        self.for_each_labels(runner, error, &candidates, &mut |_, block, labels, items| {
            let rows: Vec<f32> = runner.storage.read_all(&names::of("features", block))?;
            sums.extend(blocks::anchor_sums(&labels, &items, &rows, runner.job.columns, trusted));
            Ok(())
        })?;
        Ok(sums)
    }

    fn insert(
        &mut self,
        runner: &TaskRunner,
        round: usize,
        anchors: &[f32],
        first: u32,
        replaces: bool,
    ) -> Result<Vec<Vec<u64>>, ShardError> {
        let job = &*runner.job;
        let (columns, similarity) = (job.columns, job.settings.similarity);
        let before = if replaces { 0 } else { self.round };
        let mut nearest: Vec<Vec<Neighbour>> = vec![Vec::new(); anchors.len() / columns];
        let source_rows = job.source_rows() as u32;
        let mut first_item = 0;
        for (at, rows) in self.rows_of_blocks(runner).into_iter().enumerate() {
            let block = self.blocks.start + at;
            let features: Vec<f32> = runner.storage.read_all(&names::of("features", block))?;
            let mut lists = read_lists(&*runner.storage, &lists_name(before, block), job.k())?;
            let numbers = &self.numbers[rows];
            let found = lists.insert_anchors(&features, numbers, anchors, columns, first, similarity);
            for (all, found) in nearest.iter_mut().zip(found) {
                *all = blocks::merge_nearest(all.drain(..).chain(found), job.k());
            }
            let items = numbers.iter().filter(|&&number| number >= source_rows).count();
            let labels = &self.before[first_item..first_item + items];
            first_item += items;
            runner
                .storage
                .write(&names::of_round("labels", round, block), &[bytemuck::cast_slice(labels)])?;
            let scores = self.scores[at].get()?;
            runner
                .storage
                .write(&names::of_round("scores", round, block), &[bytemuck::cast_slice(&scores)])?;
            write_lists(&*runner.storage, &lists_name(round, block), &lists, job.k())?;
        }
        Ok(nearest.iter().map(|list| list.iter().map(|neighbour| neighbour.to_bits()).collect()).collect())
    }

    fn results(
        &mut self,
        runner: &TaskRunner,
        error: f32,
        candidates: &[bool],
    ) -> Result<ReadLabels, ShardError> {
        let mut read = ReadLabels::new(candidates.len());
        let least = runner.job.settings.min_confidence;
        self.for_each_labels(runner, error, candidates, &mut |state, block, mut labels, items| {
            mark_low_confidence(&mut labels, least);
            read.add(&labels);
            let first = runner.job.block(block).start - state.own.start;
            let numbers: Vec<u32> = items.iter().map(|&row| state.numbers[first + row as usize]).collect();
            let mut order: Vec<usize> = (0..numbers.len()).collect();
            order.sort_unstable_by_key(|&at| numbers[at]);
            let (records, bytes) = (label_records(&labels), blocks::label_record_bytes(candidates.len()));
            let sorted: Vec<u8> =
                order.iter().flat_map(|&at| &records[at * bytes..][..bytes]).copied().collect();
            let numbers: Vec<u32> = order.iter().map(|&at| numbers[at]).collect();
            runner.storage.write(&names::of("result", block), &[&sorted])?;
            runner.storage.write(&names::of("result-rows", block), &[bytemuck::cast_slice(&numbers)])
        })?;
        Ok(read)
    }
}

impl ReadLabels {
    fn new(classes: usize) -> Self {
        ReadLabels { counts: vec![0; classes], trusted: vec![false; classes], ..ReadLabels::default() }
    }

    fn add(&mut self, labels: &PseudoLabels) {
        self.counts.iter_mut().zip(labels.class_counts()).for_each(|(all, count)| *all += count as u64);
        self.trusted.iter_mut().zip(blocks::weigh_items(labels)).for_each(|(all, trusted)| *all |= trusted);
        self.unreached += labels.count(Status::Unreached) as u64;
        self.weak += labels.count(Status::Weak) as u64;
        self.low_confidence += labels.count(Status::LowConfidence) as u64;
        self.confidence.push(labels.confidence().iter().map(|&w| f64::from(w)).sum());
    }

    /// Adds what another worker read.
    pub(crate) fn join(&mut self, other: &ReadLabels) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(all, count)| *all += count);
        self.trusted.iter_mut().zip(&other.trusted).for_each(|(all, trusted)| *all |= trusted);
        self.changed += other.changed;
        self.unreached += other.unreached;
        self.weak += other.weak;
        self.low_confidence += other.low_confidence;
        self.confidence.extend(&other.confidence);
    }
}

/// Where the lists after a round are.
fn lists_name(round: usize, block: usize) -> String {
    match round {
        0 => names::of("lists", block),
        _ => names::of_round("lists", round, block),
    }
}

/// Where a row stands in the vectors: own rows, then the halo.
fn column_of(own: &Range<usize>, halo: &[u32], position: u32) -> u32 {
    match own.contains(&(position as usize)) {
        true => position - own.start as u32,
        false => (own.len() + halo.partition_point(|&other| other < position)) as u32,
    }
}
