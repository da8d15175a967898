//! `a2lp label --spill` and `--cluster`: more rows than memory holds.

use super::input::{LabelledSource, open_features};
use super::{max_unreached, resolve};
use crate::Outcome;
use crate::args::LabelArgs;
use crate::interrupt;
use crate::memory;
use crate::output::write_json;
use crate::progress::counting_bar;
use crate::table::render;
use a2lp::{CheckedParameters, Labels};
use a2lp_data::{FieldNames, refuse_existing};
use a2lp_shards::{
    Driver, Folder, Input, Job, LocalEngine, LocalParts, Machines, Outcome as Labelled, Plan, Stage, Storage,
    Watch,
};
use anyhow::{Context, bail};
use serde::Serialize;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

/// A run that a cluster is to do: all is checked, and nothing is begun.
pub struct ClusterRun<'a> {
    /// The address, or `auto`.
    pub address: &'a str,
    /// Workers; `None` for as many as suit the cluster.
    pub workers: Option<usize>,
    /// Bytes of memory that each may take.
    pub memory: Option<u64>,
    /// Files of the source.
    pub sources: Vec<PathBuf>,
    /// Files of the target.
    pub targets: Vec<PathBuf>,
    /// Names of the columns that are read.
    pub names: FieldNames,
    /// Where labels go.
    pub out: &'a Path,
    /// Replace labels that are there?
    pub force: bool,
    /// The job.
    pub job: &'a Job,
    /// Labels of the source rows.
    pub labels: &'a Labels,
    /// Threads of each worker; 0 for as many as suit the cluster.
    pub threads: usize,
    /// Told of progress.
    pub watch: &'a dyn Watch,
}

/// Runs on a cluster.
type ClusterRunner = dyn Fn(&ClusterRun<'_>) -> anyhow::Result<(Labelled, Plan)> + Send + Sync;

static RUNNER: OnceLock<Box<ClusterRunner>> = OnceLock::new();

/// Lets this process run on clusters; the Python package does.
pub fn set_cluster_runner(
    runner: impl Fn(&ClusterRun<'_>) -> anyhow::Result<(Labelled, Plan)> + Send + Sync + 'static,
) {
    // The first one stays.
    RUNNER.set(Box::new(runner)).ok();
}

/// The record of a run on shards.
#[derive(Serialize)]
struct Record<'a> {
    a2lp_version: &'static str,
    command: Vec<String>,
    sources: &'a [PathBuf],
    targets: &'a [PathBuf],
    outputs: Vec<String>,
    source_rows: usize,
    target_rows: usize,
    columns: usize,
    classes: &'a [String],
    settings: &'a a2lp::blocks::Settings,
    plan: Plan,
    outcome: &'a Labelled,
    read_secs: f64,
    total_secs: f64,
    peak_bytes: Option<u64>,
}

/// The name of the record in the folder of the labels.
const RECORD: &str = "_run.json";

pub(super) fn run(args: &LabelArgs) -> anyhow::Result<Outcome> {
    let started = Instant::now();
    let max_unreached = max_unreached(args)?;
    refuse_what_needs_memory(args)?;
    let parameters = resolve(args).check()?;
    let LabelledSource { source, target, labels, .. } = open_features(args)?;
    let paths = |file: &a2lp_data::FeatureFile| file.paths().map(Path::to_path_buf).collect::<Vec<_>>();
    let (sources, targets, names) = (paths(&source), paths(&target), args.columns.names());
    let parts = LocalParts::new(&sources, &targets, &args.out, names.clone());
    let input = Input {
        source_parts: &source.part_rows(),
        target_parts: &target.part_rows(),
        columns: source.columns(),
        labels: &labels,
        fingerprint: parts.fingerprint(),
    };
    let job = Job::new(&input, &parameters, args.probabilities)?;
    drop((source, target));
    let read_secs = started.elapsed().as_secs_f64();
    if args.dry_run {
        let plan = Plan::new(&job, machines(args, &parameters))?;
        let text = match args.json {
            true => serde_json::to_string_pretty(&plan)? + "\n",
            false => describe_plan(&job, &plan),
        };
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(Outcome::Done);
    }
    let watch = Bars::default();
    let (outcome, plan) = match (&args.spill, &args.cluster) {
        (Some(folder), _) => spill(args, folder, &job, &labels, &parameters, parts, &watch)?,
        (None, Some(address)) => {
            let Some(runner) = RUNNER.get() else {
                bail!(
                    "--cluster needs the Python package: pip install 'a2lp[ray]', and its own command a2lp"
                );
            };
            runner(&ClusterRun {
                address,
                workers: args.workers,
                memory: args.max_memory,
                sources: sources.clone(),
                targets: targets.clone(),
                names,
                out: &args.out,
                force: args.force,
                job: &job,
                labels: &labels,
                threads: parameters.threads(),
                watch: &watch,
            })?
        }
        (None, None) => bail!("neither a folder nor a cluster was named"),
    };
    let record = Record {
        a2lp_version: env!("CARGO_PKG_VERSION"),
        command: crate::command_line(),
        outputs: a2lp_shards::labels_names(&targets),
        sources: &sources,
        targets: &targets,
        source_rows: job.source_rows(),
        target_rows: outcome.items,
        columns: job.columns,
        classes: &job.classes,
        settings: &job.settings,
        plan,
        outcome: &outcome,
        read_secs,
        total_secs: started.elapsed().as_secs_f64(),
        peak_bytes: memory::peak(),
    };
    write_json(&args.out.join(RECORD), true, &record)?;
    let text = match args.json {
        true => serde_json::to_string_pretty(&record)? + "\n",
        false => describe(&outcome, &args.out, record.total_secs),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    let unreached = outcome.rounds.last().map_or(0, |round| round.unreached);
    let converged = outcome.rounds.iter().all(|round| round.solve.converged);
    if !converged {
        eprintln!(
            "warning: conjugate gradients did not converge in every round; raise --max-iterations or --tolerance"
        );
    }
    let too_many = unreached as f64 > max_unreached * outcome.items as f64;
    Ok(if converged && !too_many { Outcome::Done } else { Outcome::LookAtIt })
}

/// Options that a run on shards cannot follow.
fn refuse_what_needs_memory(args: &LabelArgs) -> anyhow::Result<()> {
    let option = if args.spill.is_some() { "--spill" } else { "--cluster" };
    let given = [
        ("--graph", args.graph.is_some()),
        ("--known", args.known.is_some()),
        ("--eval-labels", args.eval_labels.is_some()),
        ("--target-ids", args.target_ids.is_some()),
        ("--skip-invalid", args.skip_invalid),
        ("--report", args.drawing.report.is_some()),
        ("--figures", args.drawing.more.figures.is_some()),
    ];
    if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
        bail!("{name} needs all rows in one memory; it cannot be combined with {option}");
    }
    if args.out.exists() && !args.out.is_dir() {
        bail!("{}: with {option}, --out is a folder, and this is a file", args.out.display());
    }
    Ok(())
}

/// Workers of a run on this machine, or of the cluster as far as it is known before it is asked.
fn machines(args: &LabelArgs, parameters: &CheckedParameters) -> Machines {
    let threads = match parameters.threads() {
        0 => rayon::current_num_threads(),
        threads => threads,
    };
    let available = memory::available().unwrap_or(8 << 30);
    Machines { workers: args.workers.unwrap_or(1), threads, memory: args.max_memory.unwrap_or(available / 2) }
}

fn spill(
    args: &LabelArgs,
    folder: &Path,
    job: &Job,
    labels: &Labels,
    parameters: &CheckedParameters,
    parts: LocalParts,
    watch: &Bars,
) -> anyhow::Result<(Labelled, Plan)> {
    let machines = machines(args, parameters);
    let plan = Plan::new(job, machines)?;
    plan.check().context("try a larger --max-memory (--dry-run shows the plan)")?;
    let work = folder.join(format!("a2lp-{:016x}", job.hash()));
    let goes_on = work.join("job.json").exists();
    if !goes_on {
        let record = args.out.join(RECORD);
        parts.outputs.iter().chain([&record]).try_for_each(|path| refuse_existing(path, args.force))?;
    }
    for path in [&args.out, &work] {
        std::fs::create_dir_all(path).with_context(|| path.display().to_string())?;
    }
    let storage: Arc<dyn Storage> = Arc::new(Folder::new(&work)?);
    Driver::prepare(&*storage, job, labels.ids())?;
    if goes_on {
        eprintln!("note: going on from {}", work.display());
    }
    let scratch = Some(work.clone());
    let mut engine = LocalEngine::new(1, machines.threads, storage.clone(), Arc::new(parts), scratch)?;
    let outcome = Driver::new(storage, &mut engine, machines.memory as usize, watch)?.run();
    let outcome = match outcome {
        Err(_) if interrupt::requested() => {
            bail!(
                "interrupted; finished stages are kept in {}, the same command goes on from there",
                work.display()
            )
        }
        outcome => outcome?,
    };
    std::fs::remove_dir_all(&work).with_context(|| work.display().to_string())?;
    Ok((outcome, plan))
}

/// A bar for every stage.
#[derive(Default)]
struct Bars {
    #[allow(clippy::type_complexity)]
    bar: Mutex<Option<(Stage, Box<dyn Fn(u64, u64) + Send + Sync>)>>,
}

impl Watch for Bars {
    fn progress(&self, stage: Stage, done: usize, total: usize) -> ControlFlow<()> {
        if interrupt::requested() {
            return ControlFlow::Break(());
        }
        if let Ok(mut bar) = self.bar.lock()
            && done <= total
        {
            if bar.as_ref().is_none_or(|(current, _)| *current != stage) {
                *bar = Some((stage, Box::new(counting_bar(template(stage)))));
            }
            if let Some((_, draw)) = &*bar {
                draw(done as u64, total as u64);
            }
        }
        ControlFlow::Continue(())
    }

    fn note(&self, text: &str) {
        eprintln!("note: {text}");
    }
}

fn template(stage: Stage) -> &'static str {
    match stage {
        Stage::Read => "reading            [{bar:32}] file {pos} of {len}  {eta} left",
        Stage::Group => "grouping           [{bar:32}] {percent:>3} %  {eta} left",
        Stage::Gather => "putting in order   [{bar:32}] {percent:>3} %  {eta} left",
        Stage::Search => "finding neighbours [{bar:32}] {percent:>3} %  {eta} left",
        Stage::Join => "joining edges      [{bar:32}] {percent:>3} %  {eta} left",
        Stage::Rounds => "propagating        [{bar:32}] round {pos} of {len}  {eta} left",
        Stage::Write => "writing            [{bar:32}] file {pos} of {len}  {eta} left",
    }
}

fn describe_plan(job: &Job, plan: &Plan) -> String {
    let Machines { workers, threads, memory } = plan.machines;
    let time = match plan.secs {
        secs if secs < 90.0 => format!("{secs:.0} s"),
        secs if secs < 5400.0 => format!("{:.0} min", secs / 60.0),
        secs => format!("{:.1} h", secs / 3600.0),
    };
    let sweeps = match workers {
        1 => String::new(),
        _ => format!(
            "sweeps      at most {} between workers in each\n",
            memory::describe(plan.most_sweep_bytes)
        ),
    };
    format!(
        "features    {} source and {} target rows × {}, {} classes, in {} files\n\
         neighbours  {} each, pruned search among {} groups\n\
         work        {} blocks; at most {} in the work folder; {} written and read\n\
{sweeps}\
         workers     {workers} × {threads} threads, {} each; at least {} are needed\n\
         time        about {time}, {:.2} machine-hours\n\
         Times are a guess from another machine. Nothing was run and nothing was written.\n",
        job.source_rows(),
        job.rows() - job.source_rows(),
        job.columns,
        job.classes.len(),
        job.parts.len(),
        job.k(),
        plan.groups,
        plan.blocks,
        memory::describe(plan.work_bytes),
        memory::describe(plan.moved_bytes),
        memory::describe(memory),
        memory::describe(plan.least_worker_bytes),
        plan.machine_hours,
    )
}

fn describe(outcome: &Labelled, out: &Path, secs: f64) -> String {
    let last = outcome.rounds.last();
    let row = |round: &a2lp_shards::Round| {
        vec![
            round.round.to_string(),
            round.anchors.to_string(),
            round.changed.to_string(),
            format!("{:.3}", round.mean_confidence),
            round.solve.iterations.to_string(),
            format!("{:.1}", round.secs),
        ]
    };
    let rows: Vec<Vec<String>> = outcome.rounds.iter().map(row).collect();
    let mut text = format!(
        "{} target items: {} labelled, {} low-confidence, {} weak, {} unreached; mean confidence {:.3}\n\
         neighbours by pruned search (recall {:.4} on sampled rows)\n",
        outcome.items,
        outcome.labelled,
        outcome.low_confidence,
        last.map_or(0, |round| round.weak),
        last.map_or(0, |round| round.unreached),
        last.map_or(0.0, |round| round.mean_confidence),
        outcome.recall,
    );
    if outcome.workers > 1 {
        text += &format!(
            "{} workers sent each other {} in each sweep\n",
            outcome.workers,
            memory::describe(outcome.sweep_bytes)
        );
    }
    text += "\n";
    text += &render(&["round", "anchors", "changed", "confidence", "iterations", "seconds"], &rows);
    text + &format!("\nlabels and {RECORD} in {}, {secs:.1} s\n", out.display())
}
