//! What a run on shards will take, before it starts.

use crate::error::ShardError;
use crate::job::Job;
use a2lp::Shape;
use a2lp::blocks::group_count;
use serde::{Deserialize, Serialize};

/// The workers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machines {
    /// Workers.
    pub workers: usize,
    /// Threads of each.
    pub threads: usize,
    /// Bytes of memory that each may take.
    pub memory: u64,
}

/// What a run on shards will take. Bytes follow from the sizes of what is held; seconds are a guess from the machine on which the
/// benchmarks were run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The workers.
    pub machines: Machines,
    /// Source and target rows.
    pub rows: usize,
    /// Blocks of rows.
    pub blocks: usize,
    /// Groups of rows.
    pub groups: usize,
    /// Least memory with which a worker can do its part.
    pub least_worker_bytes: u64,
    /// Most bytes in the work folder.
    pub work_bytes: u64,
    /// Bytes that stages write into it and read from it.
    pub moved_bytes: u64,
    /// Most bytes that workers can send each other in one sweep; rows whose neighbours are all with the same worker are not sent.
    pub most_sweep_bytes: u64,
    /// Seconds.
    pub secs: f64,
    /// Hours of one worker with its threads, added up over all workers.
    pub machine_hours: f64,
}

/// The program itself, with its libraries.
pub(crate) const PROGRAM: u64 = 60 << 20;

impl Plan {
    /// The plan of a job on these workers.
    pub fn new(job: &Job, machines: Machines) -> Result<Plan, ShardError> {
        let (n, d, k) = (job.rows() as u64, job.columns as u64, job.k() as u64);
        let (classes, blocks) = (job.classes.len() as u64, job.blocks());
        let groups = group_count(job.rows());
        let (workers, threads) = (machines.workers as u64, machines.threads.max(1) as u64);
        let record = d.next_multiple_of(64) + 12;
        let largest_part = job.parts.iter().copied().max().unwrap_or(0);
        let chunk = 4 * d * job.chunk_rows.min(largest_part) as u64;
        let block = job.block_rows as u64;
        // Centres as they are, packed, and packed by stretches.
        let held_centres = 3 * 4 * d * groups as u64;
        // The sample of the centres with the places of its rows, and the centres, new and old.
        let centres = (4 * d * 32 + 32 * 32) * groups as u64 + 2 * held_centres;
        // A chunk, its rows in another order, and scores of the sampled rows.
        let assigning = 3 * chunk + held_centres;
        let grouping = 20 * n;
        let gathering = block * (8 * d + record);
        let piece = threads * (3 * (16 << 20) + 4096 * (16 * 2 * k + 2048));
        let searching = 8 * n + held_centres + piece + block * 40 * k;
        let joining = block * 80 * k;
        let own = n.div_ceil(workers) + block;
        let rounds = 8 * n + own * (4 * 4 * 4 + 40) + block * (60 * k + 4 * d + 8 * classes);
        let stages = [centres, assigning, grouping, gathering, searching, joining, rounds];
        let work = n * (8 * d + record).max(4 * d + 8 * k + 16 * k + 20 * k + 8 * classes);
        let moved = n * (4 * d * 6 + 2 * record + 16 * 2 * k + 12 * 3 * k);
        let shape = Shape {
            source_rows: job.source_rows(),
            target_rows: job.rows() - job.source_rows(),
            columns: job.columns,
            classes: job.classes.len(),
        };
        let alone = job.settings.parameters()?.plan(shape).on_this_machine();
        let thread_secs = alone.secs() * alone.threads as f64;
        // Reading, putting in order and writing again.
        let disk_secs = moved as f64 / 1e9;
        let secs = (thread_secs * 1.2 + disk_secs) / (workers * threads) as f64;
        Ok(Plan {
            machines,
            rows: job.rows(),
            blocks,
            groups,
            least_worker_bytes: PROGRAM + stages.into_iter().max().unwrap_or(0),
            work_bytes: work,
            moved_bytes: moved,
            most_sweep_bytes: if workers > 1 { n * 4 * 16.min(classes.next_multiple_of(4)) } else { 0 },
            secs,
            machine_hours: secs * workers as f64 / 3600.0,
        })
    }

    /// Refuses workers that are too small.
    pub fn check(&self) -> Result<(), ShardError> {
        match self.least_worker_bytes <= self.machines.memory {
            true => Ok(()),
            false => Err(ShardError::Broken(format!(
                "a worker needs at least {} MiB of memory for this run, and may take {}; allow more, or use more workers",
                self.least_worker_bytes >> 20,
                self.machines.memory >> 20
            ))),
        }
    }
}
