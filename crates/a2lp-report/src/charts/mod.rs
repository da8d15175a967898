//! Every chart of a run. The same functions draw for the page and for paper.

mod graph;
mod map;
mod reach;
mod shapes;
mod truth;

pub(crate) use map::{map, map_caption};

use crate::svg::{Axes, Drawing, Ink, LEFT, count, percent};
use crate::{Chart, Run};
use a2lp::evaluation::RoundScore;
use graph::{affinity, degrees, pow_by_round};
use reach::reach;
use shapes::{Bar, Line, bars, dots, lines};
use truth::{calibration, confusion, coverage};

/// Classes beyond this many are not written out one by one.
const MANY: usize = 40;
/// Cells of a confusion matrix up to this many classes carry numbers.
const NUMBERED: usize = 14;

/// One chart with what to say about it.
pub(crate) struct Figure {
    /// Its file name, without ending.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) caption: String,
    pub(crate) svg: String,
}

fn figure(name: &'static str, title: &'static str, caption: String, drawing: Drawing<'_>) -> Figure {
    Figure { name, title, caption, svg: drawing.finish(title) }
}

/// All charts there is something to show for.
pub(crate) fn draw(run: &Run, ink: &Ink) -> Vec<Figure> {
    let charts: [fn(&Run, &Ink) -> Option<Figure>; 11] = [
        accuracy_by_round,
        changes_by_round,
        confidence,
        coverage,
        calibration,
        class_balance,
        reach,
        confusion,
        degrees,
        pow_by_round,
        affinity,
    ];
    charts.iter().filter_map(|chart| chart(run, ink)).collect()
}

/// The chart of an experiment.
pub(crate) fn of_experiment(ink: &Ink, chart: &Chart) -> String {
    match chart {
        Chart::Lines { x, series } => {
            let series: Vec<Line> = series
                .iter()
                .map(|(name, points)| Line { name: name.clone(), points: points.clone() })
                .collect();
            lines(ink, &series, x, None, |v| format!("{v:.1}"))
        }
        Chart::Dots { series, lines } => dots(ink, series, lines),
    }
}

fn accuracy_by_round(run: &Run, ink: &Ink) -> Option<Figure> {
    let rounds = &run.record.evaluation.as_ref()?.rounds;
    let of = |name: &str, value: fn(&RoundScore) -> f64| Line {
        name: name.into(),
        points: rounds.iter().map(|r| (r.round as f64, value(r))).collect(),
    };
    let mut both = vec![of("accuracy", |r| r.accuracy), of("mean over classes", |r| r.mean_class_accuracy)];
    if rounds.iter().all(|r| (r.accuracy - r.mean_class_accuracy).abs() < 5e-4) {
        // One line over the other would hide it.
        both.truncate(1);
        both[0].name = "accuracy, also on average over the classes".into();
    }
    let mut caption =
        "Round 1 is plain label propagation; every later round has the anchors of the earlier ones.";
    if let Some(consensus) = &run.record.consensus {
        caption =
            "The vote, and each view on its own before it; from round 2 on all have anchors of the vote.";
        both.truncate(1);
        both[0].name = "the vote".into();
        for view in &consensus.views {
            let point = |round: &RoundScore| Some((round.round as f64, view.accuracy(round.round)?));
            both.push(Line {
                name: format!("{} view", view.name.as_str()),
                points: rounds.iter().filter_map(point).collect(),
            });
        }
    }
    Some(Figure {
        name: "accuracy",
        title: "Accuracy round by round",
        caption: caption.into(),
        svg: lines(ink, &both, "round", None, percent),
    })
}

fn changes_by_round(run: &Run, ink: &Ink) -> Option<Figure> {
    let rounds = &run.record.rounds;
    if rounds.len() < 2 {
        return None;
    }
    let items = run.record.summary.items.max(1) as f64;
    let changed: Vec<(f64, f64)> =
        rounds.iter().skip(1).map(|r| (r.round as f64, r.changed as f64 / items)).collect();
    let confidence = rounds.iter().map(|r| (r.round as f64, r.mean_confidence)).collect();
    let mut both = vec![
        Line { name: "mean confidence".into(), points: confidence },
        Line { name: "label changed".into(), points: changed },
    ];
    let agreement: Vec<(f64, f64)> =
        rounds.iter().filter_map(|r| Some((r.round as f64, r.agreement?))).collect();
    if !agreement.is_empty() {
        both.insert(1, Line { name: "all views agree".into(), points: agreement });
    }
    Some(Figure {
        name: "rounds",
        title: "Settling down",
        caption: "Labels should stop changing; confidence need not reach 1.".into(),
        svg: lines(ink, &both, "round", Some(0.0), |v| format!("{v:.2}")),
    })
}

fn confidence(run: &Run, ink: &Ink) -> Option<Figure> {
    let bins = &run.trace.as_ref()?.confidence;
    let with_truth = run.trace.as_ref()?.truth.is_some();
    let most = bins.iter().map(|bin| bin.items).max()?.max(1) as f64;
    let mut drawing = Drawing::new(ink, 520.0, 280.0);
    let axes = Axes::new(&drawing, (0.0, 1.0), (0.0, most * 1.05));
    axes.draw_y(&mut drawing, |v| count(v as usize));
    axes.draw_x(&mut drawing, &[0.0, 0.25, 0.5, 0.75, 1.0], |v| format!("{v}"), "confidence");
    for (at, bin) in bins.iter().enumerate() {
        let (from, to) = (at as f64 / bins.len() as f64, (at + 1) as f64 / bins.len() as f64);
        let (left, width) = (axes.x(from) + 1.0, axes.x(to) - axes.x(from) - 2.0);
        let range = format!("confidence {from:.2} to {to:.2}");
        if with_truth {
            let wrong = bin.items - bin.correct;
            let (middle, top) = (axes.y(bin.correct as f64), axes.y(bin.items as f64));
            drawing.bar(
                left,
                middle,
                width,
                axes.y(0.0) - middle,
                ink.good,
                &format!("{range}: {} right", bin.correct),
            );
            drawing.bar(left, top, width, middle - top, ink.bad, &format!("{range}: {wrong} wrong"));
        } else {
            let top = axes.y(bin.items as f64);
            drawing.bar(
                left,
                top,
                width,
                axes.y(0.0) - top,
                ink.accent,
                &format!("{range}: {} items", bin.items),
            );
        }
    }
    if with_truth {
        drawing.key(LEFT, 18.0, &[("right".into(), ink.good.into()), ("wrong".into(), ink.bad.into())]);
    } else {
        drawing.key(LEFT, 18.0, &[("target items".into(), ink.accent.into())]);
    }
    let caption =
        "1 − entropy/ln K: 1 is one class only, 0 all classes alike. Good for sorting, not a probability.";
    Some(figure("confidence", "How sure", caption.into(), drawing))
}

fn class_balance(run: &Run, ink: &Ink) -> Option<Figure> {
    let trace = run.trace.as_ref()?;
    let truth = trace.truth.as_ref().map(|truth| &truth.counts);
    let share = |counts: &[usize], class: usize| {
        counts.get(class).copied().unwrap_or(0) as f64 / counts.iter().sum::<usize>().max(1) as f64
    };
    let mut classes: Vec<usize> = (0..trace.classes.len()).collect();
    let all = classes.len();
    if all > MANY {
        // Those whose share moved most.
        let moved =
            |class: usize| (share(&trace.target_counts, class) - share(&trace.source_counts, class)).abs();
        classes.sort_by(|&a, &b| moved(b).total_cmp(&moved(a)));
        classes.truncate(MANY);
        classes.sort_unstable();
    }
    let mut groups: Vec<(&str, &[usize], &'static str)> =
        vec![("source", &trace.source_counts, ink.muted), ("predicted", &trace.target_counts, ink.accent)];
    groups.extend(truth.map(|counts| ("truth", counts.as_slice(), ink.good)));
    let rows: Vec<(String, Vec<Bar<'_>>)> = classes
        .iter()
        .map(|&class| {
            let bar = |&(group, counts, colour): &(&str, &[usize], &'static str)| {
                let value = share(counts, class);
                let items = count(counts.get(class).copied().unwrap_or(0));
                Bar {
                    value,
                    colour,
                    tip: format!("{}, {group}: {items} items, {}", trace.classes[class], percent(value)),
                    words: (group == "predicted" && classes.len() <= 20).then(|| percent(value)),
                }
            };
            (trace.classes[class].clone(), groups.iter().map(bar).collect())
        })
        .collect();
    let key: Vec<(String, String)> =
        groups.iter().map(|group| (group.0.to_string(), group.2.to_string())).collect();
    let drawing = bars(ink, &rows, &key);
    let mut caption =
        "Share of each class. Far more or fewer than in the source deserves a look.".to_string();
    if all > MANY {
        caption += &format!(" The {MANY} of {all} classes whose share moved most.");
    }
    Some(figure("classes", "Classes", caption, drawing))
}
