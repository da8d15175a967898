//! The histogram of reach, with the threshold below which items match nothing in the source.

use super::{Figure, figure};
use crate::Run;
use crate::svg::{Anchor, Axes, Drawing, Ink, LEFT, count};
use crate::trace::{LEAST_REACH, MOST_REACH};
use a2lp::Verdict;

pub(super) fn reach(run: &Run, ink: &Ink) -> Option<Figure> {
    let trace = run.trace.as_ref()?;
    let bins = &trace.reach.as_ref()?.bins;
    let unknown = run.record.unknown.as_ref()?;
    let most = bins.iter().map(|bin| bin.items).max()?.max(1) as f64;
    let mut drawing = Drawing::new(ink, 520.0, 280.0);
    let axes = Axes::new(&drawing, (LEAST_REACH.log10(), MOST_REACH.log10()), (0.0, most * 1.12));
    axes.draw_y(&mut drawing, |v| count(v as usize));
    let ticks: Vec<f64> = [0.01f64, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0].iter().map(|tick| tick.log10()).collect();
    axes.draw_x(&mut drawing, &ticks, |v| format!("{}", (100.0 * 10f64.powf(v)).round() / 100.0), "reach");
    let step = (MOST_REACH / LEAST_REACH).log10() / bins.len() as f64;
    for (at, bin) in bins.iter().enumerate() {
        let from = LEAST_REACH.log10() + at as f64 * step;
        let (left, width) = (axes.x(from) + 1.0, axes.x(from + step) - axes.x(from) - 2.0);
        let range = format!("reach {:.2} to {:.2}", 10f64.powf(from), 10f64.powf(from + step));
        let (top, middle) = (axes.y(bin.items as f64), axes.y((bin.items - bin.new) as f64));
        let known = bin.items - bin.new;
        let words = if trace.truth.is_some() { "of known classes" } else { "items" };
        drawing.bar(
            left,
            middle,
            width,
            axes.y(0.0) - middle,
            ink.accent,
            &format!("{range}: {known} {words}"),
        );
        drawing.bar(left, top, width, middle - top, ink.bad, &format!("{range}: {} of new classes", bin.new));
    }
    let is_used = unknown.verdict != Verdict::CannotTell;
    if is_used && unknown.threshold > LEAST_REACH {
        let x = axes.x(unknown.threshold.log10());
        drawing.line((x, axes.y(0.0)), (x, axes.y(most * 1.12)), ink.text, true);
        drawing.text(
            x - 4.0,
            axes.y(most * 1.04),
            Anchor::End,
            ink.muted,
            &format!("threshold {:.2}", unknown.threshold),
        );
    }
    let key: &[(String, String)] = match &trace.truth {
        Some(_) => &[
            ("items of known classes".into(), ink.accent.into()),
            ("of classes that the source lacks".into(), ink.bad.into()),
        ],
        None => &[("target items".into(), ink.accent.into())],
    };
    drawing.key(LEFT, 18.0, key);
    let threshold = match is_used {
        true => "Items below the threshold match nothing in the source.",
        false => "No threshold is drawn, because none can be trusted here.",
    };
    let caption = format!(
        "How much of the source points at each item: 1 on average, small where the source has nothing like it. {threshold}"
    );
    Some(figure("reach", "Reach", caption, drawing))
}
