//! `pairs --learners`: networks trained for every ordered pair of domains, the trained rows of tables 4, 5, 6 and 9.

use super::{Finding, Study, mean_and_error, pairs};
use crate::Outcome;
use crate::args::PairsArgs;
use crate::table::{percent, render};
use crate::train::{CACHE, RoundLine, Task, data, prepare};
use a2lp_report::Chart;
use a2lp_train::{Labeller, Learner};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Instant;

/// The result of one training run.
#[derive(Clone, Serialize, Deserialize)]
struct TrainedCell {
    accuracy: f64,
    class_mean: f64,
    pseudo_labels: Option<f64>,
    /// The best round: chosen with the target's labels.
    peeking: f64,
    rounds: usize,
    seconds: f64,
    metrics: Vec<RoundLine>,
}

/// A learner and the labels it learns from.
#[derive(Clone, Copy, PartialEq)]
struct Method(Learner, Labeller);

impl Method {
    fn name(self) -> String {
        match self.0.uses_pseudo_labels() {
            true => format!("{} {}", self.0.as_str(), self.1.as_str()),
            false => self.0.as_str().to_string(),
        }
    }
}

pub(super) fn run(args: &PairsArgs) -> anyhow::Result<Outcome> {
    let study = Study::new("pairs", &args.common)?;
    let pairs = pairs::wanted(&study)?;
    let methods = methods(args);
    let names: Vec<String> = methods.iter().map(|method| method.name()).collect();
    // All of it decides the result, so all of it is the fingerprint.
    let asked = json!({ "methods": names, "how": args.how });
    let all: Vec<&str> = study.manifest.domain.iter().map(|domain| domain.name.as_str()).collect();
    let seeds = &args.common.seeds;
    let notebook = study.notebook(&all, pairs.len() * methods.len() * seeds.len(), asked)?;
    if args.common.threads > 0 {
        rayon::ThreadPoolBuilder::new().num_threads(args.common.threads).build_global().ok();
    }
    let runs = notebook.folder().join("runs");
    // All runs share what frozen layers make of the images.
    let own_cache = notebook.folder().join(CACHE);
    let cache = args.how.cache.clone().unwrap_or_else(|| own_cache.clone());
    if args.common.force && runs.exists() {
        std::fs::remove_dir_all(&runs)?;
    }

    // cells[pair][method][seed]
    let mut cells: Vec<Vec<Vec<TrainedCell>>> = Vec::new();
    for (source, target) in &pairs {
        let mut of_pair = Vec::new();
        for &method in &methods {
            let mut of_method = Vec::new();
            for &seed in seeds {
                let name = format!("{source}→{target}, {}, seed {seed}", method.name());
                of_method.push(
                    notebook.cell(&name, || {
                        train(&study, args, (source, target), method, seed, [&runs, &cache])
                    })?,
                );
            }
            of_pair.push(of_method);
        }
        cells.push(of_pair);
    }

    if args.how.cache.is_none() {
        std::fs::remove_dir_all(&own_cache).ok();
    }
    let pair_names: Vec<String> = pairs.iter().map(|(source, target)| format!("{source}→{target}")).collect();
    let text = [
        table("accuracy %", &pair_names, &names, &cells, |cell| cell.accuracy),
        table("mean class accuracy %", &pair_names, &names, &cells, |cell| cell.class_mean),
        differences(&pair_names, &methods, &cells),
    ];
    let (header, rows) = results(&pair_names, &names, seeds, &cells);
    let mean = |cells: &[TrainedCell]| {
        100.0 * cells.iter().map(|cell| cell.accuracy).sum::<f64>() / cells.len() as f64
    };
    let lines = pair_names.iter().zip(&cells);
    let lines =
        lines.map(|(pair, of_pair)| (pair.clone(), of_pair.iter().map(|c| mean(c)).collect())).collect();
    let title = format!(
        "{}: {} pairs of domains, trained networks, {} seeds",
        study.manifest.name,
        pairs.len(),
        seeds.len()
    );
    let chart = Some(Chart::Dots { series: names, lines });
    study.finish(&notebook, Finding { title, text: text.join("\n"), header, rows, chart })
}

/// Every learner with every kind of pseudo-labels, or once if it uses none.
fn methods(args: &PairsArgs) -> Vec<Method> {
    let asked = &args.how.pseudo_labels[..];
    let labellers = if asked.is_empty() { &[Labeller::A2lp] } else { asked };
    let with = |&learner: &Learner| -> Vec<Method> {
        let used = if learner.uses_pseudo_labels() { labellers } else { &[Labeller::A2lp] };
        used.iter().map(|&labeller| Method(learner, labeller)).collect()
    };
    args.learners.iter().flat_map(with).collect()
}

/// `results.csv`: a row per pair, method and seed.
fn results(
    pairs: &[String],
    methods: &[String],
    seeds: &[u64],
    cells: &[Vec<Vec<TrainedCell>>],
) -> (Vec<String>, Vec<Vec<String>>) {
    let header = [
        "pair",
        "method",
        "seed",
        "accuracy",
        "mean_class_accuracy",
        "pseudo_label_accuracy",
        "best_round_peeking",
        "rounds",
        "seconds",
    ];
    let mut rows = Vec::new();
    for (pair, of_pair) in pairs.iter().zip(cells) {
        for (method, of_method) in methods.iter().zip(of_pair) {
            for (seed, cell) in seeds.iter().zip(of_method) {
                let pseudo = cell.pseudo_labels.map_or(String::new(), |value| format!("{value:.5}"));
                rows.push(vec![
                    pair.clone(),
                    method.clone(),
                    seed.to_string(),
                    format!("{:.5}", cell.accuracy),
                    format!("{:.5}", cell.class_mean),
                    pseudo,
                    format!("{:.5}", cell.peeking),
                    cell.rounds.to_string(),
                    format!("{:.0}", cell.seconds),
                ]);
            }
        }
    }
    (super::owned(&header), rows)
}

fn train(
    study: &Study,
    args: &PairsArgs,
    (source, target): (&str, &str),
    method: Method,
    seed: u64,
    [runs, cache]: [&std::path::Path; 2],
) -> anyhow::Result<TrainedCell> {
    let began = Instant::now();
    let reading = args.how.reading(None);
    let (source_path, source_labels) = study.manifest.paths(source)?;
    let (target_path, target_labels) = study.manifest.paths(target)?;
    let pair = data::open_pair(
        (&source_path, source_labels.as_deref()),
        (&target_path, target_labels.as_deref()),
        &reading,
    )?;
    let folder = runs.join(format!("{source}-{target}-{}-{seed}", method.name().replace(' ', "-")));
    prepare(&folder, false)?;
    let task = Task {
        source: &pair.source,
        target: &pair.target,
        classes: &pair.classes,
        labels: &pair.labels,
        body: pair.body,
        truth: pair.truth.as_ref(),
        how: &args.how,
        folder: &folder,
        cache,
    };
    let common = &args.common;
    let settings = task.settings(method.0, common.preset, |mut settings| {
        settings = settings.labeller(method.1).seed(seed);
        settings = match common.neighbours {
            Some(neighbours) => settings.neighbours(neighbours),
            None => settings,
        };
        settings = match common.alpha {
            Some(alpha) => settings.alpha(alpha),
            None => settings,
        };
        match common.rounds {
            Some(rounds) => settings.labelling_rounds(rounds),
            None => settings,
        }
    })?;
    let finished = task.train(&settings)?;
    // A network of each cell would fill the disk; its metrics go into the cell.
    std::fs::remove_dir_all(&folder).ok();
    let last = finished.rounds.last();
    let best = finished.rounds.iter().filter_map(|line| line.accuracy).fold(0.0, f64::max);
    Ok(TrainedCell {
        accuracy: last.and_then(|line| line.accuracy).unwrap_or(0.0),
        class_mean: last.and_then(|line| line.mean_class_accuracy).unwrap_or(0.0),
        pseudo_labels: last.and_then(|line| line.pseudo_label_accuracy),
        peeking: best,
        rounds: finished.trained.rounds,
        seconds: began.elapsed().as_secs_f64(),
        metrics: finished.rounds,
    })
}

/// Methods down, pairs across: means over the seeds and their standard errors.
fn table(
    name: &str,
    pairs: &[String],
    methods: &[String],
    cells: &[Vec<Vec<TrainedCell>>],
    of: impl Fn(&TrainedCell) -> f64,
) -> String {
    let mut header = vec![name];
    header.extend(pairs.iter().map(String::as_str));
    if pairs.len() > 1 {
        header.push("average");
    }
    let rows: Vec<Vec<String>> = methods
        .iter()
        .enumerate()
        .map(|(at, method)| {
            let mut row = vec![method.clone()];
            let mut means = Vec::new();
            for of_pair in cells {
                let values: Vec<f64> = of_pair[at].iter().map(&of).collect();
                let (mean, error) = mean_and_error(&values);
                means.push(mean);
                row.push(with_error(mean, error, values.len()));
            }
            if pairs.len() > 1 {
                row.push(percent(means.iter().sum::<f64>() / means.len() as f64));
            }
            row
        })
        .collect();
    render(&header, &rows)
}

fn with_error(mean: f64, error: f64, count: usize) -> String {
    if count > 1 { format!("{} ± {}", percent(mean), percent(error)) } else { percent(mean) }
}

/// What LP's and A²LP's labels add to a learner's own, seed by seed.
fn differences(pairs: &[String], methods: &[Method], cells: &[Vec<Vec<TrainedCell>>]) -> String {
    let mut rows = Vec::new();
    for (at, method) in methods.iter().enumerate() {
        let own = methods.iter().position(|other| *other == Method(method.0, Labeller::Own));
        let Some(own) = own.filter(|&own| own != at && method.0.uses_pseudo_labels()) else { continue };
        let mut row = vec![format!("{} − own", method.name())];
        for of_pair in cells {
            let values: Vec<f64> =
                of_pair[at].iter().zip(&of_pair[own]).map(|(a, b)| a.accuracy - b.accuracy).collect();
            let (mean, error) = mean_and_error(&values);
            row.push(with_error(mean, error, values.len()));
        }
        rows.push(row);
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut header = vec!["difference, points"];
    header.extend(pairs.iter().map(String::as_str));
    render(&header, &rows)
}
