//! Targets with classes that the source lacks: how well reach tells their items from the others, beside simpler scores.

use super::manifest::{Domain, pair};
use super::pairs::wanted;
use super::{Finding, Study, owned, sample, scenarios, truth_of};
use crate::Outcome;
use crate::args::UnknownArgs;
use crate::interrupt::CtrlC;
use crate::table::{percent, render};
use a2lp::evaluation::UnknownScore;
use a2lp::{Domains, FinishedRound, Method, Observer, Parameters, Run, Unknown, baselines};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Reach, and what one would use instead. Small means unknown, for all of them.
const SCORES: [&str; 4] = ["reach", "LP mass", "similarity", "A²LP confidence"];
/// Nearest source rows over which the similarity is averaged.
const NEAREST: usize = 5;
/// α of the propagation whose mass is taken.
const MASS_ALPHA: f64 = 0.95;

/// One source and target: a score each, in the order of [`SCORES`].
#[derive(Serialize, Deserialize)]
struct UnknownCell {
    items: usize,
    verdict: String,
    scores: Vec<UnknownScore>,
}

pub(super) fn run(args: &UnknownArgs) -> anyhow::Result<Outcome> {
    let study = Study::new("unknown", &args.common)?;
    let all: Vec<&str> = study.manifest.domain.iter().map(|domain| domain.name.as_str()).collect();
    let pairs = wanted(&study)?;
    let scenarios: &[&str] = if args.known.is_empty() { &["all known", "half unknown"] } else { &["given"] };
    let seeds = &args.common.seeds;
    let further = json!({ "known": args.known, "new": args.new });
    let notebook = study.notebook(&all, pairs.len() * scenarios.len() * seeds.len(), further)?;
    let mut cells: Vec<(String, String, UnknownCell)> = Vec::new();
    for scenario in scenarios {
        for (source, target) in &pairs {
            // A whole source is the same for every seed.
            for &seed in if *scenario == "all known" { &seeds[..1] } else { &seeds[..] } {
                let name = format!("{scenario}, {source}→{target}, seed {seed}");
                let cell = notebook.cell(&name, || {
                    let (source, target) = sample::pair(&study, source, target, seed)?;
                    let (source, target) = draw(args, scenario, source, target, seed)?;
                    measure(&study, &source, &target)
                })?;
                cells.push((scenario.to_string(), format!("{source}→{target}"), cell));
            }
        }
    }

    let mut text = String::new();
    for scenario in scenarios {
        let of: Vec<&UnknownCell> =
            cells.iter().filter(|cell| cell.0 == *scenario).map(|cell| &cell.2).collect();
        text += &averages(scenario, &of);
    }
    let rows: Vec<Vec<String>> =
        cells.iter().flat_map(|(scenario, pair, cell)| lines(scenario, pair, cell)).collect();
    let header = [
        "scenario",
        "pair",
        "score",
        "items",
        "unknown",
        "auroc",
        "recall",
        "false_flags",
        "h_score",
        "verdict",
    ];
    let of_reach: Vec<Vec<String>> = rows.iter().filter(|row| row[2] == SCORES[0]).cloned().collect();
    text += &render(&header, &of_reach);
    let title = format!("{}: classes that the source lacks", study.manifest.name);
    study.finish(&notebook, Finding { title, text, header: owned(&header), rows, chart: None })
}

/// The means of a scenario, and how often each verdict was given.
fn averages(scenario: &str, cells: &[&UnknownCell]) -> String {
    let mean = |at: usize, of: fn(&UnknownScore) -> Option<f64>| {
        let values: Vec<f64> = cells.iter().filter_map(|cell| of(&cell.scores[at])).collect();
        match values.is_empty() {
            true => "–".to_string(),
            false => percent(values.iter().sum::<f64>() / values.len() as f64),
        }
    };
    let rows: Vec<Vec<String>> = SCORES
        .iter()
        .enumerate()
        .map(|(at, name)| {
            vec![
                name.to_string(),
                mean(at, |score| score.auroc),
                mean(at, |score| score.recall),
                mean(at, |score| score.false_flags),
                mean(at, |score| score.h_score),
            ]
        })
        .collect();
    let verdicts: BTreeSet<&str> = cells.iter().map(|cell| cell.verdict.as_str()).collect();
    let times = |verdict: &&str| cells.iter().filter(|cell| cell.verdict == *verdict).count();
    let said: Vec<String> = verdicts.iter().map(|verdict| format!("{verdict} {}", times(verdict))).collect();
    let header = [scenario, "AUROC %", "recall %", "known items flagged %", "H-score %"];
    format!("{}  verdicts of {}: {}\n\n", render(&header, &rows), cells.len(), said.join(", "))
}

fn lines(scenario: &str, pair: &str, cell: &UnknownCell) -> Vec<Vec<String>> {
    let share = |value: Option<f64>| value.map_or("–".to_string(), percent);
    let line = |(name, score): (&&str, &UnknownScore)| {
        vec![
            scenario.to_string(),
            pair.to_string(),
            name.to_string(),
            cell.items.to_string(),
            score.items.to_string(),
            share(score.auroc),
            share(score.recall),
            share(score.false_flags),
            share(score.h_score),
            cell.verdict.clone(),
        ]
    };
    SCORES.iter().zip(&cell.scores).map(line).collect()
}

/// The source without the unknown classes, and the target with them.
fn draw(
    args: &UnknownArgs,
    scenario: &str,
    source: Domain,
    target: Domain,
    seed: u64,
) -> anyhow::Result<(Domain, Domain)> {
    let classes = scenarios::classes(&source);
    let known: BTreeSet<String> = match scenario {
        "all known" => return Ok((source, target)),
        "given" => args.known.iter().cloned().collect(),
        _ => scenarios::draw_classes(&classes, 0.5, seed),
    };
    if let Some(missing) = known.difference(&classes).next() {
        anyhow::bail!("--known {missing}: the source has no such class");
    }
    let target = match args.new.is_empty() {
        true => target,
        false => {
            let classes = scenarios::classes(&target);
            if let Some(missing) = args.new.iter().find(|class| !classes.contains(*class)) {
                anyhow::bail!("--new {missing}: the target has no such class");
            }
            let kept = known.iter().chain(&args.new).cloned().collect();
            scenarios::with_classes(&target, &kept)?
        }
    };
    Ok((scenarios::with_classes(&source, &known)?, target))
}

fn measure(study: &Study<'_>, source: &Domain, target: &Domain) -> anyhow::Result<UnknownCell> {
    let domains = pair(source, target)?;
    let truth = truth_of(&domains, target);
    let similarity = baselines::source_similarity(&domains, NEAREST);
    let mass = Mass::default();
    drop(label(&domains, study.parameters().method(Method::Lp).alpha(MASS_ALPHA), &mass)?);
    let mass = mass.0.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let anchors = label(&domains, study.parameters(), &())?;
    // Known items are scored by the labels that users get by default.
    let parameters = study.parameters().method(Method::Auto).unknown(Unknown::Rank);
    let recommended = label(&domains, parameters, &())?;
    let Some(reach) = &recommended.reach else { anyhow::bail!("reach was not measured") };
    let labels = recommended.pseudo_labels.labels();

    let flagged = reach.unknown_items();
    let mut scores: Vec<UnknownScore> = truth.score_unknown(reach, labels).into_iter().collect();
    let simpler = [
        (&mass[..], labels),
        (&similarity[..], labels),
        (anchors.pseudo_labels.confidence(), anchors.pseudo_labels.labels()),
    ];
    for (values, labels) in simpler {
        let lowest = lowest(values, flagged);
        scores.extend(truth.score_flags(values, |item| lowest.contains(&item), labels));
    }
    let verdict = reach.verdict.as_str().to_string();
    Ok(UnknownCell { items: target.labels.len(), verdict, scores })
}

fn label(
    domains: &Domains,
    parameters: Parameters,
    observer: &dyn Observer,
) -> anyhow::Result<a2lp::Labelling> {
    let parameters = parameters.check()?;
    Ok(Run::new(domains.clone(), &parameters).observe(&(CtrlC, observer)).label()?)
}

/// The items with the smallest values, as many as reach flags.
fn lowest(values: &[f32], count: usize) -> BTreeSet<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]).then(a.cmp(&b)));
    order.into_iter().take(count).collect()
}

/// The sum of the propagated scores of every target item.
#[derive(Default)]
struct Mass(Mutex<Vec<f32>>);

impl Observer for Mass {
    fn round(&self, round: &FinishedRound<'_>) {
        let items = round.first_target..round.first_target + round.pseudo_labels.len();
        let mass = items.map(|node| round.soft_labels.row(node).iter().sum());
        *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = mass.collect();
    }
}
