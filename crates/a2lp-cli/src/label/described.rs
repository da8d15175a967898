//! The summary of `a2lp label` and the plan of `--dry-run`, in words.

use super::input::Opened;
use crate::args::LabelArgs;
use crate::memory;
use crate::output::record_path;
use crate::table::{percent, render};
use a2lp::{AssumedMix, GraphMethod, Labelling, Plan, Round, Shape};
use a2lp_report::RunRecord;
use a2lp_report::record::{ClassShare, ViewRecord};

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
        "method      {}\n\
         features    {source_rows} source and {target_rows} target rows × {columns}, {classes} classes, {} in memory\n\
         neighbours  {count}{search}\n\
         rounds      {}, solver {}\n\
         memory      about {} at the peak\n\
         threads     {}\n\
         Seconds are a guess from a short measurement of this machine. Nothing was run and nothing was written.\n",
        plan.chosen,
        memory::describe(plan.feature_bytes),
        secs(plan.rounds_secs),
        if plan.solver == a2lp::Solver::Dense { "dense" } else { "cg" },
        memory::describe(plan.peak_bytes),
        plan.threads,
    )
}

/// The summary for people.
pub(super) fn describe(record: &RunRecord, labelling: &Labelling) -> String {
    let out = &record.summary.out;
    let parts = [
        format!("method: {}\n", labelling.method),
        describe_labels(record, labelling),
        describe_consensus(record),
        describe_unknown(record),
        describe_quality(record),
        describe_accuracy(record),
        "\n".into(),
        describe_rounds(record, labelling),
        format!("\nlabels in {}, run record in {}\n", out.display(), record_path(out).display()),
    ];
    parts.concat()
}

fn describe_labels(record: &RunRecord, labelling: &Labelling) -> String {
    let summary = &record.summary;
    let unknown = if labelling.nearest_labels.is_some() {
        format!(", {} unknown", summary.unknown)
    } else {
        String::new()
    };
    let mut text = format!(
        "{} target items: {} labelled, {} low-confidence, {} weak, {} unreached{unknown}; mean confidence {:.3}\n",
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
    text
}

fn describe_consensus(record: &RunRecord) -> String {
    let Some(consensus) = &record.consensus else { return String::new() };
    let names: Vec<&str> = consensus.views.iter().map(|view| view.name.as_str()).collect();
    let mut text = format!(
        "views {} agree on {} % of the items; the {} others have fewer than {} votes: check them by hand\n",
        names.join(", "),
        percent(consensus.agreement),
        consensus.disagreements,
        consensus.views.len()
    );
    if let Some(mix) = &consensus.mix {
        let name = match mix.chosen {
            AssumedMix::Own => "the target's own",
            _ => "the source's",
        };
        text += &format!("class mix: {name}");
        if let (Some(same), Some(own)) = (mix.fit_same, mix.fit_own) {
            text += &format!(" (fit {own:.3} with its own, {same:.3} with the source's)");
        }
        text += "\n";
    }
    text + &describe_shares(&consensus.class_shares)
}

/// The class shares, if they differ much between the domains.
fn describe_shares(shares: &[ClassShare]) -> String {
    let differ = |share: &ClassShare| {
        let (low, high) = (share.source.min(share.target), share.source.max(share.target));
        share.probably_absent || high > 2.0 * low && high - low > 0.02
    };
    let rows: Vec<Vec<String>> = shares
        .iter()
        .filter(|share| differ(share))
        .map(|share| {
            let note = if share.probably_absent { "probably absent" } else { "" };
            vec![share.class.clone(), percent(share.source), percent(share.target), note.into()]
        })
        .collect();
    match rows.len() {
        0 => String::new(),
        _ => {
            "\nclasses whose share differs\n".to_string()
                + &render(&["class", "source %", "target %", ""], &rows)
                + "\n"
        }
    }
}

/// Whether the target holds classes that the source lacks, and what to do then.
fn describe_unknown(record: &RunRecord) -> String {
    let Some(unknown) = &record.unknown else {
        let is_off = record.settings.get("unknown").is_some_and(|word| word == "off");
        return match searches_slowly(record) && !is_off {
            true => "unknown classes: not looked for, as that takes another search of this many rows; --unknown flag does it\n".into(),
            false => String::new(),
        };
    };
    let mut text = format!("unknown classes: {}\n", unknown.message);
    if unknown.items == 0 {
        return text;
    }
    text += &match unknown.flagged {
        true => {
            "  they have no label; the column nearest_label names the class they look most like\n".to_string()
        }
        false => format!(
            "  they keep a label; sort by the column reach (below {:.3}), or take their labels away with --unknown flag\n",
            unknown.threshold
        ),
    };
    if let Some(score) = &unknown.score
        && let (Some(recall), Some(false_flags), Some(auroc)) = (score.recall, score.false_flags, score.auroc)
    {
        text += &format!(
            "  of the {} items of such classes {} % are below the threshold, of the others {} %; AUROC {auroc:.3}",
            score.items,
            percent(recall),
            percent(false_flags)
        );
        text += &score.h_score.map_or("\n".into(), |h| format!(", H-score {} %\n", percent(h)));
    }
    if !unknown.groups.is_empty() {
        let sizes: Vec<String> = unknown.groups.iter().take(8).map(|group| group.items.to_string()).collect();
        let more = if unknown.groups.len() > sizes.len() { ", …" } else { "" };
        let noun = if unknown.groups.len() == 1 { "group" } else { "groups" };
        text += &format!(
            "  {} {noun} of look-alikes among them, of {}{more} items: candidates for new classes\n",
            unknown.groups.len(),
            sizes.join(", ")
        );
    }
    text
}

fn searches_slowly(record: &RunRecord) -> bool {
    let searched = record.graph.as_ref().map(|graph| graph.method);
    matches!(searched, Some(GraphMethod::Pruned | GraphMethod::Nndescent))
}

/// The quality score, and the guard's verdict.
fn describe_quality(record: &RunRecord) -> String {
    let mut text = String::new();
    if let Some(quality) = &record.summary.quality {
        text += &format!(
            "quality {:.3} (back to the source {:.3}, coherence {:.3}): ranks runs on these features; no estimate of the accuracy\n",
            quality.score, quality.reverse, quality.coherence
        );
    }
    let searched = record.graph.as_ref().map(|graph| graph.method);
    if searched == Some(GraphMethod::Nndescent) && record.summary.quality.is_none() {
        text += "quality not measured: its graph is slow by NN-Descent; --guard measures it all the same\n";
    }
    if let Some(guard) = &record.guard {
        let method = guard.method.as_str();
        text += &match guard.fell_back {
            true => format!(
                "guard: {method} scored {:.3}, lp {:.3}; the labels come from lp\n",
                guard.score, guard.lp_score
            ),
            false => format!("guard: {method} kept, lp scored {:.3}\n", guard.lp_score),
        };
    }
    text
}

/// Accuracy in all and by class, if the truth is known.
fn describe_accuracy(record: &RunRecord) -> String {
    let Some(evaluation) = &record.evaluation else { return String::new() };
    let score = &evaluation.score;
    let counts = &record.summary.class_counts;
    let rows: Vec<Vec<String>> = score
        .classes
        .iter()
        .map(|class| {
            let predicted = counts.get(&class.class).copied().unwrap_or(0);
            vec![
                class.class.clone(),
                class.items.to_string(),
                predicted.to_string(),
                percent(class.accuracy()),
            ]
        })
        .collect();
    format!(
        "accuracy {} %, mean over classes {} %\n\n{}",
        percent(score.accuracy),
        percent(score.mean_class_accuracy),
        render(&["class", "items", "predicted", "correct %"], &rows)
    )
}

/// A line per round, with its scores if the truth is known.
fn describe_rounds(record: &RunRecord, labelling: &Labelling) -> String {
    let scores = record.evaluation.as_ref().map(|evaluation| evaluation.rounds.as_slice());
    let views = record.consensus.as_ref().map_or(&[][..], |consensus| &consensus.views);
    let row = |(at, round): (usize, &Round)| {
        let mut row = vec![
            round.round.to_string(),
            round.anchors.to_string(),
            round.changed.to_string(),
            format!("{:.3}", round.mean_confidence),
            round.solve.iterations.to_string(),
        ];
        row.extend(round.agreement.map(percent));
        if let Some(score) = scores.and_then(|scores| scores.get(at)) {
            row.extend([
                percent(score.accuracy),
                percent(score.mean_class_accuracy),
                percent(score.pow),
                format!("{:.2}", score.same_class_regulariser),
                format!("{:.2}", score.other_class_regulariser),
            ]);
            let of_view = |view: &ViewRecord| view.accuracy(round.round).map_or("–".into(), percent);
            row.extend(views.iter().map(of_view));
        }
        row
    };
    let rows: Vec<Vec<String>> = labelling.rounds.iter().enumerate().map(row).collect();
    let mut header = vec!["round", "anchors", "changed", "confidence", "iterations"];
    header.extend(record.consensus.as_ref().map(|_| "agreed %"));
    if scores.is_some() {
        header.extend(["accuracy", "class mean", "PoW %", "R same", "R other"]);
        header.extend(views.iter().map(|view| view.name.as_str()));
    }
    render(&header, &rows)
}
