//! `a2lp train` and `a2lp predict`: a network that works in the target domain.

mod charts;
pub(crate) mod data;
mod demo;
mod predict;

pub(crate) use predict::predict;

use crate::Outcome;
use crate::args::{DrawingOptions, OptionTable, Preset, ReportOptions, TrainArgs, TrainHow};
use crate::output::write_json;
use crate::report::Drawings;
use crate::table::{percent, render};
use a2lp::evaluation::TargetTruth;
use a2lp::{Classes, PseudoLabels};
use a2lp_data::LabelTable;
use a2lp_data::write_atomically;
use a2lp_report::{Chapter, Experiment};
use a2lp_train::{
    Body, BodyShape, CheckedTrainSettings, Inputs, Labeller, Learner, TrainError, TrainSettings, Trained,
    Training,
};
use anyhow::{Context, bail};
pub(crate) use charts::RoundLine;
use charts::TrainingMonitor;
use data::{Items, Pair, Reading};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

const CHECKPOINT: &str = "checkpoint.safetensors";
const WEIGHTS: &str = "weights.safetensors";
const METRICS: &str = "metrics.jsonl";
const MODEL: &str = "model.json";
const RECORD: &str = "run.json";
const LABELS: &str = "labels.csv";
/// The network's labels, if labels without training took their place.
const NETWORK_LABELS: &str = "labels-of-network.csv";
const PSEUDO_LABELS: &str = "pseudo-labels.csv";
const RESULTS: &str = "results.json";
/// What frozen layers made of the images. The name is long because a folder that holds it counts as one of ours.
pub(crate) const CACHE: &str = "a2lp-frozen-maps";

impl<T: OptionTable<Of = TrainSettings>> TrainHow<T> {
    pub(crate) fn reading<'a>(&'a self, root: Option<&'a Path>) -> Reading<'a> {
        let transform = self.transform.as_deref();
        Reading { root, body: self.backbone, transform, upright: self.upright }
    }

    /// The seed of everything random.
    fn seed(&self) -> u64 {
        self.settings.given("seed").and_then(|seed| seed.parse().ok()).unwrap_or(0)
    }

    /// Defaults, then a preset, then what was asked for.
    fn settings(&self, learner: Learner, body: BodyShape, preset: Option<Preset>) -> TrainSettings {
        let settings = TrainSettings::new(learner, body);
        let settings = if preset == Some(Preset::Visda) { settings.visda() } else { settings };
        let is_frozen = self.settings.given("freeze-until").is_some();
        let settings = if is_frozen { settings.behind_frozen_layers() } else { settings };
        self.settings.apply(settings)
    }
}

/// Everything about a run but its settings.
pub(crate) struct Task<'a, T: OptionTable<Of = TrainSettings>> {
    pub(crate) source: &'a Items,
    pub(crate) target: &'a Items,
    pub(crate) classes: &'a Classes,
    pub(crate) labels: &'a [u32],
    pub(crate) body: Body,
    pub(crate) truth: Option<&'a TargetTruth>,
    pub(crate) how: &'a TrainHow<T>,
    pub(crate) folder: &'a Path,
    pub(crate) cache: &'a Path,
}

/// What a run came to.
pub(crate) struct FinishedRun {
    pub(crate) trained: Trained,
    pub(crate) rounds: Vec<RoundLine>,
}

impl<T: OptionTable<Of = TrainSettings>> Task<'_, T> {
    /// The settings asked for. `adjust` has the last word.
    pub(crate) fn settings(
        &self,
        learner: Learner,
        preset: Option<Preset>,
        adjust: impl FnOnce(TrainSettings) -> TrainSettings,
    ) -> anyhow::Result<CheckedTrainSettings> {
        let body = self.body.shape(&self.source.inputs);
        if matches!(body, BodyShape::Backbone(_)) && self.how.weights.is_none() {
            bail!("--backbone needs --weights: a network for photos is not trained from nothing");
        }
        Ok(adjust(self.how.settings(learner, body, preset)).check(body)?)
    }

    /// Trains in the folder, or goes on in it.
    pub(crate) fn train(&self, settings: &CheckedTrainSettings) -> anyhow::Result<FinishedRun> {
        let checkpoint = self.folder.join(CHECKPOINT);
        let training = Training {
            settings,
            shape: settings.learner().network(self.body.shape(&self.source.inputs), self.classes.len()),
            weights: self.how.weights.as_deref(),
            source: &self.source.inputs,
            labels: self.labels,
            target: &self.target.inputs,
            checkpoint: &checkpoint,
            cache: self.cache,
            device: self.how.device.unwrap_or_default(),
        };
        let monitor = TrainingMonitor::new(
            self.truth,
            self.classes.len(),
            settings.rounds(),
            self.folder.join(METRICS),
        )?;
        let trained = match training.run(&monitor) {
            Err(TrainError::Cancelled) => bail!(
                "interrupted; finished rounds are kept in {}, the same command goes on from there",
                self.folder.display()
            ),
            Err(TrainError::OtherRun { .. }) => bail!(
                "{} holds a run with other settings, data or weights; pass --force to start anew or --out for another folder",
                self.folder.display()
            ),
            other => other?,
        };
        Ok(FinishedRun { trained, rounds: monitor.lines() })
    }
}

/// What `predict` needs to know besides the weights.
#[derive(Serialize, Deserialize)]
struct ModelFile {
    a2lp: String,
    body: Body,
    classes: Vec<String>,
    transform: Option<String>,
    upright: bool,
}

pub(crate) fn run(args: &TrainArgs) -> anyhow::Result<Outcome> {
    if args.threads > 0 {
        // Fails only when a pool is there already, and there is none yet.
        rayon::ThreadPoolBuilder::new().num_threads(args.threads).build_global().ok();
    }
    if args.demo {
        return demo::run(args);
    }
    let (Some(source_path), Some(target_path), Some(folder)) = (&args.source, &args.target, &args.out) else {
        bail!("--source, --target and --out are needed, or --demo");
    };
    let labeller = match args.how.pseudo_labels[..] {
        // A preset is a paper's.
        [] if args.preset.is_some() => Labeller::A2lp,
        [] => Labeller::Auto,
        [one] => one,
        _ => bail!("--pseudo-labels: one kind at a time; `a2lp experiment pairs` compares several"),
    };
    let reading = args.how.reading(args.root.as_deref());
    let places = [(source_path, &args.source_labels), (target_path, &args.eval_labels)];
    let [source, target] = places.map(|(path, labels)| (path.as_path(), labels.as_deref()));
    let Pair { source, target, body, classes, labels, truth } = data::open_pair(source, target, &reading)?;
    prepare(folder, args.force)?;
    let own_cache = folder.join(CACHE);
    let task = Task {
        source: &source,
        target: &target,
        classes: &classes,
        labels: &labels,
        body,
        truth: truth.as_ref(),
        how: &args.how,
        folder,
        cache: args.how.cache.as_deref().unwrap_or(&own_cache),
    };
    let learner = args.learner.unwrap_or(Learner::Can);
    let settings = task.settings(learner, args.preset, |settings| settings.labeller(labeller))?;

    let started = Instant::now();
    let finished = task.train(&settings)?;
    // Only an unfinished run needs it; one that was named stays.
    if args.how.cache.is_none() {
        std::fs::remove_dir_all(&own_cache).ok();
    }
    let summary = write_outputs(&task, &settings, &finished, started.elapsed().as_secs_f64())?;
    let told = describe(&task, &settings, &finished);
    let shown = write_charts(&task, &settings, &finished, told.clone())?;
    let mut text = if args.json { serde_json::to_string_pretty(&summary)? + "\n" } else { told };
    if args.report.is_some() {
        let told = draw(args, folder, &mut [Chapter::Experiment(shown)])?;
        if !args.json {
            text += &told;
        }
    }
    std::io::stdout().write_all(text.as_bytes())?;
    let unreached = finished.rounds.last().map_or(0, |line| line.unreached);
    if unreached > 0 {
        let items = target.inputs.len();
        eprintln!(
            "warning: no label reaches {unreached} of {items} target items in the graph of the last round; they were not learned from. More --neighbours may help"
        );
        if 2 * unreached > items {
            return Ok(Outcome::LookAtIt);
        }
    }
    Ok(Outcome::Done)
}

/// The run as something to be looked at, kept in the folder so that `a2lp report` finds it.
fn write_charts(
    task: &Task<impl OptionTable<Of = TrainSettings>>,
    settings: &CheckedTrainSettings,
    finished: &FinishedRun,
    text: String,
) -> anyhow::Result<Experiment> {
    let name = task.folder.file_name().unwrap_or(task.folder.as_os_str()).to_string_lossy();
    let title = format!("{name}: {}", method(settings));
    let shown = charts::experiment(title, text, settings, &finished.rounds)?;
    write_json(&task.folder.join(RESULTS), true, &json!({ "shown": shown }))?;
    Ok(shown)
}

/// Draws the page that `--report` asks for.
fn draw(args: &TrainArgs, folder: &Path, chapters: &mut [Chapter]) -> anyhow::Result<String> {
    let drawing = ReportOptions { report: args.report.clone(), more: DrawingOptions::default() };
    // The page in the run's own folder belongs to it.
    let own = args.report == Some(None);
    Drawings::new(&drawing, &folder.join("report.html"), own || args.force)?.draw(chapters, args.threads)
}

/// What was learned from what, in words.
fn method(settings: &CheckedTrainSettings) -> String {
    match settings.learner().uses_pseudo_labels() {
        true => {
            format!("{} with {} pseudo-labels", settings.learner().as_str(), settings.labeller().as_str())
        }
        false => settings.learner().as_str().to_string(),
    }
}

/// Makes the folder of a run; what another run left there goes only when asked.
pub(crate) fn prepare(folder: &Path, force: bool) -> anyhow::Result<()> {
    if ![CHECKPOINT, CACHE].iter().any(|name| folder.join(name).exists())
        && std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
    {
        bail!("{} is not empty and holds no run; choose another folder with --out", folder.display());
    }
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    if force {
        for name in
            [CHECKPOINT, WEIGHTS, METRICS, MODEL, RECORD, LABELS, NETWORK_LABELS, PSEUDO_LABELS, RESULTS]
        {
            let path = folder.join(name);
            if path.exists() {
                std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
            }
        }
    }
    Ok(())
}

/// Writes what a finished run leaves behind, and gives its summary.
fn write_outputs(
    task: &Task<impl OptionTable<Of = TrainSettings>>,
    settings: &CheckedTrainSettings,
    finished: &FinishedRun,
    secs: f64,
) -> anyhow::Result<serde_json::Value> {
    let FinishedRun { trained, rounds } = finished;
    let folder = task.folder;
    trained.model.write(&folder.join(WEIGHTS))?;
    let (transform, upright) = match &task.source.inputs {
        Inputs::Files { test, upright, .. } => (Some(test.name().to_string()), *upright),
        _ => (None, task.how.upright),
    };
    let classes = task.classes.names().to_vec();
    let model =
        ModelFile { a2lp: env!("CARGO_PKG_VERSION").into(), body: task.body, classes, transform, upright };
    write_json(&folder.join(MODEL), true, &model)?;
    let ids = task.target.ids.as_deref();
    let trained_labels = PseudoLabels::from_probabilities(task.classes.len(), trained.probabilities.clone());
    let labels = better_untrained(trained).unwrap_or(&trained_labels);
    LabelTable { ids, ..LabelTable::new(task.classes, labels) }.write(&folder.join(LABELS), true)?;
    let network_labels = folder.join(NETWORK_LABELS);
    match better_untrained(trained) {
        Some(_) => LabelTable { ids, ..LabelTable::new(task.classes, &trained_labels) }
            .write(&network_labels, true)?,
        None => drop(std::fs::remove_file(network_labels)),
    }
    if let Some(pseudo) = &trained.labels {
        write_pseudo_labels(&folder.join(PSEUDO_LABELS), task, pseudo)?;
    }
    let last = rounds.last();
    let best = rounds
        .iter()
        .filter_map(|line| line.accuracy)
        .fold(None, |best: Option<f64>, a| Some(best.map_or(a, |b| b.max(a))));
    let summary = json!({
        "out": folder,
        "learner": settings.learner(),
        "pseudo_labels": settings.labeller(),
        "rounds": trained.rounds,
        "resumed_after_round": trained.resumed,
        "accuracy": last.and_then(|line| line.accuracy),
        "mean_class_accuracy": last.and_then(|line| line.mean_class_accuracy),
        "pseudo_label_accuracy": last.and_then(|line| line.pseudo_label_accuracy),
        "best_accuracy_peeking": best,
        "untrained": trained.untrained.as_ref().map(|(labels, verdict)| json!({
            "accuracy": accuracy_of(task, labels),
            "quality": verdict.untrained,
            "quality_of_trained": verdict.trained,
            "is_used": verdict.prefers_untrained(),
        })),
        "seconds": secs,
    });
    let record = json!({
        "a2lp": env!("CARGO_PKG_VERSION"),
        "command": crate::command_line(),
        "settings": settings,
        "network": trained.model.shape(),
        "weights": task.how.weights,
        "source_items": task.source.inputs.len(),
        "target_items": task.target.inputs.len(),
        "classes": task.classes.names(),
        "summary": summary,
    });
    write_json(&folder.join(RECORD), true, &record)?;
    Ok(summary)
}

/// The labels without training, if they look better than the network's labels.
fn better_untrained(trained: &Trained) -> Option<&PseudoLabels> {
    let (labels, verdict) = trained.untrained.as_ref()?;
    verdict.prefers_untrained().then_some(labels)
}

/// The accuracy of labels of the target, if the truth is known.
fn accuracy_of(task: &Task<impl OptionTable<Of = TrainSettings>>, labels: &PseudoLabels) -> Option<f64> {
    Some(task.truth?.score(labels.labels()).ok()?.accuracy)
}

fn write_pseudo_labels(
    path: &Path,
    task: &Task<impl OptionTable<Of = TrainSettings>>,
    pseudo: &a2lp_train::TrainingLabels,
) -> anyhow::Result<()> {
    write_atomically(path, true, |file| {
        let mut csv = csv::Writer::from_writer(file);
        csv.write_record(["row", "label", "confidence"])?;
        for (row, (label, weight)) in pseudo.labels.iter().zip(&pseudo.weights).enumerate() {
            let name = label.map_or("", |class| task.classes.name(class));
            csv.write_record([row.to_string().as_str(), name, format!("{weight:.6}").as_str()])?;
        }
        csv.flush()
    })?;
    Ok(())
}

/// The run for people.
fn describe(
    task: &Task<impl OptionTable<Of = TrainSettings>>,
    settings: &CheckedTrainSettings,
    finished: &FinishedRun,
) -> String {
    let FinishedRun { trained, rounds } = finished;
    let mut text = format!(
        "{} on {}: {} source and {} target items, {} classes\n\n",
        method(settings),
        task.body.as_str(),
        task.source.inputs.len(),
        task.target.inputs.len(),
        task.classes.len()
    );
    let known = |value: Option<f64>| value.map_or("–".to_string(), percent);
    let rows: Vec<Vec<String>> = rounds
        .iter()
        .map(|line| {
            vec![
                line.round.to_string(),
                line.steps.to_string(),
                format!("{:.3}", line.losses.source),
                format!("{:.3}", line.losses.target),
                format!("{:.3}", line.losses.domain),
                known(line.kept_share),
                line.changed.map_or("–".into(), |changed| changed.to_string()),
                known(line.pseudo_label_accuracy),
                known(line.accuracy),
            ]
        })
        .collect();
    let header = [
        "round",
        "steps",
        "source loss",
        "target",
        "domain",
        "kept %",
        "changed",
        "pseudo-labels %",
        "accuracy %",
    ];
    text += &render(&header, &rows);
    if let Some(last) = rounds.last().filter(|line| line.accuracy.is_some()) {
        text += &format!(
            "\naccuracy of the network {} %, mean over classes {} %",
            known(last.accuracy),
            known(last.mean_class_accuracy)
        );
        if let Some(pseudo) = last.pseudo_label_accuracy {
            text += &format!("; of the last pseudo-labels {} %", percent(pseudo));
        }
        let best = rounds.iter().filter_map(|line| line.accuracy).fold(0.0, f64::max);
        text += &format!(
            "\n(the best round had {} %; picking it would be peeking at the target's labels)\n",
            percent(best)
        );
    }
    if let Some(resumed) = trained.resumed {
        text += &format!("\n{resumed} rounds were there already");
    }
    if let Some((labels, verdict)) = &trained.untrained {
        let (trained, untrained) = (verdict.trained, verdict.untrained);
        let accuracy = accuracy_of(task, labels)
            .map_or(String::new(), |accuracy| format!(" (accuracy {} %)", percent(accuracy)));
        text += &format!(
            "\nquality, judged without the target's labels: {trained:.3} of the network's labels, {untrained:.3} of labels without training{accuracy}\n"
        );
    }
    let folder = task.folder.display();
    let labels = match better_untrained(trained) {
        Some(_) => format!(
            "labels without training, which look better, in {folder}/{LABELS}\nnetwork in {folder}/{WEIGHTS}, its labels of the target in {folder}/{NETWORK_LABELS}"
        ),
        None => format!("network in {folder}/{WEIGHTS}, its labels of the target in {folder}/{LABELS}"),
    };
    text + &format!(
        "\n{labels}\nlabel new items with: a2lp predict --model {folder} --images PATH --out labels.csv\n"
    )
}
