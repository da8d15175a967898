//! A run in words: the result, how reliable it is, and where to look.

use crate::Run;
use crate::record::Consensus;
use crate::svg::{count, percent, several};
use crate::trace::NO_CLASS;
use a2lp::{AssumedMix, MixChoice};
use std::cmp::Reverse;

/// Sentences for the head of the page, the most important first.
pub(crate) fn summary(run: &Run) -> Vec<String> {
    let summary = &run.record.summary;
    let mut sentences = vec![counts(run)];
    if let Some(evaluation) = &run.record.evaluation {
        let score = &evaluation.score;
        let mut text = format!(
            "{} of the items are labelled correctly, {} on average over the classes.",
            percent(score.accuracy),
            percent(score.mean_class_accuracy)
        );
        if let Some(first) = evaluation.rounds.first().filter(|_| evaluation.rounds.len() > 1) {
            let gain = 100.0 * (score.accuracy - first.accuracy);
            let word = if gain >= 0.05 {
                format!("the anchors gained {gain:.1} points")
            } else if gain <= -0.05 {
                format!("the anchors lost {:.1} points", -gain)
            } else {
                "the anchors changed nothing in sum".into()
            };
            let before = match run.record.consensus {
                Some(_) => "Without anchors the vote had",
                None => "Plain label propagation had",
            };
            text += &format!(" {before} {}; {word}.", percent(first.accuracy));
        }
        sentences.push(text);
    }
    if let Some(consensus) = &run.record.consensus {
        sentences.push(format!(
            "{} views voted; they agree on {} of the items, and {} are worth a look.",
            consensus.views.len(),
            percent(consensus.agreement),
            several(consensus.disagreements, "item")
        ));
        sentences.extend(mix(consensus));
    }
    sentences.extend(unknown(run));
    if let Some(quality) = &summary.quality {
        sentences.push(format!(
            "The quality score of the labels is {:.2}: {} of the source gets its own label back from them, and coherence among neighbours is {:.2}. It ranks runs on the same features; it is no estimate of the accuracy.",
            quality.score, percent(quality.reverse), quality.coherence
        ));
    }
    if let Some(guard) = &run.record.guard {
        let kept = if guard.fell_back {
            "so the labels come from plain label propagation"
        } else {
            "so they were kept"
        };
        sentences.push(format!(
            "The labels of {} scored {:.3} in quality, the labels of plain label propagation {:.3}, {kept}.",
            guard.method.as_str(),
            guard.score,
            guard.lp_score
        ));
    }
    if let Some(trace) = &run.trace {
        let bins = &trace.confidence;
        let share_from = |from: f64| {
            let first = (from * bins.len() as f64).round() as usize;
            bins[first..].iter().map(|bin| bin.items).sum::<usize>()
        };
        let (sure, unsure) = (share_from(0.9), summary.items - share_from(0.5));
        sentences.push(format!(
            "Mean confidence is {:.2}; {} ({}) at 0.9 or more, {} ({}) below 0.5.",
            summary.mean_confidence,
            several(sure, "item"),
            share(sure, summary.items),
            count(unsure),
            share(unsure, summary.items)
        ));
        if summary.rounds > 1 && trace.overturned > 0 {
            sentences.push(format!(
                "Compared with the first round, which has none, the anchors changed the label of {} ({}).",
                several(trace.overturned, "item"),
                share(trace.overturned, summary.items)
            ));
        }
        sentences.extend(look_at(run));
    }
    sentences.push(settled(run));
    sentences
}

/// The class mix that the labels assume, and classes that are probably absent.
fn mix(consensus: &Consensus) -> Option<String> {
    let MixChoice { chosen, fit_same, fit_own } = consensus.mix.as_ref()?;
    let mut text: String = match chosen {
        AssumedMix::Own => "The labels assume that the target has its own class mix".into(),
        _ => "The labels assume that the target has the class mix of the source".into(),
    };
    if let (Some(same), Some(own)) = (fit_same, fit_own) {
        text += &format!(" (fit {own:.3} with its own mix, {same:.3} with the source's)");
    }
    let absent: Vec<&str> = consensus
        .class_shares
        .iter()
        .filter(|share| share.probably_absent)
        .map(|share| share.class.as_str())
        .collect();
    if !absent.is_empty() {
        text += &format!("; probably absent: {}", absent.join(", "));
    }
    Some(text + ".")
}

/// What can be said about classes that the source lacks.
fn unknown(run: &Run) -> Option<String> {
    let unknown = run.record.unknown.as_ref()?;
    let mut text = format!("Unknown classes: {}", unknown.message);
    if unknown.items > 0 {
        text += match unknown.flagged {
            true => "; their labels were taken away",
            false => "; they keep the label of a known class",
        };
    }
    text += ".";
    if let Some(score) = &unknown.score
        && let (Some(recall), Some(false_flags), Some(auroc)) = (score.recall, score.false_flags, score.auroc)
    {
        text += &format!(
            " In truth {} are of such classes. The threshold finds {} of them, and wrongly takes {} of the others for such; reach ranks the two with an AUROC of {auroc:.3}.",
            several(score.items, "item"),
            percent(recall),
            percent(false_flags)
        );
    }
    Some(text)
}

fn share(part: usize, of: usize) -> String {
    percent(part as f64 / of.max(1) as f64)
}

fn counts(run: &Run) -> String {
    let summary = &run.record.summary;
    let mut parts = Vec::new();
    for (number, what) in [
        (summary.low_confidence, "are below the confidence asked for"),
        (summary.weak, "are so far from any label that their scores mean little"),
        (summary.unreached, "have no path to any label and got none"),
        (summary.unknown, "match nothing in the source and got none"),
    ] {
        if number > 0 {
            parts.push(format!("{} {what}", count(number)));
        }
    }
    if parts.is_empty() {
        return format!("All {} target items got a label.", count(summary.items));
    }
    format!(
        "{} of {} target items got a label to rely on; {}.",
        count(summary.labelled),
        count(summary.items),
        parts.join(", ")
    )
}

/// The class to look at first, and the mistake made most often.
fn look_at(run: &Run) -> Vec<String> {
    let Some(trace) = &run.trace else { return Vec::new() };
    let mut sentences = Vec::new();
    let predicted = (0..trace.target_counts.len()).filter(|&class| trace.target_counts[class] > 0);
    let shakiest = predicted.min_by(|&a, &b| trace.class_confidence[a].total_cmp(&trace.class_confidence[b]));
    if let Some(class) = shakiest.filter(|_| trace.target_counts.len() > 1) {
        sentences.push(format!(
            "Look first at “{}”: of all classes it is the least certain, with a confidence of {:.2} on average over {}.",
            trace.classes[class],
            trace.class_confidence[class],
            several(trace.target_counts[class], "item")
        ));
    }
    if let Some(truth) = &trace.truth {
        let mistakes =
            truth.confusion.iter().filter(|(truth, label, _)| truth != label && *label != NO_CLASS);
        if let Some((of, to, items)) =
            mistakes.max_by_key(|mistake| (mistake.2, Reverse((mistake.0, mistake.1))))
        {
            sentences.push(format!(
                "Most often “{}” is taken for “{}”: {}.",
                trace.classes[usize::from(*of)],
                trace.classes[usize::from(*to)],
                if *items == 1 { "once".into() } else { format!("{} times", count(*items)) }
            ));
        }
    }
    sentences
}

fn settled(run: &Run) -> String {
    let rounds = &run.record.rounds;
    let last_change = rounds.iter().rev().find(|round| round.changed > 0);
    match (rounds.len(), last_change) {
        (0 | 1, _) => "One round was run: plain label propagation, without anchors.".into(),
        (_, None) => "No label changed after the first round.".into(),
        (all, Some(round)) if round.round == all => {
            format!("{} still changed in the last of {all} rounds.", several(round.changed, "label"))
        }
        (all, Some(round)) => format!("No label changed after round {} of {all}.", round.round),
    }
}
