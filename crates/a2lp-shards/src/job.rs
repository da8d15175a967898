//! What all workers know of a run: the shape of its input, how rows are cut into chunks and blocks, and where results are.

use a2lp::blocks::{NO_RANK, SEGMENT, Settings, SixBits};
use a2lp::{CheckedParameters, Domain, Error, Labels};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A run on shards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Rows of each part of the source, then of each part of the target.
    pub parts: Vec<usize>,
    /// Parts of the source.
    pub source_parts: usize,
    /// Features of a row.
    pub columns: usize,
    /// Class names.
    pub classes: Vec<String>,
    /// Most rows of a part that are read at a time.
    pub chunk_rows: usize,
    /// Rows of a block.
    pub block_rows: usize,
    /// Write the probability of every class?
    pub probabilities: bool,
    /// Differs between runs whose inputs differ.
    pub fingerprint: String,
    /// The settings.
    pub settings: Settings,
}

/// What a job is made from.
pub struct Input<'a> {
    /// Rows of each part of the source.
    pub source_parts: &'a [usize],
    /// Rows of each part of the target.
    pub target_parts: &'a [usize],
    /// Features of a row.
    pub columns: usize,
    /// Labels of all rows of the source.
    pub labels: &'a Labels,
    /// Tells these inputs from others of the same size.
    pub fingerprint: String,
}

/// Bytes of a chunk of rows.
const CHUNK_BYTES: usize = 64 << 20;

impl Job {
    /// A run on this input. Parameters that need all rows in one memory are refused.
    pub fn new(
        input: &Input<'_>,
        parameters: &CheckedParameters,
        probabilities: bool,
    ) -> Result<Self, Error> {
        let parts = [input.source_parts, input.target_parts].concat();
        let rows: usize = parts.iter().sum();
        for (domain, parts) in [(Domain::Source, input.source_parts), (Domain::Target, input.target_parts)] {
            if parts.iter().sum::<usize>() == 0 || input.columns == 0 {
                return Err(Error::Empty(domain));
            }
        }
        if u32::try_from(rows).is_err() {
            return Err(Error::TooManyRows(rows));
        }
        let source_rows = input.source_parts.iter().sum();
        if input.labels.len() != source_rows {
            let labels = input.labels.len();
            return Err(Error::LabelCount { domain: Domain::Source, labels, rows: source_rows });
        }
        let settings = Settings::of(parameters)?;
        if settings.k >= NO_RANK as usize {
            let rule = "a run on shards takes at most 65534";
            return Err(Error::Parameter { name: "neighbours", value: settings.k.to_string(), rule });
        }
        Ok(Job {
            parts,
            source_parts: input.source_parts.len(),
            columns: input.columns,
            classes: input.labels.classes().names().to_vec(),
            chunk_rows: Self::usual_chunk_rows(input.columns),
            block_rows: Self::usual_block_rows(rows, input.columns),
            probabilities,
            fingerprint: format!(
                "{}\nlabels {:016x}\na2lp {}",
                input.fingerprint,
                fnv(input.labels.ids().iter().flat_map(|id| id.to_le_bytes())),
                env!("CARGO_PKG_VERSION")
            ),
            settings,
        })
    }

    /// The rows of a chunk for rows of this width: it does not depend on the machine.
    pub fn usual_chunk_rows(columns: usize) -> usize {
        (CHUNK_BYTES / (4 * columns.max(1))).clamp(1024, 1 << 18)
    }

    /// The rows of a block for so many rows of this width.
    pub fn usual_block_rows(rows: usize, columns: usize) -> usize {
        let most = (CHUNK_BYTES / (4 * columns.max(1))).clamp(SEGMENT, 1 << 16) / SEGMENT * SEGMENT;
        (rows / 128).next_multiple_of(SEGMENT).clamp(SEGMENT, most)
    }

    /// A number that tells this run from others.
    pub fn hash(&self) -> u64 {
        fnv(format!("{self:?}").bytes())
    }

    /// Rows of source and target.
    pub fn rows(&self) -> usize {
        self.parts.iter().sum()
    }

    /// Rows of the source.
    pub fn source_rows(&self) -> usize {
        self.parts[..self.source_parts].iter().sum()
    }

    /// Neighbours of a node: no node can have more than there will ever be nodes.
    pub fn k(&self) -> usize {
        let anchors = self.classes.len() * (self.settings.rounds - 1);
        self.settings.k.min(self.rows() + anchors)
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.rows().div_ceil(self.block_rows)
    }

    /// Positions of a block.
    pub fn block(&self, block: usize) -> Range<usize> {
        block * self.block_rows..self.rows().min((block + 1) * self.block_rows)
    }

    /// Blocks of a worker.
    pub fn blocks_of(&self, worker: usize, workers: usize) -> Range<usize> {
        worker * self.blocks() / workers..(worker + 1) * self.blocks() / workers
    }

    /// Row numbers of a part.
    pub fn part(&self, part: usize) -> Range<usize> {
        let start = self.parts[..part].iter().sum();
        start..start + self.parts[part]
    }

    /// The chunks of a part: their numbers.
    pub fn chunks_of(&self, part: usize) -> Range<usize> {
        let count = |rows: &usize| rows.div_ceil(self.chunk_rows);
        let start = self.parts[..part].iter().map(count).sum();
        start..start + count(&self.parts[part])
    }

    /// Number of chunks.
    pub fn chunks(&self) -> usize {
        self.chunks_of(self.parts.len() - 1).end
    }

    /// Row numbers of all chunks.
    pub fn chunk_rows(&self) -> Vec<Range<usize>> {
        let cut = |part: usize| {
            let rows = self.part(part);
            let end = rows.end;
            rows.step_by(self.chunk_rows).map(move |start| start..end.min(start + self.chunk_rows))
        };
        (0..self.parts.len()).flat_map(cut).collect()
    }

    /// The shape of six-bit records.
    pub fn six_bits(&self, signed: bool) -> SixBits {
        SixBits { columns: self.columns, signed, similarity: self.settings.similarity }
    }
}

/// The hash FNV-1a.
fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.fold(0xcbf2_9ce4_8422_2325, step)
}

/// Names of results.
pub(crate) mod names {
    pub(crate) const JOB: &str = "job.json";
    pub(crate) const LABELS: &str = "labels";
    pub(crate) const CENTRES: &str = "centres";
    pub(crate) const ORDER: &str = "order";
    pub(crate) const STARTS: &str = "starts";
    pub(crate) const BOUNDS: &str = "bounds";
    pub(crate) const TRUTH: &str = "truth";
    pub(crate) const RESULTS: &str = "results";

    pub(crate) fn of(kind: &str, number: usize) -> String {
        format!("{kind}/{number:06}")
    }

    pub(crate) fn of_round(kind: &str, round: usize, block: usize) -> String {
        format!("round-{round:03}/{kind}-{block:06}")
    }

    /// The state of the driver after a round, which is written last.
    pub(crate) fn round(round: usize) -> String {
        format!("round-{round:03}/done")
    }
}
