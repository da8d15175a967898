//! `a2lp label`: two feature files in, one labels file out.

mod described;

use crate::Outcome;
use crate::args::{LabelArgs, Preset};
use crate::memory;
use crate::output::{
    LabelTable, check_labels_path, record_path, refuse_existing, trace_path, write_compact_json, write_json,
};
use crate::progress::ProgressBars;
use crate::report::{self, Drawn};
use a2lp::evaluation::{Evaluator, RoundScore, Score, TargetTruth};
use a2lp::{
    CheckedParameters, Classes, Domains, FeatureMatrix, GraphMethod, Labelling, Labels, Method,
    NeighbourGraph, Parameters, Shape,
};
use a2lp_data::{FeatureFile, read_class_names, read_graph, read_ids, read_labels, stack};
use a2lp_report::record::{Consensus, Evaluation, Guard, Input, Inputs, Memory, Summary, Timings, settings};
use a2lp_report::{Chapter, Layout, Run, RunRecord, Trace, Watcher};
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
        plan = parameters.plan(opened.shape());
    }
    // What reading held is not all given back to the system.
    let reading = opened.source.reading_bytes().max(opened.target.reading_bytes());
    plan.peak_bytes = (plan.peak_bytes + reading / 3).max(plan.feature_bytes + reading);
    if args.guard {
        // The features again, beside what the first run leaves behind.
        plan.peak_bytes += plan.feature_bytes + plan.labels_bytes;
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

    let loaded = opened.load(args, &parameters)?;
    let read_secs = started.elapsed().as_secs_f64();
    let graph =
        args.graph.as_deref().map(|path| Ok::<_, anyhow::Error>((path, read_graph(path)?))).transpose()?;
    let rows = loaded.target_rows();
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
    if let [target] = &args.target[..]
        && rows.is_none()
        && let Err(error) = report::add_thumbnails(&mut trace, target)
    {
        eprintln!("note: no thumbnails for the report: {error:#}");
    }
    let summary = Summary::new(&args.out, &labelling, score.as_ref());
    let votes = labelling.votes();
    let table = LabelTable {
        classes: &labelling.classes,
        labels: &labelling.pseudo_labels,
        rows: rows.as_deref(),
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
    let strict = args.strict && !summary.warnings.is_empty();
    let outcome = if summary.converged && !too_many && !strict { Outcome::Done } else { Outcome::LookAtIt };
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
        let watcher = Watcher::new(&domains, parameters, truth);
        let layout = Layout::new(domains.features(), parameters)?;
        let observer = (ProgressBars::default(), (evaluator.as_ref(), &watcher));
        let labelling = match graph {
            Some((path, graph)) => a2lp::label_on_graph(domains, graph, parameters, &observer)
                .with_context(|| path.display().to_string())?,
            None => a2lp::label(domains, parameters, &observer)?,
        };
        let score = truth.map(|truth| truth.score(labelling.pseudo_labels.labels())).transpose()?;
        let trace = watcher.trace(&layout, &labelling, truth, ids);
        Ok(Found { labelling, trace, score, round_scores: evaluator.as_ref().map(Evaluator::rounds) })
    }
}

/// Flags over preset over defaults.
fn resolve(args: &LabelArgs) -> Parameters {
    args.parameters.apply(Preset::parameters(args.preset))
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

impl Loaded {
    /// The rows of the target's files that the items are, where they are not simply all of them.
    fn target_rows(&self) -> Option<Vec<usize>> {
        let Input { rows, skipped_rows, .. } = &self.inputs.target;
        let kept = || (0..*rows).filter(|row| skipped_rows.binary_search(row).is_err()).collect();
        (!skipped_rows.is_empty()).then(kept)
    }
}

fn open(args: &LabelArgs) -> anyhow::Result<Opened> {
    let fields = args.columns.names();
    let from_stdin = args.source.iter().chain(&args.target).filter(|path| *path == Path::new("-"));
    if from_stdin.count() > 1 {
        bail!("only one set of features can come from standard input");
    }
    let mut source = FeatureFile::open_set(&args.source, &fields)?;
    let mut target = FeatureFile::open_set(&args.target, &fields)?;
    if source.columns() != target.columns() {
        bail!(
            "{} has {} columns, {} has {}; both domains need features of the same extractor",
            source.path().display(),
            source.columns(),
            target.path().display(),
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
    let labels_path = args.source_labels.clone().unwrap_or_else(|| source.path().to_path_buf());
    let labels = match &args.source_labels {
        Some(path) => read_labels(path, &fields)?,
        None => source.labels()?.with_context(|| {
            format!("{} holds no labels; give them with --source-labels", labels_path.display())
        })?,
    };
    check_count(&labels_path, labels.len(), "labels", &source)?;
    let labels =
        labels.into_class_names(names.as_deref()).with_context(|| labels_path.display().to_string())?;
    let labels = match &names {
        Some(names) => Labels::within(Classes::new(names.clone())?, &labels)?,
        None => Labels::new(&labels),
    };

    let ids = match &args.target_ids {
        Some(path) => {
            let ids = read_ids(path, &fields)?;
            check_count(path, ids.len(), "ids", &target)?;
            Some(ids)
        }
        None => target.ids()?,
    };
    let truth = match &args.eval_labels {
        Some(path) => {
            let truth = read_labels(path, &fields)?;
            check_count(path, truth.len(), "labels", &target)?;
            Some(TargetTruth::new(labels.classes(), &truth.into_known_names(names.as_deref())))
        }
        None => None,
    };
    if let Some(truth) = &truth {
        note_unknown_classes(truth);
    }
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
    fn load(self, args: &LabelArgs, parameters: &CheckedParameters) -> anyhow::Result<Loaded> {
        let Opened { source, target, mut labels, labels_path, mut truth, mut ids } = self;
        let (mut source_input, mut target_input) = (input(&source, args), input(&target, args));
        let mut source_rows = source.rows();
        let mut files = [source, target];
        let mut features = stack(&mut files)?;
        // Before rows are left out, so that the numbers are those of the files.
        if parameters.similarity().scales_rows() {
            note_zeros(&features, source_rows, &files);
        }
        let invalid = features.invalid_rows();
        if let Some(&row) = invalid.first() {
            if !args.skip_invalid {
                let (path, at) = match row.checked_sub(source_rows) {
                    None => files[0].locate(row),
                    Some(row) => files[1].locate(row),
                };
                let column = features.row(row).iter().position(|value| !value.is_finite()).unwrap_or(0);
                let others = match invalid.len() - 1 {
                    0 => String::new(),
                    others => format!(" and {others} more rows hold NaN or infinities"),
                };
                bail!(
                    "{}: row {at}, column {column} is {}{others}; repair such rows, or leave them out with --skip-invalid",
                    path.display(),
                    features.row(row)[column],
                );
            }
            if args.graph.is_some() {
                bail!(
                    "--graph is over all rows, so none can be left out; repair the features, or search anew without --graph"
                );
            }
            let split = invalid.partition_point(|&row| row < source_rows);
            source_input.skipped_rows = invalid[..split].to_vec();
            target_input.skipped_rows = invalid[split..].iter().map(|row| row - source_rows).collect();
            features.remove_rows(&invalid);
            source_rows -= split;
            labels = labels.without_rows(&source_input.skipped_rows);
            truth = truth.map(|truth| truth.without_rows(&target_input.skipped_rows));
            if let Some(ids) = &mut ids {
                a2lp::remove_rows(ids, &target_input.skipped_rows);
            }
            note_skipped(&source_input);
            note_skipped(&target_input);
        }
        let inputs = Inputs { source: source_input, source_labels: labels_path, target: target_input };
        let domains = Domains::stacked(features, source_rows, labels)?;
        Ok(Loaded { domains, truth, ids, inputs })
    }
}

/// A word on rows without a direction, which the cosine similarity knows no neighbours for.
fn note_zeros(features: &FeatureMatrix, source_rows: usize, files: &[FeatureFile; 2]) {
    let zero = |row: &usize| features.row(*row).iter().all(|&value| value == 0.0);
    let zeros: Vec<usize> = (0..features.rows()).filter(zero).collect();
    let split = zeros.partition_point(|&row| row < source_rows);
    for (rows, file, first) in [(&zeros[..split], &files[0], 0), (&zeros[split..], &files[1], source_rows)] {
        if let Some(&row) = rows.first() {
            let (path, row) = file.locate(row - first);
            eprintln!(
                "note: {}: {} rows are all zeros, the first is row {row}; by cosine similarity they have no neighbours",
                path.display(),
                rows.len()
            );
        }
    }
}

/// Lists rows that were left out, as far as anybody would read on.
fn note_skipped(input: &Input) {
    const SHOWN: usize = 20;
    let rows = &input.skipped_rows;
    if rows.is_empty() {
        return;
    }
    let shown: Vec<String> = rows.iter().take(SHOWN).map(usize::to_string).collect();
    let more = if rows.len() > SHOWN { ", … (all are in the run record)" } else { "" };
    eprintln!(
        "note: {}: {} of {} rows hold NaN or infinities and are left out: {}{more}",
        input.path.display(),
        rows.len(),
        input.rows,
        shown.join(", ")
    );
}

fn input(file: &FeatureFile, args: &LabelArgs) -> Input {
    let mut paths = file.paths().map(Path::to_path_buf);
    Input {
        path: paths.next().unwrap_or_default(),
        rows: file.rows(),
        columns: file.columns(),
        element_type: file.element().to_string(),
        feature_column: args.columns.names().features,
        more_files: paths.collect(),
        skipped_rows: Vec::new(),
    }
}

fn check_count(path: &Path, count: usize, what: &str, features: &FeatureFile) -> anyhow::Result<()> {
    if count != features.rows() {
        bail!(
            "{} has {count} {what}, but {} has {} rows; one per row is needed",
            path.display(),
            features.path().display(),
            features.rows()
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
