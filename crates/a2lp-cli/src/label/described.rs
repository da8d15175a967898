//! The summary of `a2lp label` and the plan of `--dry-run`, in words.

use super::input::Opened;
use crate::args::LabelArgs;
use crate::memory;
use crate::output::record_path;
use crate::table::{percent, render};
use a2lp::{GraphMethod, Labelling, Plan, Shape};
use a2lp_report::RunRecord;

/// What `--dry-run` prints.
pub(super) fn describe_plan(args: &LabelArgs, opened: &Opened, plan: &Plan) -> String {
    let Shape { source_rows, target_rows, columns, classes } = opened.shape();
    let secs = |secs: f64| if secs < 1.0 { "under 1 s".to_string() } else { format!("about {secs:.0} s") };
    let (count, search) = match (&args.graph, plan.neighbours, plan.method) {
        (Some(path), ..) => (String::new(), format!("taken from {}", path.display())),
        (None, Some(k), Some(method)) => {
            (format!("{k} each, "), format!("{} search, {}", method.as_str(), secs(plan.search_secs)))
        }
        _ => (String::new(), "the full graph".to_string()),
    };
    format!(
        "features    {source_rows} source and {target_rows} target rows × {columns}, {classes} classes, {} in memory\n\
         neighbours  {count}{search}\n\
         rounds      {}, solver {}\n\
         memory      about {} at the peak\n\
         threads     {}\n\
         Seconds are a guess from another machine. Nothing was run and nothing was written.\n",
        memory::describe(plan.feature_bytes),
        secs(plan.rounds_secs),
        if plan.solver == a2lp::Solver::Dense { "dense" } else { "cg" },
        memory::describe(plan.peak_bytes),
        plan.threads,
    )
}

/// The summary for people.
pub(super) fn describe(record: &RunRecord, labelling: &Labelling) -> String {
    let summary = &record.summary;
    let mut text = format!(
        "{} target items: {} labelled, {} low-confidence, {} weak, {} unreached; mean confidence {:.3}\n",
        summary.items,
        summary.labelled,
        summary.low_confidence,
        summary.weak,
        summary.unreached,
        summary.mean_confidence
    );
    if let Some(graph) = &labelling.graph {
        text += &format!("neighbours by {graph}, {:.1} s\n", labelling.neighbours_secs);
    }
    if let Some(consensus) = &record.consensus {
        let names: Vec<&str> = consensus.views.iter().map(|view| view.name.as_str()).collect();
        text += &format!(
            "views {} agree on {} % of the items; the {} others have fewer than {} votes: check those by hand\n",
            names.join(", "),
            percent(consensus.agreement),
            consensus.disagreements,
            consensus.views.len()
        );
    }
    if let Some(quality) = &summary.quality {
        text += &format!(
            "quality {:.3} (back to the source {:.3}, coherence {:.3}): ranks runs on these features; no estimate of the accuracy\n",
            quality.score, quality.reverse, quality.coherence
        );
    }
    let searched = record.graph.as_ref().map(|graph| graph.method);
    if matches!(searched, Some(GraphMethod::Pruned | GraphMethod::Nndescent)) && summary.quality.is_none() {
        text += "quality not measured, as there are so many rows; --guard does\n";
    }
    if let Some(guard) = &record.guard {
        let method = guard.method.as_str();
        text += &match guard.fell_back {
            true => format!(
                "guard: {method} scored {:.3}, lp {:.3}; the labels are those of lp\n",
                guard.score, guard.lp_score
            ),
            false => format!("guard: {method} kept, lp scored {:.3}\n", guard.lp_score),
        };
    }
    let score = record.evaluation.as_ref().map(|evaluation| &evaluation.score);
    let rounds = record.evaluation.as_ref().map(|evaluation| evaluation.rounds.as_slice());
    if let Some(score) = score {
        text += &format!(
            "accuracy {} %, mean over classes {} %\n\n",
            percent(score.accuracy),
            percent(score.mean_class_accuracy)
        );
        let rows: Vec<Vec<String>> = score
            .classes
            .iter()
            .map(|class| {
                let predicted = summary.class_counts.get(&class.class).copied().unwrap_or(0);
                vec![
                    class.class.clone(),
                    class.items.to_string(),
                    predicted.to_string(),
                    percent(class.accuracy()),
                ]
            })
            .collect();
        text += &render(&["class", "items", "predicted", "correct %"], &rows);
    }
    let views = record.consensus.as_ref().map_or(&[][..], |consensus| &consensus.views);
    let score_of = |round: usize| rounds.and_then(|rounds| rounds.get(round));
    let rows: Vec<Vec<String>> = labelling
        .rounds
        .iter()
        .enumerate()
        .map(|(at, round)| {
            let mut row = vec![
                round.round.to_string(),
                round.anchors.to_string(),
                round.changed.to_string(),
                format!("{:.3}", round.mean_confidence),
                round.solve.iterations.to_string(),
            ];
            row.extend(round.agreement.map(percent));
            if let Some(score) = score_of(at) {
                row.extend([
                    percent(score.accuracy),
                    percent(score.mean_class_accuracy),
                    percent(score.pow),
                    format!("{:.2}", score.same_class_regulariser),
                    format!("{:.2}", score.other_class_regulariser),
                ]);
                row.extend(
                    views
                        .iter()
                        .flat_map(|view| view.accuracy_by_round.as_ref()?.get(at))
                        .map(|&a| percent(a)),
                );
            }
            row
        })
        .collect();
    let mut header = vec!["round", "anchors", "changed", "confidence", "iterations"];
    header.extend(record.consensus.as_ref().map(|_| "agreed %"));
    if rounds.is_some() {
        header.extend(["accuracy", "class mean", "PoW %", "R same", "R other"]);
        header.extend(views.iter().map(|view| view.name.as_str()));
    }
    text += "\n";
    text += &render(&header, &rows);
    text += &format!(
        "\nlabels in {}, run record in {}\n",
        summary.out.display(),
        record_path(&summary.out).display()
    );
    text
}
