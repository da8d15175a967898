//! `a2lp experiment`: the paper's tables and figures as commands, on any folder of domains.
//!
//! One file per experiment. Each makes cells (one run or a few that share a neighbour search), has the [`Notebook`] keep
//! them, and prints a table.

mod ablations;
mod affinity;
mod clusters;
#[cfg(feature = "networks")]
mod learners;
mod manifest;
mod mix;
mod noise;
mod notebook;
mod pairs;
mod paper;
mod rounds;
mod sample;
mod scenarios;
mod timing;
mod unknown;

use crate::Outcome;
use crate::args::{ExperimentArgs, ExperimentCommand, InitArgs, Preset, ReportOptions};
use crate::interrupt::CtrlC;
use crate::report::{Drawings, with_pictures};
use a2lp::evaluation::{Evaluator, RoundScore, Score, TargetTruth};
use a2lp::{Domains, Labelling, Method, NeighbourGraph, Parameters, Run, SourceNodes, Unknown};
use a2lp_report::{Chapter, Chart, Experiment};
use anyhow::bail;
use manifest::{Domain, Manifest, pair};
use notebook::Notebook;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

pub(crate) fn run(command: &ExperimentCommand) -> anyhow::Result<Outcome> {
    match command {
        ExperimentCommand::Init(args) => init(args),
        #[cfg(feature = "networks")]
        ExperimentCommand::Pairs(args) if !args.learners.is_empty() => learners::run(args),
        ExperimentCommand::Pairs(args) => pairs::run(&args.common, args.method),
        ExperimentCommand::Rounds(args) => rounds::run(args),
        ExperimentCommand::Similarity(args) => ablations::similarity(args),
        ExperimentCommand::Alpha(args) => ablations::alpha(args),
        ExperimentCommand::Noise(args) => noise::run(args),
        ExperimentCommand::Weights(args) => ablations::weights(args),
        ExperimentCommand::Variant(args) => ablations::variant(args),
        ExperimentCommand::Timing(args) => timing::run(args),
        ExperimentCommand::Affinity(args) => affinity::run(args),
        ExperimentCommand::Mix(args) => mix::run(args),
        ExperimentCommand::Unknown(args) => unknown::run(args),
    }
}

fn init(args: &InitArgs) -> anyhow::Result<Outcome> {
    let manifest = Manifest::find(&args.dir)?;
    let path = manifest.write(args.force)?;
    let names: Vec<&str> = manifest.domain.iter().map(|domain| domain.name.as_str()).collect();
    let text = format!(
        "{} domains in {}: {}\nnow for example: a2lp experiment pairs {}\n",
        names.len(),
        path.display(),
        names.join(", "),
        args.dir.display()
    );
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// An experiment under way: what was asked for, and the folder its results go to.
struct Study<'a> {
    args: &'a ExperimentArgs,
    name: &'static str,
    manifest: Manifest,
}

impl<'a> Study<'a> {
    fn new(name: &'static str, args: &'a ExperimentArgs) -> anyhow::Result<Self> {
        let study = Study { args, name, manifest: Manifest::read(&args.dir)? };
        study.parameters().check()?;
        if args.report.as_ref().is_some_and(Option::is_some) {
            let drawing = ReportOptions { report: args.report.clone(), ..ReportOptions::default() };
            Drawings::new(&drawing, std::path::Path::new(""), args.force)?.check()?;
        }
        Ok(study)
    }

    /// Settings over preset over defaults; the method is the paper's.
    fn parameters(&self) -> Parameters {
        let args = self.args;
        let mut p = Preset::parameters(args.preset).method(Method::A2lp).unknown(Unknown::Off);
        p = p.threads(args.threads);
        if let Some(k) = args.neighbours {
            p = p.neighbours(k);
        }
        if let Some(alpha) = args.alpha {
            p = p.alpha(alpha);
        }
        if let Some(rounds) = args.rounds {
            p = p.rounds(rounds);
        }
        if let Some(method) = args.graph_method {
            p = p.graph_method(method);
        }
        // Which source rows become nodes is for the experiments to vary.
        p.k_includes_self(args.k_includes_self).source_nodes(SourceNodes::All)
    }

    /// The two domains of an experiment on one pair: as asked for, else the first two.
    fn pair_names(&self) -> anyhow::Result<(String, String)> {
        let name = |asked: &Option<String>, at: usize| match asked {
            Some(name) => self.manifest.files(name).map(|files| files.name.clone()),
            None => match self.manifest.domain.get(at) {
                Some(domain) => Ok(domain.name.clone()),
                None => bail!("{} lists one domain only; a pair is needed", self.manifest.name),
            },
        };
        let names = (name(&self.args.source, 0)?, name(&self.args.target, 1)?);
        if names.0 == names.1 {
            bail!("source and target are both '{}'; name two with --source and --target", names.0);
        }
        Ok(names)
    }

    /// The folder for results: cells of this experiment on these `domains` with these further settings.
    fn notebook(&self, domains: &[&str], cells: usize, further: Value) -> anyhow::Result<Notebook> {
        let files: Vec<Value> =
            domains.iter().map(|name| self.manifest.fingerprint(name)).collect::<anyhow::Result<_>>()?;
        let settings = json!({
            "experiment": self.name,
            "a2lp": env!("CARGO_PKG_VERSION"),
            "folder": self.args.dir,
            "domains": files,
            "parameters": self.parameters(),
            "seeds": self.args.seeds,
            "per_class": self.args.per_class,
            "further": further,
        });
        let folder = match &self.args.out {
            Some(out) => out.clone(),
            None => PathBuf::from(format!("a2lp-{}-{}", self.name, self.manifest.name)),
        };
        // Through text, so that it compares equal with what is read back.
        let settings = serde_json::from_str(&serde_json::to_string(&settings)?)?;
        Notebook::open(&folder, settings, cells, self.args.force)
    }

    /// Prints the table and writes the results, and the page if one was asked for.
    fn finish(&self, notebook: &Notebook, finding: Finding) -> anyhow::Result<Outcome> {
        let Finding { title, text, header, rows, chart } = finding;
        let shown = Experiment {
            title,
            text,
            header,
            rows,
            chart,
            command: crate::command_line(),
            settings: notebook.settings().clone(),
            charts: Vec::new(),
            pictures: Vec::new(),
        };
        let mut written = notebook.finish(&shown)?;
        let said = format!("{}\n\n{}\n", shown.title, shown.text);
        let drawing = ReportOptions { report: self.args.report.clone(), ..ReportOptions::default() };
        if drawing.report.is_some() {
            let shown = with_pictures(shown, notebook.folder())?;
            let usual = notebook.folder().join("report.html");
            // The page in the experiment's own folder belongs to it, like its results.
            let own = drawing.report == Some(None);
            let drawn = Drawings::new(&drawing, &usual, own || self.args.force)?;
            written += &drawn.draw(&mut [Chapter::Experiment(shown)], self.args.threads)?;
        }
        write!(std::io::stdout().lock(), "{said}{written}")?;
        Ok(Outcome::Done)
    }
}

/// What an experiment found: the tables as text, the rows for a file, and the chart for a page.
struct Finding {
    title: String,
    text: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    chart: Option<Chart>,
}

/// Dots of `columns` of a table whose first column names the rows.
fn dot_chart(rows: &[Vec<String>], columns: &[(usize, &str)]) -> Chart {
    let value = |row: &[String], column: usize| row[column].parse().unwrap_or(0.0);
    Chart::Dots {
        series: columns.iter().map(|(_, name)| name.to_string()).collect(),
        lines: rows
            .iter()
            .map(|row| (row[0].clone(), columns.iter().map(|&(column, _)| value(row, column)).collect()))
            .collect(),
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

/// How often labels were right.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Accuracy {
    overall: f64,
    class_mean: f64,
    classes: BTreeMap<String, f64>,
}

impl From<Score> for Accuracy {
    fn from(score: Score) -> Self {
        Accuracy {
            overall: score.accuracy,
            class_mean: score.mean_class_accuracy,
            classes: score.classes.iter().map(|class| (class.class.clone(), class.accuracy())).collect(),
        }
    }
}

/// One run, and its rounds against the truth.
struct Labelled {
    labelling: Labelling,
    truth: TargetTruth,
    rounds: Vec<RoundScore>,
}

impl Labelled {
    /// The accuracy after the last round.
    fn accuracy(&self) -> anyhow::Result<Accuracy> {
        Ok(self.truth.score(self.labelling.pseudo_labels.labels())?.into())
    }

    /// The accuracy after the first round: plain label propagation.
    fn first_accuracy(&self) -> anyhow::Result<Accuracy> {
        Ok(self.truth.score(&self.labelling.labels_by_round[0])?.into())
    }
}

/// Labels `target` from `source`, over a graph that was found before if there is one.
fn run_pair(
    source: &Domain,
    target: &Domain,
    parameters: Parameters,
    graph: Option<&NeighbourGraph>,
) -> anyhow::Result<Labelled> {
    let domains = pair(source, target)?;
    let truth = truth_of(&domains, target);
    let evaluator = Evaluator::new(truth.clone());
    let observer = (CtrlC, &evaluator);
    let parameters = parameters.check()?;
    let labelling = Run::new(domains, &parameters).graph(graph.cloned()).observe(&observer).label()?;
    Ok(Labelled { labelling, truth, rounds: evaluator.rounds() })
}

fn truth_of(domains: &Domains, target: &Domain) -> TargetTruth {
    TargetTruth::new(domains.source_labels().classes(), &target.labels)
}

/// The neighbour graph over the rows of both domains, to be shared by several runs.
fn shared_graph(source: &Domain, target: &Domain, parameters: Parameters) -> anyhow::Result<NeighbourGraph> {
    let features = pair(source, target)?.features().clone();
    let found = a2lp::neighbour_graph(features, &parameters.check()?, false, &CtrlC)?;
    Ok(found.graph)
}

/// Something that is worked out when first needed and then kept.
fn once<T>(cell: &OnceCell<T>, make: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<&T> {
    match cell.get() {
        Some(made) => Ok(made),
        None => {
            let made = make()?;
            Ok(cell.get_or_init(|| made))
        }
    }
}

/// Mean and standard error.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    (mean, (variance / count.max(1.0)).sqrt())
}
