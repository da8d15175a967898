//! Looking on at training: a bar, a line of metrics per round, and the page.

use crate::memory;
use crate::progress::counting_bar;
use a2lp::PseudoLabels;
use a2lp::evaluation::TargetTruth;
use a2lp_data::write_atomically;
use a2lp_report::{Chart, Experiment};
use a2lp_train::networks::Domain;
use a2lp_train::{CheckedTrainSettings, Losses, TrainError, TrainObserver, TrainedRound};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;

/// The figures of a round: a line of `metrics.jsonl`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RoundLine {
    pub(crate) round: usize,
    pub(crate) steps: usize,
    pub(crate) rate: f64,
    pub(crate) losses: Losses,
    /// Share of the pseudo-labels that were learned from.
    pub(crate) kept_share: Option<f64>,
    /// Target items that no label reaches.
    pub(crate) unreached: usize,
    /// Pseudo-labels that differ from the round before.
    pub(crate) changed: Option<usize>,
    pub(crate) pseudo_label_accuracy: Option<f64>,
    pub(crate) accuracy: Option<f64>,
    pub(crate) mean_class_accuracy: Option<f64>,
    /// Nothing was left to learn.
    pub(crate) settled: bool,
    pub(crate) label_secs: f64,
    pub(crate) step_secs: f64,
}

/// Scores rounds where the truth is known, and passes Ctrl-C on.
pub(crate) struct TrainingMonitor<'a> {
    truth: Option<&'a TargetTruth>,
    classes: usize,
    rounds: usize,
    metrics: PathBuf,
    lines: Mutex<Vec<RoundLine>>,
    bar: Box<dyn Fn(u64, u64) + Sync + Send>,
}

impl<'a> TrainingMonitor<'a> {
    /// Goes on with the lines that are there.
    pub(crate) fn new(
        truth: Option<&'a TargetTruth>,
        classes: usize,
        rounds: usize,
        metrics: PathBuf,
    ) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(&metrics).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let bar = Box::new(counting_bar("training [{bar:32}] {percent:>3} %  {eta} left"));
        Ok(TrainingMonitor { truth, classes, rounds, metrics, lines: Mutex::new(lines), bar })
    }

    pub(crate) fn lines(&self) -> Vec<RoundLine> {
        self.lines.lock().map(|lines| lines.clone()).unwrap_or_default()
    }

    fn write(&self, line: RoundLine) -> Result<(), TrainError> {
        let Ok(mut lines) = self.lines.lock() else { return Ok(()) };
        // A round that is made again, after its line but before its checkpoint was written, replaces it.
        lines.retain(|earlier| earlier.round < line.round);
        lines.push(line);
        write_atomically(&self.metrics, true, |file| {
            for line in lines.iter() {
                serde_json::to_writer(&mut *file, line)?;
                file.write_all(b"\n")?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

impl TrainObserver for TrainingMonitor<'_> {
    fn caching(&self, domain: Domain, [done, all]: [usize; 2], bytes: u64) -> ControlFlow<()> {
        if done == 0 {
            eprintln!(
                "note: the frozen layers see the {all} images of the {} once; {} are kept of that",
                match domain {
                    Domain::Source => "source",
                    Domain::Target => "target",
                },
                memory::describe(bytes)
            );
        }
        self.progress(0, done, all)
    }

    fn progress(&self, round: usize, step: usize, steps: usize) -> ControlFlow<()> {
        if crate::interrupt::requested() {
            return ControlFlow::Break(());
        }
        // The warm-up is short beside the rounds.
        if round > 0 && steps > 0 {
            let done = 1000 * (round - 1) + 1000 * step / steps;
            (self.bar)(done as u64, 1000 * self.rounds as u64);
        }
        ControlFlow::Continue(())
    }

    fn round(&self, round: &TrainedRound<'_>) -> Result<(), TrainError> {
        let found = PseudoLabels::from_probabilities(self.classes, round.probabilities.to_vec());
        let score = self.truth.and_then(|truth| truth.score(found.labels()).ok());
        let pseudo = self.truth.zip(round.labels).and_then(|(truth, l)| truth.score(&l.labels).ok());
        if round.round == self.rounds || round.settled {
            (self.bar)(1, 1);
        }
        self.write(RoundLine {
            round: round.round,
            steps: round.steps,
            rate: round.rate,
            losses: round.losses,
            kept_share: round.labels.map(|labels| round.kept as f64 / labels.labels.len().max(1) as f64),
            unreached: round.labels.map_or(0, |l| l.labels.iter().filter(|label| label.is_none()).count()),
            changed: round.changed,
            pseudo_label_accuracy: pseudo.map(|score| score.accuracy),
            accuracy: score.as_ref().map(|score| score.accuracy),
            mean_class_accuracy: score.as_ref().map(|score| score.mean_class_accuracy),
            settled: round.settled,
            label_secs: round.seconds[0],
            step_secs: round.seconds[1],
        })
    }
}

/// A name and its value in a round.
type Series<'a> = (&'a str, &'a dyn Fn(&RoundLine) -> Option<f64>);

/// A run to be shown: what is right, what is lost, what becomes of the pseudo-labels.
pub(crate) fn experiment(
    title: String,
    text: String,
    settings: &CheckedTrainSettings,
    rounds: &[RoundLine],
) -> anyhow::Result<Experiment> {
    let share = |value: Option<f64>| value.map(|value| 100.0 * value);
    let accuracy: [Series; 3] = [
        ("network %", &|line| share(line.accuracy)),
        ("mean over classes %", &|line| share(line.mean_class_accuracy)),
        ("pseudo-labels %", &|line| share(line.pseudo_label_accuracy)),
    ];
    let losses: [Series; 3] = [
        ("source", &|line| Some(line.losses.source)),
        ("target", &|line| Some(line.losses.target)),
        ("domain", &|line| Some(line.losses.domain)),
    ];
    let kept: [Series; 1] = [("learned from %", &|line| share(line.kept_share))];
    let changed: [Series; 1] = [("changed", &|line| line.changed.map(|count| count as f64))];
    let drawn = [
        (
            "Accuracy",
            "Of the network on the target, and of the pseudo-labels it learned from. The last round counts; to pick the best one would be to peek at the target's labels.",
            &accuracy[..],
        ),
        (
            "Losses",
            "Means over a round: cross-entropy on the source, what the target adds, how wrong the discriminator is.",
            &losses,
        ),
        ("Pseudo-labels kept", "Share that was confident enough to be learned from.", &kept),
        ("Pseudo-labels changed", "Items whose label differs from the round before.", &changed),
    ];
    let points = |of: &dyn Fn(&RoundLine) -> Option<f64>| -> Vec<(f64, f64)> {
        rounds.iter().filter_map(|line| Some((line.round as f64, of(line)?))).collect()
    };
    let mut charts = Vec::new();
    for (title, about, series) in drawn {
        let series: Vec<(String, Vec<(f64, f64)>)> = series
            .iter()
            .map(|(name, of)| (name.to_string(), points(*of)))
            .filter(|(_, points)| points.iter().any(|point| point.1 != 0.0))
            .collect();
        if !series.is_empty() {
            charts.push((title.into(), about.into(), Chart::Lines { x: "round".into(), series }));
        }
    }
    let columns: Vec<Series> =
        [&accuracy[..], &losses, &kept, &changed].into_iter().flatten().copied().collect();
    let mut header = vec!["round".to_string()];
    header.extend(columns.iter().map(|(name, _)| name.to_string()));
    let row = |line: &RoundLine| {
        let mut row = vec![line.round.to_string()];
        row.extend(columns.iter().map(|(_, of)| of(line).map_or("–".into(), |value| format!("{value:.4}"))));
        row
    };
    Ok(Experiment {
        title,
        text,
        header,
        rows: rounds.iter().map(row).collect(),
        chart: None,
        charts,
        pictures: Vec::new(),
        command: crate::command_line(),
        settings: serde_json::to_value(settings)?,
    })
}
