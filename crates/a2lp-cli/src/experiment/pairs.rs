//! Every ordered pair of domains (tables 4, 5, 6 and 9): what one would do without a graph, label propagation, A²LP.

use super::manifest::pair;
use super::{Accuracy, Finding, Study, run_pair, sample, truth_of};
use crate::Outcome;
use crate::args::ExperimentArgs;
use crate::experiment::paper;
use crate::table::{percent, render};
use a2lp::{Method, SourceNodes, baselines};
use a2lp_report::Chart;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;

const METHODS: [&str; 6] =
    ["nearest neighbour", "nearest centre", "LP", "A²LP", "LP centres", "A²LP centres"];

/// What `--method consensus` adds: the number of views, and a name.
const CONSENSUS: [(usize, &str); 2] = [(2, "consensus of 2"), (3, "consensus of 3")];

/// Accuracies in the order of the methods.
#[derive(Serialize, Deserialize)]
struct PairCell {
    accuracies: Vec<Accuracy>,
    converged: bool,
}

pub(super) fn run(args: &ExperimentArgs, method: Option<Method>) -> anyhow::Result<Outcome> {
    let study = Study::new("pairs", args)?;
    let consensus: &[(usize, &str)] = if method == Some(Method::Consensus) { &CONSENSUS } else { &[] };
    let methods: Vec<&str> = METHODS.into_iter().chain(consensus.iter().map(|(_, name)| *name)).collect();
    let all: Vec<&str> = study.manifest.domain.iter().map(|domain| domain.name.as_str()).collect();
    let pairs = wanted(&study)?;
    let seeds = if args.per_class.is_some() { args.seeds.clone() } else { vec![0] };
    let notebook = study.notebook(&all, pairs.len() * seeds.len(), json!({ "methods": methods }))?;
    let mut results: Vec<(String, Vec<Accuracy>)> = Vec::new();
    for (source, target) in &pairs {
        let mut over_seeds: Vec<Vec<Accuracy>> = Vec::new();
        for &seed in &seeds {
            let cell = match args.per_class {
                Some(_) => format!("{source}→{target}, seed {seed}"),
                None => format!("{source}→{target}"),
            };
            let cell: PairCell = notebook.cell(&cell, || {
                let (source, target) = sample::pair(&study, source, target, seed)?;
                let domains = pair(&source, &target)?;
                let truth = truth_of(&domains, &target);
                let mut accuracies: Vec<Accuracy> = vec![
                    truth.score(&baselines::nearest_neighbour(&domains))?.into(),
                    truth.score(&baselines::nearest_centre(&domains))?.into(),
                ];
                drop(domains);
                let mut converged = true;
                for nodes in [SourceNodes::All, SourceNodes::Centres] {
                    let run = run_pair(&source, &target, study.parameters().source_nodes(nodes), None)?;
                    accuracies.extend([run.first_accuracy()?, run.accuracy()?]);
                    converged &= run.labelling.converged();
                }
                for &(views, _) in consensus {
                    let parameters = study.parameters().method(Method::Consensus).views(views);
                    let run = run_pair(&source, &target, parameters, None)?;
                    accuracies.push(run.accuracy()?);
                    converged &= run.labelling.converged();
                }
                Ok(PairCell { accuracies, converged })
            })?;
            if !cell.converged {
                eprintln!("warning: {source}→{target}: the solver did not converge in every round");
            }
            over_seeds.push(cell.accuracies);
        }
        results.push((format!("{source}→{target}"), mean_over(&over_seeds)));
    }

    let mut text = String::new();
    for class_mean in [false, true] {
        text += &accuracy_table(&results, &methods, class_mean, args);
        text += "\n";
    }
    text += &class_table(&results, &methods, args);
    let (header, rows) = csv_rows(&results, &methods);
    let title = format!("{}: {} pairs of domains", study.manifest.name, results.len());
    // Centres are a variant; they would crowd the picture.
    let drawn: Vec<usize> = (0..4).chain(METHODS.len()..methods.len()).collect();
    let chart = Some(Chart::Dots {
        series: drawn.iter().map(|&method| methods[method].to_string()).collect(),
        lines: results
            .iter()
            .map(|(pair, of)| {
                (pair.clone(), drawn.iter().map(|&method| 100.0 * of[method].overall).collect())
            })
            .collect(),
    });
    study.finish(&notebook, Finding { title, text, header, rows, chart })
}

/// The pairs asked for: all, or all with one source or one target.
pub(super) fn wanted<'a>(study: &'a Study) -> anyhow::Result<Vec<(&'a str, &'a str)>> {
    let args = study.args;
    let all: Vec<&str> = study.manifest.domain.iter().map(|domain| domain.name.as_str()).collect();
    let wanted = |asked: &Option<String>, name: &str| asked.as_ref().is_none_or(|asked| asked == name);
    for asked in [&args.source, &args.target].into_iter().flatten() {
        study.manifest.files(asked)?;
    }
    let pairs: Vec<(&str, &str)> = all
        .iter()
        .flat_map(|&source| all.iter().map(move |&target| (source, target)))
        .filter(|(source, target)| {
            source != target && wanted(&args.source, source) && wanted(&args.target, target)
        })
        .collect();
    if pairs.is_empty() {
        anyhow::bail!("{} has no pair of domains to run", study.manifest.name);
    }
    Ok(pairs)
}

/// The mean of each method over the seeds.
fn mean_over(seeds: &[Vec<Accuracy>]) -> Vec<Accuracy> {
    let mean = |of: &dyn Fn(&Accuracy) -> f64, method: usize| {
        seeds.iter().map(|run| of(&run[method])).sum::<f64>() / seeds.len() as f64
    };
    (0..seeds[0].len())
        .map(|method| Accuracy {
            overall: mean(&|a| a.overall, method),
            class_mean: mean(&|a| a.class_mean, method),
            classes: seeds[0][method]
                .classes
                .keys()
                .map(|class| (class.clone(), mean(&|a| a.classes.get(class).copied().unwrap_or(0.0), method)))
                .collect(),
        })
        .collect()
}

fn accuracy_table(
    results: &[(String, Vec<Accuracy>)],
    methods: &[&str],
    class_mean: bool,
    args: &ExperimentArgs,
) -> String {
    let name = if class_mean { "mean class accuracy %" } else { "accuracy %" };
    let of = |a: &Accuracy| if class_mean { a.class_mean } else { a.overall };
    let paper_rows: &[paper::Row] = args.preset.map_or(&[], |preset| paper::rows(preset));
    let mut header = vec![name];
    header.extend(methods);
    header.extend(paper_rows.iter().map(|row| row.name));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (pair, accuracies) in results {
        let mut row = vec![pair.clone()];
        row.extend(accuracies.iter().map(|a| percent(of(a))));
        row.extend(
            paper_rows
                .iter()
                .map(|row| row.of(pair, class_mean).map_or("–".into(), |value| format!("{value:.1}"))),
        );
        rows.push(row);
    }
    if results.len() > 1 {
        let mut row = vec!["average".to_string()];
        row.extend((0..methods.len()).map(|method| {
            percent(results.iter().map(|(_, a)| of(&a[method])).sum::<f64>() / results.len() as f64)
        }));
        row.extend(paper_rows.iter().map(|row| format!("{:.1}", row.average)));
        rows.push(row);
    }
    render(&header, &rows)
}

/// Each class, averaged over the pairs that have it.
fn class_table(results: &[(String, Vec<Accuracy>)], methods: &[&str], args: &ExperimentArgs) -> String {
    let paper_rows: &[paper::ClassRow] = args.preset.map_or(&[], |preset| paper::class_rows(preset));
    let classes: BTreeSet<&String> = results.iter().flat_map(|(_, a)| a[0].classes.keys()).collect();
    let mut header = vec!["class, correct %"];
    header.extend(methods);
    header.extend(paper_rows.iter().map(|row| row.name));
    let rows: Vec<Vec<String>> = classes
        .into_iter()
        .map(|class| {
            let mut row = vec![class.clone()];
            row.extend((0..methods.len()).map(|method| {
                let values: Vec<f64> =
                    results.iter().filter_map(|(_, a)| a[method].classes.get(class).copied()).collect();
                percent(values.iter().sum::<f64>() / values.len().max(1) as f64)
            }));
            row.extend(
                paper_rows
                    .iter()
                    .map(|row| row.of(class).map_or("–".into(), |value| format!("{value:.1}"))),
            );
            row
        })
        .collect();
    render(&header, &rows)
}

fn csv_rows(results: &[(String, Vec<Accuracy>)], methods: &[&str]) -> (Vec<String>, Vec<Vec<String>>) {
    let classes: BTreeSet<&String> = results.iter().flat_map(|(_, a)| a[0].classes.keys()).collect();
    let mut header: Vec<String> =
        ["pair", "method", "accuracy", "mean_class_accuracy"].map(String::from).into();
    header.extend(classes.iter().map(|class| format!("class_{class}")));
    let mut rows = Vec::new();
    for (pair, accuracies) in results {
        for (method, accuracy) in methods.iter().zip(accuracies) {
            let mut row = vec![
                pair.clone(),
                method.to_string(),
                format!("{:.5}", accuracy.overall),
                format!("{:.5}", accuracy.class_mean),
            ];
            row.extend(classes.iter().map(|class| {
                accuracy.classes.get(*class).map_or(String::new(), |value| format!("{value:.5}"))
            }));
            rows.push(row);
        }
    }
    (header, rows)
}
