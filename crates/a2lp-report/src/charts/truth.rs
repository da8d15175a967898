//! Charts that need the truth: coverage, calibration, confusion.

use super::shapes::{Line, lines};
use super::{Figure, MANY, NUMBERED, figure};
use crate::Run;
use crate::svg::{Anchor, Axes, Drawing, Ink, LEFT, count, escape, percent, shorten};
use crate::trace::{CalibrationBin, NO_CLASS};
use std::collections::BTreeMap;

pub(super) fn coverage(run: &Run, ink: &Ink) -> Option<Figure> {
    let coverage = &run.trace.as_ref()?.truth.as_ref()?.coverage;
    let points = coverage.iter().map(|&(kept, correct)| (100.0 * kept, correct)).collect();
    let line = [Line { name: "right among the items kept".into(), points }];
    Some(Figure {
        name: "coverage",
        title: "Keeping only the surest",
        caption: "Accuracy when the least confident items are left to people.".into(),
        svg: lines(ink, &line, "% of items kept, the most confident first", None, percent),
    })
}

pub(super) fn calibration(run: &Run, ink: &Ink) -> Option<Figure> {
    let bins: &[CalibrationBin] = &run.trace.as_ref()?.truth.as_ref()?.calibration;
    let total = bins.iter().map(|bin| bin.items).sum::<usize>().max(1) as f64;
    let error: f64 =
        bins.iter().map(|bin| bin.items as f64 / total * (bin.probability - bin.correct).abs()).sum();
    let mut drawing = Drawing::new(ink, 520.0, 280.0);
    let axes = Axes::new(&drawing, (0.0, 1.0), (0.0, 1.0));
    axes.draw_y(&mut drawing, percent);
    axes.draw_x(&mut drawing, &[0.0, 0.25, 0.5, 0.75, 1.0], |v| format!("{v}"), "probability of the label");
    drawing.line((axes.x(0.0), axes.y(0.0)), (axes.x(1.0), axes.y(1.0)), ink.muted, true);
    let filled = || bins.iter().filter(|bin| bin.items > 0);
    let place = |bin: &CalibrationBin| (axes.x(bin.probability), axes.y(bin.correct));
    let places: Vec<(f64, f64)> = filled().map(place).collect();
    // A handful of items is no trend.
    let trend: Vec<(f64, f64)> = filled().filter(|bin| bin.items >= 5).map(place).collect();
    drawing.path(&trend, ink.accent);
    for (bin, &(x, y)) in filled().zip(&places) {
        let radius = 3.0 + 7.0 * (bin.items as f64 / total).sqrt();
        let tip = format!(
            "{} items with probability {:.2} on average: {} right",
            count(bin.items),
            bin.probability,
            percent(bin.correct)
        );
        drawing.dot(x, y, radius, ink.accent, &tip);
    }
    drawing.key(
        LEFT,
        18.0,
        &[("share labelled correctly".into(), ink.accent.into()), ("calibrated".into(), ink.muted.into())],
    );
    let caption = format!(
        "Above the dashed line the labels are better than their probabilities say, below it worse. \
         Expected calibration error {error:.3}."
    );
    Some(figure("calibration", "Calibration", caption, drawing))
}

pub(super) fn confusion(run: &Run, ink: &Ink) -> Option<Figure> {
    let trace = run.trace.as_ref()?;
    let truth = trace.truth.as_ref()?;
    let cells: BTreeMap<(u16, u16), usize> =
        truth.confusion.iter().map(|&(truth, label, items)| ((truth, label), items)).collect();
    let mut rows: Vec<u16> =
        (0..truth.counts.len() as u16).filter(|&c| truth.counts[usize::from(c)] > 0).collect();
    let mut columns: Vec<u16> = (0..trace.source_counts.len() as u16).collect();
    let (all_rows, all_columns) = (rows.len(), columns.len());
    if rows.len() > MANY || columns.len() > MANY {
        // The classes with the most wrong items.
        let wrong = |class: u16| -> usize {
            let is_wrong = |((truth, label), _): &(&(u16, u16), &usize)| {
                truth != label && (*truth == class || *label == class)
            };
            cells.iter().filter(is_wrong).map(|(_, &items)| items).sum()
        };
        let worst = |mut classes: Vec<u16>| {
            classes.sort_by_key(|&class| std::cmp::Reverse(wrong(class)));
            classes.truncate(MANY);
            classes.sort_unstable();
            classes
        };
        (rows, columns) = (worst(rows), worst(columns));
    }
    if truth.confusion.iter().any(|cell| cell.1 == NO_CLASS) {
        columns.push(NO_CLASS);
    }
    let name = |class: u16| match class {
        NO_CLASS => "none",
        class => trace.classes[usize::from(class)].as_str(),
    };
    let longest =
        |classes: &[u16]| classes.iter().map(|&c| name(c).chars().count()).max().unwrap_or(1).min(16) as f64;
    let (left, top) = (24.0 + 6.6 * longest(&rows), 40.0 + 5.0 * longest(&columns));
    let side = ((520.0 - left - 8.0) / columns.len().max(1) as f64).clamp(9.0, 40.0);
    let (width, height) = (left + side * columns.len() as f64 + 8.0, top + side * rows.len() as f64 + 8.0);
    let mut drawing = Drawing::new(ink, width.max(300.0), height);
    drawing.text(4.0, 14.0, Anchor::Start, ink.muted, "rows: true class, columns: predicted");
    for (at, &class) in columns.iter().enumerate() {
        let (x, y) = (left + side * (at as f64 + 0.5) + 4.0, top - 4.0);
        drawing.raw(&format!(
            r#"<text transform="translate({x:.1} {y:.1}) rotate(-45)" style="fill:{}">{}</text>"#,
            ink.text,
            escape(&shorten(name(class), 16))
        ));
    }
    for (line, &of) in rows.iter().enumerate() {
        let y = top + side * line as f64;
        drawing.text(left - 6.0, y + side / 2.0 + 4.0, Anchor::End, ink.text, &shorten(name(of), 16));
        let items = truth.counts[usize::from(of)].max(1) as f64;
        for (at, &to) in columns.iter().enumerate() {
            let here = cells.get(&(of, to)).copied().unwrap_or(0);
            let share = here as f64 / items;
            let colour = if of == to { ink.good } else { ink.bad };
            let x = left + side * at as f64;
            let tip = format!("{} taken for {}: {here} of {items}", name(of), name(to));
            let opacity = if here == 0 { 0.0 } else { 0.15 + 0.85 * share.sqrt() };
            drawing.raw(&format!(
                r#"<rect x="{x:.1}" y="{y:.1}" width="{0:.1}" height="{0:.1}" style="fill:{colour};fill-opacity:{opacity:.2};stroke:{1}"><title>{2}</title></rect>"#,
                side - 1.0,
                ink.grid,
                escape(&tip)
            ));
            if columns.len() <= NUMBERED && here > 0 {
                let colour = if opacity > 0.75 { ink.surface } else { ink.text };
                drawing.text(
                    x + side / 2.0 - 0.5,
                    y + side / 2.0 + 4.0,
                    Anchor::Middle,
                    colour,
                    &here.to_string(),
                );
            }
        }
    }
    let mut caption =
        "A row is a true class, a column what its items were taken for; the diagonal is right.".to_string();
    if all_rows > rows.len() || all_columns > columns.len() {
        caption += &format!(" The {MANY} classes with the most mistakes.");
    }
    Some(figure("confusion", "Confusion matrix", caption, drawing))
}
