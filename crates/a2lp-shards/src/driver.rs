//! Leads a run: one stage after the other, rounds of steps, and again from the last result if a worker is lost.

use crate::engine::Engine;
use crate::error::ShardError;
use crate::job::{Job, names};
use crate::plan::PROGRAM;
use crate::solve::{Solved, System, Talk};
use crate::state::{Answer, ReadLabels, Step};
use crate::storage::Storage;
use crate::tasks::{Found, Task, decode, encode};
use crate::worker::{Message, Reply, read_job};
use a2lp::Solve;
use a2lp::blocks::{
    AnchorBlock, AnchorSums, LabelEntries, Neighbour, Settings, any_unsettled, inverse_root, make_anchors,
};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// What a run is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Reading and checking the input; counts parts.
    Read,
    /// Putting rows into groups; counts chunks.
    Group,
    /// Bringing the rows of groups together; counts blocks.
    Gather,
    /// Finding neighbours; counts blocks.
    Search,
    /// Joining edges; counts blocks.
    Join,
    /// Rounds of propagation.
    Rounds,
    /// Writing labels; counts parts.
    Write,
}

impl Stage {
    /// The word used in files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Read => "read",
            Stage::Group => "group",
            Stage::Gather => "gather",
            Stage::Search => "search",
            Stage::Join => "join",
            Stage::Rounds => "rounds",
            Stage::Write => "write",
        }
    }
}

/// Someone who wants to observe a run, or to stop it.
pub trait Watch {
    /// Called between pieces of work. `Break` ends the run; the same command goes on from there.
    fn progress(&self, _stage: Stage, _done: usize, _total: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Something that the user should know.
    fn note(&self, _text: &str) {}
}

/// Nobody.
impl Watch for () {}

/// A finished round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// From 1.
    pub round: usize,
    /// Anchors in the graph.
    pub anchors: usize,
    /// Items whose label is not that of the round before; 0 in the first.
    pub changed: usize,
    /// Items that no label reaches.
    pub unreached: usize,
    /// Items whose scores are within the solver's error.
    pub weak: usize,
    /// Mean of the confidences.
    pub mean_confidence: f64,
    /// Items of every class.
    pub class_counts: Vec<usize>,
    /// How the solve went.
    pub solve: Solve,
    /// Seconds.
    pub secs: f64,
}

/// What came of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The rounds.
    pub rounds: Vec<Round>,
    /// Target items.
    pub items: usize,
    /// Items with a label that is trusted.
    pub labelled: usize,
    /// Items below the minimum confidence.
    pub low_confidence: usize,
    /// Groups of the search, and how many of them a row looked at.
    pub groups: usize,
    /// Groups that a row looked at.
    pub probes: usize,
    /// Share of the true neighbours that were found, on a sample of rows.
    pub recall: f64,
    /// Rows of zeros.
    pub zero_rows: usize,
    /// Workers.
    pub workers: usize,
    /// Blocks of rows.
    pub blocks: usize,
    /// Workers that were lost on the way.
    pub lost: usize,
    /// Bytes that workers send each other for one sweep.
    pub sweep_bytes: u64,
    /// Bytes that stages wrote and read, without those that were there already.
    pub stage_bytes: u64,
    /// Most bytes that a worker held, if its system tells.
    pub worker_peak_bytes: u64,
    /// Seconds of every stage.
    pub stage_secs: Vec<(Stage, f64)>,
}

/// The state of the driver between two rounds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Progress {
    rounds: Vec<Round>,
    vectors: Vec<f32>,
    lists: Vec<Vec<u64>>,
    anchor_classes: Vec<u32>,
    /// F of the anchors.
    scores: Vec<Vec<f32>>,
}

/// Leads a run.
pub struct Driver<'a> {
    job: Job,
    storage: Arc<dyn Storage>,
    engine: &'a mut dyn Engine,
    watch: &'a dyn Watch,
    /// Bytes of memory that a worker may take.
    worker_memory: usize,
    lost: usize,
    sweep_bytes: u64,
    stage_bytes: u64,
    peak_bytes: u64,
    stage_secs: Vec<(Stage, f64)>,
}

/// Times that a round is begun again before a run gives up.
const PATIENCE: usize = 20;

impl<'a> Driver<'a> {
    /// Puts the job into the storage, for workers to read, unless it is there already. Returns whether it was. A storage that has
    /// another job is refused.
    pub fn prepare(storage: &dyn Storage, job: &Job, labels: &[u32]) -> Result<bool, ShardError> {
        if storage.has(names::JOB)? {
            if read_job(storage)? == *job {
                return Ok(true);
            }
            let message =
                "the work folder belongs to a run with other inputs or settings; remove it to start anew";
            return Err(ShardError::Broken(message.into()));
        }
        storage.write(names::LABELS, &[bytemuck::cast_slice(labels)])?;
        let text = serde_json::to_vec_pretty(job).map_err(|error| ShardError::storage(names::JOB, error))?;
        storage.write(names::JOB, &[&text])?;
        Ok(false)
    }

    /// A driver for the job in the storage.
    pub fn new(
        storage: Arc<dyn Storage>,
        engine: &'a mut dyn Engine,
        worker_memory: usize,
        watch: &'a dyn Watch,
    ) -> Result<Self, ShardError> {
        Ok(Driver {
            job: read_job(&*storage)?,
            storage,
            engine,
            watch,
            worker_memory,
            lost: 0,
            sweep_bytes: 0,
            stage_bytes: 0,
            peak_bytes: 0,
            stage_secs: Vec::new(),
        })
    }

    /// Runs all stages that are not done yet.
    pub fn run(mut self) -> Result<Outcome, ShardError> {
        let (parts, chunks, blocks) = (self.job.parts.len(), self.job.chunks(), self.job.blocks());
        let read = self.stage(Stage::Read, (0..parts).map(|part| Task::Ingest { part }).collect())?;
        let signed = read.iter().any(|found| found.negative);
        let zero_rows = self.note_zeros(&read);
        self.stage(Stage::Group, vec![Task::Centres])?;
        self.stage(Stage::Group, (0..chunks).map(|chunk| Task::Assign { chunk }).collect())?;
        let group = self.stage(Stage::Group, vec![Task::Group])?;
        let Found { groups, probes, .. } = group[0];
        self.stage(Stage::Gather, (0..blocks).map(|block| Task::Gather { block, signed }).collect())?;
        self.remove(&["run"], chunks)?;
        let searches = (0..blocks).map(|block| Task::Search { block, signed, probes }).collect();
        let searched = self.stage(Stage::Search, searches)?;
        let sum = |of: fn(&Found) -> usize| searched.iter().map(of).sum::<usize>();
        let (hits, truths) = (sum(|found| found.hits), sum(|found| found.truths));
        self.stage(Stage::Join, (0..blocks).map(|block| Task::Join { block }).collect())?;
        self.remove(&["bits", "sent", "sent-bounds"], blocks)?;

        let started = Instant::now();
        let (rounds, read) = self.rounds()?;
        self.stage_secs.push((Stage::Rounds, started.elapsed().as_secs_f64()));
        let targets = (self.job.source_parts..parts).map(|part| Task::Write { part }).collect();
        self.stage(Stage::Write, targets)?;
        let items = self.job.rows() - self.job.source_rows();
        Ok(Outcome {
            rounds,
            items,
            labelled: items - (read.low_confidence + read.unreached + read.weak) as usize,
            low_confidence: read.low_confidence as usize,
            groups,
            probes,
            recall: if truths > 0 { hits as f64 / truths as f64 } else { 1.0 },
            zero_rows,
            workers: self.engine.workers(),
            blocks,
            lost: self.lost,
            sweep_bytes: self.sweep_bytes,
            stage_bytes: self.stage_bytes,
            worker_peak_bytes: self.peak_bytes,
            stage_secs: self.stage_secs,
        })
    }

    /// Has the tasks done that are not done yet.
    fn stage(&mut self, stage: Stage, tasks: Vec<Task>) -> Result<Vec<Found>, ShardError> {
        let started = Instant::now();
        let mut found: Vec<Option<Found>> = Vec::with_capacity(tasks.len());
        for task in &tasks {
            let marker = task.marker();
            found.push(match self.storage.has(&marker)? {
                true => Some(decode(&self.storage.read_all::<u8>(&marker)?)?),
                false => None,
            });
        }
        let open: Vec<usize> = (0..tasks.len()).filter(|&at| found[at].is_none()).collect();
        let (before, total, watch) = (tasks.len() - open.len(), tasks.len(), self.watch);
        let progress = |done: usize| go_on(watch, stage, before + done, total);
        progress(0)?;
        let messages: Vec<Vec<u8>> =
            open.iter().map(|&at| encode(&Message::Task(tasks[at].clone()))).collect();
        if !messages.is_empty() {
            let replies = self.engine.tasks(&messages, &mut |done| progress(done))?;
            for (&at, reply) in open.iter().zip(replies) {
                let Reply::Found(reply) = decode(&reply)? else {
                    return Err(ShardError::Broken("a worker answered something else".into()));
                };
                self.stage_bytes += reply.bytes;
                found[at] = Some(reply);
            }
        }
        self.stage_secs.push((stage, started.elapsed().as_secs_f64()));
        Ok(found.into_iter().flatten().collect())
    }

    fn note_zeros(&self, read: &[Found]) -> usize {
        let zeros: usize = read.iter().map(|found| found.zeros).sum();
        if let (true, Some(row)) =
            (self.job.settings.similarity.scales_rows(), read.iter().find_map(|found| found.first_zero))
        {
            let (domain, row) = match row.checked_sub(self.job.source_rows()) {
                None => ("source", row),
                Some(row) => ("target", row),
            };
            self.watch.note(&format!(
                "{zeros} rows are all zeros, the first is row {row} of the {domain}; by cosine similarity they have no neighbours"
            ));
        }
        zeros
    }

    /// Removes results that are needed no more.
    fn remove(&self, kinds: &[&str], count: usize) -> Result<(), ShardError> {
        for kind in kinds {
            (0..count).try_for_each(|number| self.storage.remove(&names::of(kind, number)))?;
        }
        Ok(())
    }

    /// All rounds; if a worker is lost, again from the last that was finished.
    fn rounds(&mut self) -> Result<(Vec<Round>, ReadLabels), ShardError> {
        if self.storage.has(names::RESULTS)? {
            return decode(&self.storage.read_all::<u8>(names::RESULTS)?);
        }
        let mut failures = 0;
        loop {
            let before = self.finished_rounds()?;
            match self.try_rounds(before) {
                Err(ShardError::Lost(what)) if failures < PATIENCE => {
                    self.lost += 1;
                    failures = if self.finished_rounds()? > before { 0 } else { failures + 1 };
                    self.watch
                        .note(&format!("a worker was lost ({what}); round {} begins again", before + 1));
                    self.engine.renew()?;
                }
                other => return other,
            }
        }
    }

    /// The last round whose state was kept.
    fn finished_rounds(&self) -> Result<usize, ShardError> {
        for round in (1..self.job.settings.rounds).rev() {
            if self.storage.has(&names::round(round))? {
                return Ok(round);
            }
        }
        Ok(0)
    }

    fn try_rounds(&mut self, finished: usize) -> Result<(Vec<Round>, ReadLabels), ShardError> {
        let settings = self.job.settings.clone();
        let mut progress: Progress = match finished {
            0 => Progress::default(),
            round => decode(&self.storage.read_all::<u8>(&names::round(round))?)?,
        };
        let mut anchors =
            AnchorBlock::new(self.job.rows() as u32, self.job.columns, self.job.k(), settings.similarity);
        anchors.restore(std::mem::take(&mut progress.vectors), &progress.lists);
        let source: Vec<u32> = self.storage.read_all(names::LABELS)?;
        let mut source_counts = vec![0usize; self.job.classes.len()];
        source.iter().for_each(|&class| source_counts[class as usize] += 1);
        drop(source);
        let candidates: Vec<bool> = source_counts.iter().map(|&count| count > 0).collect();
        self.open()?;

        for number in finished + 1..=settings.rounds {
            go_on(self.watch, Stage::Rounds, number - 1, settings.rounds)?;
            let started = Instant::now();
            let mut counts = source_counts.clone();
            progress.anchor_classes.iter().for_each(|&class| counts[class as usize] += 1);
            let entries = LabelEntries::new(&counts, settings.label_weight);
            let between = self.weigh(number, &entries, &anchors)?;
            let (solve, error) = self.solve(&settings, &entries, &between, &mut progress)?;
            let answers = self.ask(Step::Read { error, candidates: candidates.clone() })?;
            let mut read = ReadLabels::default();
            read.clone_from(&answers[0].read);
            answers[1..].iter().for_each(|answer| read.join(&answer.read));
            let items = self.job.rows() - self.job.source_rows();
            progress.rounds.push(Round {
                round: number,
                anchors: anchors.len(),
                changed: if number > 1 { read.changed as usize } else { 0 },
                unreached: read.unreached as usize,
                weak: read.weak as usize,
                mean_confidence: read.confidence.iter().sum::<f64>() / items as f64,
                class_counts: read.counts.iter().map(|&count| count as usize).collect(),
                solve,
                secs: started.elapsed().as_secs_f64(),
            });
            let is_stable = settings.stop_when_stable && number > 1 && read.changed == 0;
            if number == settings.rounds || is_stable {
                let answers = self.ask(Step::Results { error, candidates: candidates.clone() })?;
                let mut read = answers[0].read.clone();
                answers[1..].iter().for_each(|answer| read.join(&answer.read));
                let results = (progress.rounds, read);
                self.storage.write(names::RESULTS, &[&encode(&results)])?;
                self.remove_round(number - 1)?;
                go_on(self.watch, Stage::Rounds, settings.rounds, settings.rounds)?;
                return Ok(results);
            }
            self.learn(number, &read, &mut anchors, &mut progress)?;
        }
        Err(ShardError::Broken("a run has no rounds".into()))
    }

    /// Gives blocks to the workers, and tells everyone whom to send what.
    fn open(&mut self) -> Result<(), ShardError> {
        let workers = self.engine.workers();
        let (width, memory) = self.room(workers);
        let messages: Vec<Vec<u8>> = (0..workers)
            .map(|worker| encode(&Message::Step(Step::Open { workers, worker, width, memory })))
            .collect();
        self.engine.start(&messages)?;
        self.say(Step::Subscribe)
    }

    /// Classes that are solved for at a time, and the bytes that workers may hold besides the vectors of the solver.
    fn room(&self, workers: usize) -> (usize, usize) {
        let rows = self.job.rows().div_ceil(workers) + self.job.block_rows;
        let vectors = |width: usize| 4 * 4 * width * rows * 9 / 8;
        let widest = self.job.classes.len().next_multiple_of(4).min(16);
        let fitting = |&width: &usize| vectors(width) <= self.worker_memory / 2;
        let width = (4..=widest).rev().step_by(4).find(fitting).unwrap_or(4);
        // Numbers and labels of rows, their order, and what is worked on.
        let fixed =
            PROGRAM as usize + 8 * self.job.rows() + 40 * rows + 110 * self.job.k() * self.job.block_rows;
        // Not all memory that is given back can be used again.
        (width, self.worker_memory.saturating_sub(vectors(width) + fixed) * 2 / 3)
    }

    /// Makes S, and lets labels reach what they can. Returns S between the anchors.
    fn weigh(
        &mut self,
        round: usize,
        entries: &LabelEntries,
        anchors: &AnchorBlock,
    ) -> Result<Vec<Vec<(u32, f32)>>, ShardError> {
        self.say(Step::Restore { round: round - 1, entries: entries.values.clone() })?;
        let listed = anchors.listed_rows();
        let answers = self.ask(Step::Weigh { anchors: anchors.len(), listed })?;
        let mut degrees = vec![0f64; anchors.len()];
        for answer in &answers {
            if let Some(row) = answer.overflow {
                return Err(a2lp::Error::WeightOverflow(row as usize).into());
            }
            for segment in answer.degrees.chunks_exact(anchors.len().max(1)) {
                degrees.iter_mut().zip(segment).for_each(|(all, part)| *all += part);
            }
        }
        let mut between = anchors.between();
        for (degree, entries) in degrees.iter_mut().zip(&between) {
            *degree += entries.iter().fold(0.0, |sum, entry| sum + f64::from(entry.1));
        }
        if let Some(anchor) = degrees.iter().position(|degree| !degree.is_finite()) {
            return Err(a2lp::Error::WeightOverflow(self.job.rows() + anchor).into());
        }
        let scales: Vec<f64> = degrees.iter().map(|&degree| inverse_root(degree)).collect();
        for (own, entries) in scales.iter().zip(&mut between) {
            for (other, value) in entries {
                *value = (f64::from(*value) * (own * scales[*other as usize])) as f32;
            }
        }
        self.say(Step::Normalise { degrees })?;
        while self.ask(Step::Spread)?.iter().any(|answer| answer.more) {}
        Ok(between)
    }

    /// Solves (I − αS)F = Y for all classes. Returns how it went, and the error bound.
    fn solve(
        &mut self,
        settings: &Settings,
        entries: &LabelEntries,
        between: &[Vec<(u32, f32)>],
        progress: &mut Progress,
    ) -> Result<(Solve, f32), ShardError> {
        let (classes, anchors) = (self.job.classes.len(), progress.anchor_classes.len());
        // Anchors that are new start from their own label.
        let known = progress.scores.len();
        progress.scores.resize(anchors, vec![0.0; classes]);
        for (row, &class) in progress.scores.iter_mut().zip(&progress.anchor_classes).skip(known) {
            row[class as usize] = entries.values[class as usize];
        }
        let nodes = self.job.rows() + anchors;
        let target: Vec<f64> = entries.norms.iter().map(|norm| settings.tolerance * norm).collect();
        let first = self.solve_panels(settings, entries, between, &target, progress)?;
        let relative = |(&residual, &norm): (&f64, &f64)| if norm > 0.0 { residual / norm } else { 0.0 };
        let mut solve = Solve {
            iterations: first.iterations,
            residual: first.residuals.iter().zip(&entries.norms).map(relative).fold(0.0, f64::max),
            converged: first.converged,
            refinements: 0,
        };
        let mut residuals = first.residuals;
        let (mut error, mut least) = settings.error(&residuals, nodes);
        while solve.converged
            && solve.refinements < Settings::REFINEMENTS
            && self.unsettled(least, progress)?
        {
            let target = Settings::refined(&residuals);
            let again = self.solve_panels(settings, entries, between, &target, progress)?;
            solve.iterations += again.iterations;
            solve.refinements += 1;
            residuals = again.residuals;
            (error, least) = settings.error(&residuals, nodes);
            if !again.converged {
                break;
            }
        }
        Ok((solve, error as f32))
    }

    fn unsettled(&mut self, least: f64, progress: &Progress) -> Result<bool, ShardError> {
        let anchors = progress.scores.concat();
        let reached = vec![true; progress.scores.len()];
        let own = any_unsettled(&anchors, self.job.classes.len(), &reached, least);
        Ok(own || self.ask(Step::Unsettled { least })?.iter().any(|answer| answer.more))
    }

    fn solve_panels(
        &mut self,
        settings: &Settings,
        entries: &LabelEntries,
        between: &[Vec<(u32, f32)>],
        target: &[f64],
        progress: &mut Progress,
    ) -> Result<Solved, ShardError> {
        let classes = self.job.classes.len();
        let (width, _) = self.room(self.engine.workers());
        let mut all = Solved { iterations: 0, converged: true, residuals: Vec::with_capacity(classes) };
        for first in (0..classes).step_by(width) {
            let panel = first..classes.min(first + width);
            let system = System {
                rows: self.job.rows(),
                alpha: settings.alpha as f32,
                classes: panel.clone(),
                between,
                anchor_classes: &progress.anchor_classes,
                entries: &entries.values,
                max_iterations: settings.max_iterations,
            };
            let (target, f) = (&target[panel], &mut progress.scores);
            let solved = match width {
                4 => system.solve::<4>(target, self, f)?,
                8 => system.solve::<8>(target, self, f)?,
                12 => system.solve::<12>(target, self, f)?,
                _ => system.solve::<16>(target, self, f)?,
            };
            all.iterations = all.iterations.max(solved.iterations);
            all.converged &= solved.converged;
            all.residuals.extend(solved.residuals);
        }
        Ok(all)
    }

    /// Makes the anchors of a round, takes them into all lists, and keeps the state.
    fn learn(
        &mut self,
        round: usize,
        read: &ReadLabels,
        anchors: &mut AnchorBlock,
        progress: &mut Progress,
    ) -> Result<(), ShardError> {
        let (settings, columns) = (self.job.settings.clone(), self.job.columns);
        let trusted = match settings.entropy_weights {
            true => read.trusted.clone(),
            false => vec![false; read.trusted.len()],
        };
        let mut sums = AnchorSums::new(self.job.classes.len(), columns);
        for answer in self.ask(Step::Sum { trusted })? {
            answer.class_sums.into_iter().for_each(|segment| sums.add(segment));
        }
        let added = make_anchors(&sums, round, settings.similarity.scales_rows());
        if settings.replaces_anchors {
            anchors.clear();
            progress.anchor_classes.clear();
        }
        let vectors: Vec<f32> = added.iter().flat_map(|anchor| &anchor.vector).copied().collect();
        let first = (self.job.rows() + anchors.len()) as u32;
        let replaces = settings.replaces_anchors;
        let answers = self.ask(Step::Insert { round, anchors: vectors.clone(), first, replaces })?;
        let mut nearest: Vec<Vec<Neighbour>> = vec![Vec::new(); added.len()];
        for answer in answers {
            for (all, bits) in nearest.iter_mut().zip(answer.nearest) {
                let found = bits.into_iter().map(Neighbour::from_bits);
                *all =
                    a2lp::blocks::merge_nearest(std::mem::take(all).into_iter().chain(found), self.job.k());
            }
        }
        anchors.insert(&vectors, nearest);
        progress.anchor_classes.extend(added.iter().map(|anchor| anchor.class));
        let (vectors, lists) = anchors.to_parts();
        (progress.vectors, progress.lists) = (vectors, lists);
        self.storage.write(&names::round(round), &[&encode(progress)])?;
        self.remove_round(round - 1)
    }

    /// Removes the state of a round that is needed no more.
    fn remove_round(&self, round: usize) -> Result<(), ShardError> {
        if round == 0 {
            return Ok(());
        }
        self.storage.remove(&names::round(round))?;
        for block in 0..self.job.blocks() {
            for kind in ["lists", "scores", "labels"] {
                self.storage.remove(&names::of_round(kind, round, block))?;
            }
        }
        Ok(())
    }

    fn say(&mut self, step: Step) -> Result<(), ShardError> {
        self.engine.step(&encode(&Message::Step(step)), false).map(drop)
    }

    fn ask(&mut self, step: Step) -> Result<Vec<Answer>, ShardError> {
        let is_sweep = matches!(step, Step::Residual);
        let replies = self.engine.step(&encode(&Message::Step(step)), true)?;
        let mut answers = Vec::with_capacity(replies.len());
        for reply in replies {
            match decode(&reply)? {
                Reply::Answer(answer) => answers.push(answer),
                Reply::Found(_) => return Err(ShardError::Broken("a worker answered something else".into())),
            }
        }
        if is_sweep {
            self.sweep_bytes = answers.iter().map(|answer| answer.sent_bytes).sum();
        }
        self.peak_bytes = answers.iter().map(|answer| answer.peak_bytes).fold(self.peak_bytes, u64::max);
        Ok(answers)
    }
}

impl Talk for Driver<'_> {
    fn say(&mut self, step: Step) -> Result<(), ShardError> {
        Driver::say(self, step)
    }

    fn ask(&mut self, step: Step) -> Result<Vec<Answer>, ShardError> {
        Driver::ask(self, step)
    }

    fn go_on(&self) -> Result<(), ShardError> {
        go_on(self.watch, Stage::Rounds, usize::MAX, self.job.settings.rounds)
    }
}

fn go_on(watch: &dyn Watch, stage: Stage, done: usize, total: usize) -> Result<(), ShardError> {
    match watch.progress(stage, done, total) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(a2lp::Error::Cancelled.into()),
    }
}
