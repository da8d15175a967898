//! Targets that lack classes of the source or have other shares: what each assumption about the class mix makes of them.

use super::manifest::Domain;
use super::pairs::wanted;
use super::{Finding, Study, owned, run_pair, sample, scenarios};
use crate::Outcome;
use crate::args::MixArgs;
use crate::table::{percent, render};
use a2lp::{AssumedMix, Method, Mix};
use a2lp_report::Chart;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;

/// What the columns of the table are.
const METHODS: [&str; 5] = ["LP", "A²LP", "consensus same", "consensus own", "consensus auto"];
/// What is done to the target, and the share of its classes that it keeps.
const SCENARIOS: [(&str, Option<f64>); 4] =
    [("closed", Some(1.0)), ("half", Some(0.5)), ("third", Some(0.3)), ("shift", None)];

/// One target: accuracies in the order of the methods, and the choice that `auto` made.
#[derive(Serialize, Deserialize)]
struct MixCell {
    items: usize,
    accuracies: Vec<f64>,
    chose_own: bool,
}

pub(super) fn run(args: &MixArgs) -> anyhow::Result<Outcome> {
    let study = Study::new("mix", &args.common)?;
    let all: Vec<&str> = study.manifest.domain.iter().map(|domain| domain.name.as_str()).collect();
    let pairs = wanted(&study)?;
    let scenarios: Vec<&str> = match args.present.is_empty() {
        true => SCENARIOS.iter().map(|(name, _)| *name).collect(),
        false => vec!["given"],
    };
    let seeds = &args.common.seeds;
    let further = json!({ "views": args.views, "present": args.present });
    let notebook = study.notebook(&all, pairs.len() * scenarios.len() * seeds.len(), further)?;
    let mut rows: Vec<(String, String, MixCell)> = Vec::new();
    for scenario in &scenarios {
        for (source, target) in &pairs {
            for &seed in seeds {
                let name = format!("{scenario}, {source}→{target}, seed {seed}");
                let cell = notebook.cell(&name, || {
                    let (source, target) = sample::pair(&study, source, target, seed)?;
                    label(&study, args, &source, &draw(args, scenario, target, seed)?)
                })?;
                rows.push((scenario.to_string(), format!("{source}→{target}"), cell));
            }
        }
    }

    let mut header = vec!["accuracy %"];
    header.extend(METHODS);
    header.push("own chosen");
    let averages: Vec<Vec<String>> = scenarios
        .iter()
        .map(|scenario| {
            let cells: Vec<&MixCell> =
                rows.iter().filter(|row| row.0 == *scenario).map(|row| &row.2).collect();
            let mean = |method: usize| {
                cells.iter().map(|cell| cell.accuracies[method]).sum::<f64>() / cells.len() as f64
            };
            let own = cells.iter().filter(|cell| cell.chose_own).count();
            let mut row = vec![scenario.to_string()];
            row.extend((0..METHODS.len()).map(|method| percent(mean(method))));
            row.push(format!("{own} of {}", cells.len()));
            row
        })
        .collect();
    let noun = if seeds.len() == 1 { String::new() } else { format!(" and {} seeds", seeds.len()) };
    let mut text = format!("mean of {} pairs{noun}\n{}", pairs.len(), render(&header, &averages));
    let by_pair: Vec<Vec<String>> =
        rows.iter().map(|(scenario, pair, cell)| line(scenario, pair, cell)).collect();
    let header =
        ["scenario", "pair", "items", METHODS[0], METHODS[1], METHODS[2], METHODS[3], METHODS[4], "chosen"];
    text += &format!("\n{}", render(&header, &by_pair));
    let chart = Chart::Dots {
        series: owned(&METHODS),
        lines: averages
            .iter()
            .map(|row| {
                (row[0].clone(), row[1..=METHODS.len()].iter().map(|v| v.parse().unwrap_or(0.0)).collect())
            })
            .collect(),
    };
    let header = [
        "scenario",
        "pair",
        "items",
        "lp",
        "a2lp",
        "consensus_same",
        "consensus_own",
        "consensus_auto",
        "chosen",
    ];
    let title = format!("{}: targets with other classes or shares", study.manifest.name);
    study
        .finish(&notebook, Finding { title, text, header: owned(&header), rows: by_pair, chart: Some(chart) })
}

fn line(scenario: &str, pair: &str, cell: &MixCell) -> Vec<String> {
    let mut line = vec![scenario.to_string(), pair.to_string(), cell.items.to_string()];
    line.extend(cell.accuracies.iter().map(|&accuracy| percent(accuracy)));
    line.push(if cell.chose_own { "own" } else { "same" }.into());
    line
}

/// The target of a scenario.
fn draw(args: &MixArgs, scenario: &str, target: Domain, seed: u64) -> anyhow::Result<Domain> {
    let classes = scenarios::classes(&target);
    if !args.present.is_empty() {
        let present: BTreeSet<String> = args.present.iter().cloned().collect();
        if let Some(missing) = present.difference(&classes).next() {
            anyhow::bail!("--present {missing}: the target has no such class");
        }
        return scenarios::with_classes(&target, &present);
    }
    match SCENARIOS.iter().find(|(name, _)| *name == scenario).and_then(|(_, share)| *share) {
        Some(share) => scenarios::with_classes(&target, &scenarios::draw_classes(&classes, share, seed)),
        None => scenarios::shifted(&target, seed),
    }
}

fn label(study: &Study<'_>, args: &MixArgs, source: &Domain, target: &Domain) -> anyhow::Result<MixCell> {
    let anchors = run_pair(source, target, study.parameters(), None)?;
    let mut accuracies = vec![anchors.first_accuracy()?.overall, anchors.accuracy()?.overall];
    let mut chose_own = false;
    for mix in [Mix::Same, Mix::Own, Mix::Auto] {
        let parameters = study.parameters().method(Method::Consensus).views(args.views).mix(mix);
        let run = run_pair(source, target, parameters, None)?;
        accuracies.push(run.accuracy()?.overall);
        chose_own = run.labelling.mix.as_ref().is_some_and(|mix| mix.chosen == AssumedMix::Own);
    }
    Ok(MixCell { items: target.labels.len(), accuracies, chose_own })
}
