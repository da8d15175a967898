//! `a2lp label`: plan → load → label → record → write.

mod described;
pub(crate) mod input;
mod shards;

pub use shards::{ClusterRun, set_cluster_runner};

use crate::Outcome;
use crate::args::{LabelArgs, Preset};
use crate::memory;
use crate::output::{check_folder, record_path, refuse_existing, trace_path, write_compact_json, write_json};
use crate::progress::ProgressBars;
use crate::report::{self, Drawings};
use a2lp::evaluation::Evaluator;
use a2lp::{CheckedParameters, Domains, GraphMethod, Labelling, Method, NeighbourGraph, Parameters, Plan};
use a2lp_data::read_graph;
use a2lp_data::{LabelTable, check_labels_path};
use a2lp_report::record::{Circumstances, Inputs, Memory};
use a2lp_report::{Chapter, Layout, Run, RunRecord, Trace, Watcher};
use anyhow::{Context, bail};
use described::{describe, describe_plan};
use input::{Loaded, Opened};
use std::io::Write;
use std::time::Instant;

/// Share of unreached items above which the user should look, unless set.
const MAX_UNREACHED: f64 = 0.5;

pub(crate) fn run(args: &LabelArgs) -> anyhow::Result<Outcome> {
    if args.spill.is_some() || args.cluster.is_some() {
        return shards::run(args);
    }
    let finished = label_files(args, crate::command_line())?;
    for warning in &finished.warnings {
        eprintln!("warning: {warning}");
    }
    std::io::stdout().write_all(finished.text.as_bytes())?;
    Ok(finished.outcome)
}

/// What the command prints, and which files it drew.
pub(crate) struct FinishedCommand {
    outcome: Outcome,
    warnings: Vec<String>,
    text: String,
    /// Names the report and the figures.
    pub(crate) drawn: String,
}

/// Labels the files of `args` and writes every output, but prints no result. `command` goes into the record.
pub(crate) fn label_files(args: &LabelArgs, command: Vec<String>) -> anyhow::Result<FinishedCommand> {
    let started = Instant::now();
    let max_unreached = max_unreached(args)?;
    // Bad parameters are refused before any file is opened.
    resolve(args).check()?;
    let drawn = Drawings::new(&args.drawing, &args.out.with_extension("html"), args.force)?;
    if !args.dry_run {
        check_outputs(args)?;
        drawn.check()?;
    }
    let opened = input::open(args)?;
    let (parameters, plan) = plan(args, &opened)?;
    if args.dry_run {
        let plan = plan.on_this_machine();
        let text = match args.json {
            true => serde_json::to_string_pretty(&plan)? + "\n",
            false => describe_plan(args, &opened, &plan),
        };
        let (outcome, warnings, drawn) = (Outcome::Done, Vec::new(), String::new());
        return Ok(FinishedCommand { outcome, warnings, text, drawn });
    }
    memory::check(&plan, args.max_memory)?;

    let loaded = opened.load(args, &parameters)?;
    let read_secs = started.elapsed().as_secs_f64();
    let rows = loaded.target_rows();
    let labelled = label(args, loaded, &parameters, rows.is_none())?;
    write_labels(args, &labelled, rows.as_deref())?;
    let circumstances = Circumstances {
        command,
        inputs: Some(labelled.inputs),
        out: args.out.clone(),
        max_unreached,
        read_secs,
        total_secs: started.elapsed().as_secs_f64(),
        memory: Memory { planned_bytes: plan.peak_bytes, peak_bytes: memory::peak() },
    };
    let evaluator = labelled.evaluator.as_ref();
    let record = RunRecord::new(
        &labelled.labelling,
        &parameters,
        evaluator.map(Evaluator::truth),
        evaluator.map(Evaluator::rounds),
        circumstances,
    )?;
    write_compact_json(&trace_path(&args.out), args.force, &labelled.trace)?;
    write_json(&record_path(&args.out), args.force, &record)?;

    let summary = record.summary.clone();
    let description = describe(&record, &labelled.labelling);
    let title = report::title(&args.out, record.inputs.as_ref());
    let run = Run { title, record, trace: Some(labelled.trace) };
    let drawn = drawn.draw(&mut [Chapter::Run(run)], parameters.threads())?;
    let text = match args.json {
        true => serde_json::to_string_pretty(&summary)? + "\n",
        false => description + &drawn,
    };
    let too_many = summary.unreached as f64 > max_unreached * summary.items as f64;
    let strict = args.strict && !summary.warnings.is_empty();
    let outcome = if summary.converged && !too_many && !strict { Outcome::Done } else { Outcome::LookAtIt };
    let warnings = summary.warnings.into_iter().map(|warning| warning.message).collect();
    Ok(FinishedCommand { outcome, warnings, text, drawn })
}

/// The data of a run and its parameters, to be run again.
pub(crate) struct Prepared {
    pub(crate) domains: Domains,
    pub(crate) parameters: CheckedParameters,
    /// The rows of the target's files that the items are, where rows were left out.
    pub(crate) rows: Option<Vec<usize>>,
    pub(crate) ids: Option<Vec<String>>,
}

/// Reads what a run reads, on as many threads.
pub(crate) fn prepare_again(args: &LabelArgs, threads: usize) -> anyhow::Result<Prepared> {
    let opened = input::open(args)?;
    let (_, plan) = plan(args, &opened)?;
    memory::check(&plan, args.max_memory)?;
    let parameters = resolve(args).threads(threads).check()?;
    let loaded = opened.load(args, &parameters)?;
    Ok(Prepared { rows: loaded.target_rows(), domains: loaded.domains, parameters, ids: loaded.ids })
}

fn max_unreached(args: &LabelArgs) -> anyhow::Result<f64> {
    let share = args.max_unreached.unwrap_or(MAX_UNREACHED);
    if !(0.0..=1.0).contains(&share) {
        bail!("--max-unreached {share}: a share between 0 and 1 is needed");
    }
    Ok(share)
}

/// The parameters of the run and what it will take. Quality is measured unless its graph would be slow: NN-Descent cannot search
/// for neighbours from both domains.
fn plan(args: &LabelArgs, opened: &Opened) -> anyhow::Result<(CheckedParameters, Plan)> {
    let (shape, asked) = (opened.shape(), resolve(args));
    let (resolved, chosen) = asked.clone().check()?.resolve(shape, args.graph.is_some());
    let is_slow = resolved.plan(shape).method == Some(GraphMethod::Nndescent);
    let quality = !args.no_quality && (!is_slow || chosen.method == Method::Consensus);
    let parameters = asked.quality(quality).check()?;
    let mut plan = parameters.resolve(shape, args.graph.is_some()).0.plan(shape);
    plan.chosen = chosen;
    // The system does not get back all memory that reading held.
    let reading = opened.source.reading_bytes().max(opened.target.reading_bytes());
    plan.peak_bytes = (plan.peak_bytes + reading / 3).max(plan.feature_bytes + reading);
    Ok((parameters, plan))
}

/// Flags over preset over defaults.
fn resolve(args: &LabelArgs) -> Parameters {
    args.parameters.apply(Preset::parameters(args.preset))
}

/// Refuses before any work if an output is in the way.
fn check_outputs(args: &LabelArgs) -> anyhow::Result<()> {
    check_labels_path(&args.out, args.force)?;
    for path in [record_path(&args.out), trace_path(&args.out)] {
        refuse_existing(&path, args.force)?;
    }
    check_folder(&args.out)
}

/// A finished labelling and what goes into its record.
struct Labelled {
    labelling: Labelling,
    trace: Trace,
    evaluator: Option<Evaluator>,
    ids: Option<Vec<String>>,
    inputs: Inputs,
}

fn label(
    args: &LabelArgs,
    loaded: Loaded,
    parameters: &CheckedParameters,
    with_thumbnails: bool,
) -> anyhow::Result<Labelled> {
    let Loaded { domains, truth, ids, inputs } = loaded;
    let graph = args.graph.as_deref().map(read_graph).transpose()?;
    let evaluator = truth.map(Evaluator::new);
    let truth = evaluator.as_ref().map(Evaluator::truth);
    let watcher = Watcher::new(&domains, parameters, truth);
    let layout = Layout::new(domains.features(), parameters)?;
    let observer = (ProgressBars::default(), (evaluator.as_ref(), &watcher));
    let labelling = run_method(args, domains, graph, parameters, &observer)?;
    if parameters.guard() && parameters.method() != Method::Lp && labelling.guard.is_none() {
        eprintln!("note: --guard cannot measure quality over class centres; the labels are kept");
    }
    let mut trace = watcher.trace(&layout, &labelling, truth, ids.as_deref());
    // A finished run is not lost because its pictures are missing.
    if let [target] = &args.target[..]
        && with_thumbnails
        && let Err(error) = report::add_thumbnails(&mut trace, target)
    {
        eprintln!("note: no thumbnails for the report: {error:#}");
    }
    Ok(Labelled { labelling, trace, evaluator, ids, inputs })
}

/// Runs the method; an error about a given graph names its file.
fn run_method(
    args: &LabelArgs,
    domains: Domains,
    graph: Option<NeighbourGraph>,
    parameters: &CheckedParameters,
    observer: &dyn a2lp::Observer,
) -> anyhow::Result<Labelling> {
    let labelling = a2lp::Run::new(domains, parameters).graph(graph).observe(observer).label();
    match &args.graph {
        Some(path) => labelling.with_context(|| path.display().to_string()),
        None => Ok(labelling?),
    }
}

fn write_labels(args: &LabelArgs, labelled: &Labelled, rows: Option<&[usize]>) -> anyhow::Result<()> {
    let table = LabelTable {
        rows,
        ids: labelled.ids.as_deref(),
        probabilities: args.probabilities,
        ..LabelTable::of(&labelled.labelling)
    };
    Ok(table.write(&args.out, args.force)?)
}
