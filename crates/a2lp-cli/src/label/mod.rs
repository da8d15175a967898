//! `a2lp label`: two feature files in, one labels file out.

mod described;

use crate::Outcome;
use crate::args::{LabelArgs, Preset, SimilarityArg};
use crate::memory;
use crate::output::{
    LabelTable, check_labels_path, record_path, refuse_existing, trace_path, write_compact_json, write_json,
};
use crate::progress::Onlooker;
use crate::report::{self, Drawn};
use a2lp::evaluation::{Evaluator, RoundScore, Score, TargetTruth};
use a2lp::{
    CheckedParameters, Classes, Domain, Domains, Error, GraphMethod, Labelling, Labels, Method,
    NeighbourGraph, Parameters, Shape,
};
use a2lp_data::{FeatureFile, read_class_names, read_graph, read_ids, read_labels, stack};
use a2lp_report::record::{Consensus, Evaluation, Guard, Input, Inputs, Memory, Summary, Timings, settings};
use a2lp_report::{Chapter, Run, RunRecord, Trace, Watcher};
use anyhow::{Context, bail};
use described::{describe, describe_plan};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

/// Share of unreached items above which the user should look, unless set.
const MAX_UNREACHED: f64 = 0.5;

pub(crate) fn run(args: &LabelArgs) -> anyhow::Result<Outcome> {
    let done = work(args, crate::command_line())?;
    for warning in &done.warnings {
        eprintln!("warning: {warning}");
    }
    std::io::stdout().write_all(done.text.as_bytes())?;
    Ok(done.outcome)
}

/// What a run has to say when it is over.
pub(crate) struct Done {
    outcome: Outcome,
    warnings: Vec<String>,
    text: String,
    /// Which pictures went where.
    pub(crate) drawn: String,
}

/// Does all that was asked for but talk about it. `command` goes into the record.
pub(crate) fn work(args: &LabelArgs, command: Vec<String>) -> anyhow::Result<Done> {
    let started = Instant::now();
    let mut parameters = resolve(args).check()?;
    let max_unreached = args.max_unreached.unwrap_or(MAX_UNREACHED);
    if !(0.0..=1.0).contains(&max_unreached) {
        bail!("--max-unreached {max_unreached}: a share between 0 and 1 is needed");
    }
    let drawn = Drawn::new(&args.looks, &args.out.with_extension("html"), args.force)?;
    if !args.dry_run {
        check_outputs(args)?;
        drawn.check()?;
    }
    let opened = open(args)?;
    let mut plan = parameters.plan(opened.shape());
    // Its graph knows no search for so many rows; who wants the score then, asks for the guard.
    let costly = matches!(plan.method, Some(GraphMethod::Pruned | GraphMethod::Nndescent));
    if args.guard || !args.no_quality && !costly {
        parameters = resolve(args).quality(true).check()?;
    }
    if args.guard {
        plan.peak_bytes += plan.feature_bytes;
    }
    if args.dry_run {
        let text = if args.json {
            serde_json::to_string_pretty(&plan)? + "\n"
        } else {
            describe_plan(args, &opened, &plan)
        };
        return Ok(Done { outcome: Outcome::Done, warnings: Vec::new(), text, drawn: String::new() });
    }
    memory::check(&plan, args.max_memory)?;

    let loaded = opened.load(args)?;
    let read_secs = started.elapsed().as_secs_f64();
    let graph =
        args.graph.as_deref().map(|path| Ok::<_, anyhow::Error>((path, read_graph(path)?))).transpose()?;
    let (truth, ids) = (loaded.truth.as_ref(), loaded.ids.as_deref());
    let spare =
        (args.guard && parameters.method() != Method::Lp).then(|| (loaded.domains.clone(), graph.clone()));
    let mut found = Found::of(loaded.domains, &parameters, graph, truth, ids)?;
    let mut guard = None;
    if args.guard && found.labelling.quality.is_none() {
        eprintln!("note: --guard cannot measure quality over class centres; the labels are kept");
    }
    if let (Some((domains, graph)), Some(quality)) = (spare, found.labelling.quality) {
        let plain = resolve(args).method(Method::Lp).quality(true).check()?;
        let lp = Found::of(domains, &plain, graph, truth, ids)?;
        let lp_score = lp.labelling.quality.map_or(0.0, |quality| quality.score);
        let fell_back = falls_back(quality.score, lp_score);
        guard = Some(Guard { method: parameters.method(), score: quality.score, lp_score, fell_back });
        if fell_back {
            found = lp;
        }
    }
    let Found { labelling, mut trace, score, round_scores } = found;
    // A finished run is not lost for want of its pictures.
    if let Err(error) = report::add_thumbnails(&mut trace, &args.target) {
        eprintln!("note: no thumbnails for the report: {error:#}");
    }
    let summary = Summary::new(&args.out, &labelling, score.as_ref());
    let votes = labelling.votes();
    let table = LabelTable {
        classes: &labelling.classes,
        labels: &labelling.pseudo_labels,
        ids,
        votes: votes.as_deref(),
        probabilities: args.probabilities,
    };
    table.write(&args.out, args.force)?;
    let evaluation =
        score.clone().zip(round_scores.clone()).map(|(score, rounds)| Evaluation { score, rounds });
    let record = RunRecord {
        a2lp: env!("CARGO_PKG_VERSION").into(),
        command,
        finished_unix_secs: SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |t| t.as_secs()),
        inputs: Some(loaded.inputs),
        settings: settings(&parameters, max_unreached),
        summary: summary.clone(),
        evaluation,
        graph: labelling.graph.clone(),
        rounds: labelling.rounds.clone(),
        consensus: Consensus::new(&labelling, truth),
        guard,
        timings: Timings {
            read_secs,
            neighbours_secs: labelling.neighbours_secs,
            rounds_secs: labelling.rounds.iter().map(|r| r.graph_secs + r.solve_secs).sum(),
            total_secs: started.elapsed().as_secs_f64(),
        },
        memory: Memory { planned_bytes: plan.peak_bytes, peak_bytes: memory::peak() },
    };
    write_compact_json(&trace_path(&args.out), args.force, &trace)?;
    write_json(&record_path(&args.out), args.force, &record)?;
    let told = describe(&record, &labelling);
    let title = report::title(&args.out, record.inputs.as_ref());
    let run = Run { title, record, trace: Some(trace) };
    let drawn = drawn.draw(&mut [Chapter::Run(run)], parameters.threads())?;

    let text = if args.json { serde_json::to_string_pretty(&summary)? + "\n" } else { told + &drawn };
    let too_many = summary.unreached as f64 > max_unreached * summary.items as f64;
    let outcome = if summary.converged && !too_many { Outcome::Done } else { Outcome::LookAtIt };
    let warnings = summary.warnings.into_iter().map(|warning| warning.message).collect();
    Ok(Done { outcome, warnings, text, drawn })
}

/// How much better the quality of plain label propagation must be to be taken instead.
const GUARD_MARGIN: f64 = 0.01;

/// Is plain label propagation to be taken instead?
fn falls_back(score: f64, lp_score: f64) -> bool {
    score < lp_score - GUARD_MARGIN
}

/// What a run found, and what there is to see of it.
struct Found {
    labelling: Labelling,
    trace: Trace,
    score: Option<Score>,
    round_scores: Option<Vec<RoundScore>>,
}

impl Found {
    fn of(
        domains: Domains,
        parameters: &CheckedParameters,
        graph: Option<(&Path, NeighbourGraph)>,
        truth: Option<&TargetTruth>,
        ids: Option<&[String]>,
    ) -> anyhow::Result<Self> {
        let evaluator = truth.cloned().map(Evaluator::new);
        let watcher = Watcher::new(&domains, parameters, truth)?;
        let onlooker = Onlooker::new(evaluator.as_ref(), Some(&watcher));
        let labelling = match graph {
            Some((path, graph)) => a2lp::label_on_graph(domains, graph, parameters, &onlooker)
                .with_context(|| path.display().to_string())?,
            None => a2lp::label(domains, parameters, &onlooker)?,
        };
        let score = truth.map(|truth| truth.score(labelling.pseudo_labels.labels())).transpose()?;
        let trace = watcher.trace(&labelling, truth, ids);
        Ok(Found { labelling, trace, score, round_scores: evaluator.as_ref().map(Evaluator::rounds) })
    }
}

/// Flags over preset over defaults.
fn resolve(args: &LabelArgs) -> Parameters {
    let mut p = Preset::parameters(args.preset);
    macro_rules! set {
        ($($name:ident),*) => { $(if let Some(value) = args.$name { p = p.$name(value); })* };
    }
    set!(
        method,
        views,
        alpha,
        rounds,
        min_confidence,
        graph_method,
        source_nodes,
        unreached,
        threads,
        solver,
        tolerance
    );
    set!(anchor_weights, anchor_mode, anchor_space, label_weight, seed);
    match args.neighbours {
        Some(a2lp::Neighbours::Nearest(k)) => p = p.neighbours(k),
        Some(a2lp::Neighbours::All) => p = p.full_graph(),
        None => {}
    }
    let similarity = args.similarity.unwrap_or(SimilarityArg::Cosine).with(args.gauss_sigma2.unwrap_or(1.0));
    p.similarity(similarity).k_includes_self(args.k_includes_self).stop_when_stable(args.stop_when_stable)
}

/// Refuses before any work when an output is in the way.
fn check_outputs(args: &LabelArgs) -> anyhow::Result<()> {
    check_labels_path(&args.out, args.force)?;
    for path in [record_path(&args.out), trace_path(&args.out)] {
        refuse_existing(&path, args.force)?;
    }
    let folder = args.out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        bail!("{}: no such folder; make it first", folder.display());
    }
    Ok(())
}

/// The input of a run, features still on disk.
struct Opened {
    source: FeatureFile,
    target: FeatureFile,
    labels: Labels,
    labels_path: PathBuf,
    truth: Option<TargetTruth>,
    ids: Option<Vec<String>>,
}

/// The input of a run, with the truth kept apart.
struct Loaded {
    domains: Domains,
    truth: Option<TargetTruth>,
    ids: Option<Vec<String>>,
    inputs: Inputs,
}

fn open(args: &LabelArgs) -> anyhow::Result<Opened> {
    let mut source = FeatureFile::open(&args.source)?;
    let mut target = FeatureFile::open(&args.target)?;
    if source.columns() != target.columns() {
        bail!(
            "{} has {} columns, {} has {}; both domains need features of the same extractor",
            args.source.display(),
            source.columns(),
            args.target.display(),
            target.columns()
        );
    }
    for file in [&source, &target] {
        if file.rows() == 0 || file.columns() == 0 {
            bail!(
                "{}: {} rows of {} features; at least one of each is needed",
                file.path().display(),
                file.rows(),
                file.columns()
            );
        }
    }

    let names = match &args.class_names {
        Some(path) => Some(read_class_names(path)?),
        None => source.class_names()?,
    };
    let labels_path = args.source_labels.as_deref().unwrap_or(&args.source);
    let labels = match &args.source_labels {
        Some(path) => read_labels(path)?,
        None => source.labels()?.with_context(|| {
            format!("{} holds no labels; give them with --source-labels", args.source.display())
        })?,
    };
    check_count(labels_path, labels.len(), "labels", &args.source, source.rows())?;
    let labels =
        labels.into_class_names(names.as_deref()).with_context(|| labels_path.display().to_string())?;
    let labels = match &names {
        Some(names) => Labels::within(Classes::new(names.clone())?, &labels)?,
        None => Labels::new(&labels),
    };

    let ids = match &args.target_ids {
        Some(path) => {
            let ids = read_ids(path)?;
            check_count(path, ids.len(), "ids", &args.target, target.rows())?;
            Some(ids)
        }
        None => target.ids()?,
    };
    let truth = match &args.eval_labels {
        Some(path) => {
            let truth = read_labels(path)?;
            check_count(path, truth.len(), "labels", &args.target, target.rows())?;
            Some(TargetTruth::new(labels.classes(), &truth.into_known_names(names.as_deref())))
        }
        None => None,
    };
    if let Some(truth) = &truth {
        note_unknown_classes(truth);
    }

    let labels_path = labels_path.to_path_buf();
    Ok(Opened { source, target, labels, labels_path, truth, ids })
}

/// A word on classes that only the truth has.
pub(crate) fn note_unknown_classes(truth: &TargetTruth) {
    if let [first, ..] = truth.unknown_classes() {
        let count = truth.unknown_classes().len();
        eprintln!(
            "note: --eval-labels has {count} classes that the source lacks ({first}…); their items count as wrong"
        );
    }
}

impl Opened {
    fn shape(&self) -> Shape {
        Shape {
            source_rows: self.source.rows(),
            target_rows: self.target.rows(),
            columns: self.source.columns(),
            classes: self.labels.classes().len(),
        }
    }

    /// Reads the features.
    fn load(self, args: &LabelArgs) -> anyhow::Result<Loaded> {
        let Opened { source, target, labels, labels_path, truth, ids } = self;
        let inputs = Inputs { source: input(&source), source_labels: labels_path, target: input(&target) };
        let source_rows = source.rows();
        let features = stack(&mut [source, target])?;
        let domains = Domains::stacked(features, source_rows, labels).map_err(|error| match error {
            Error::NotFinite { domain, row, column, value } => {
                let path = if domain == Domain::Source { &args.source } else { &args.target };
                let path = path.display();
                anyhow::anyhow!("{path}: row {row}, column {column} is {value}; remove or repair such rows (a2lp inspect {path} counts them)")
            }
            other => other.into(),
        })?;
        Ok(Loaded { domains, truth, ids, inputs })
    }
}

fn input(file: &FeatureFile) -> Input {
    Input {
        path: file.path().to_path_buf(),
        rows: file.rows(),
        columns: file.columns(),
        element_type: file.element().to_string(),
    }
}

fn check_count(path: &Path, count: usize, what: &str, features: &Path, rows: usize) -> anyhow::Result<()> {
    if count != rows {
        bail!(
            "{} has {count} {what}, but {} has {rows} rows; one per row is needed",
            path.display(),
            features.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_falls_back_only_for_clearly_better_labels() {
        assert!(falls_back(0.80, 0.82));
        assert!(!falls_back(0.80, 0.805));
        assert!(!falls_back(0.80, 0.70));
    }
}
