//! Lines, dots and bars, from which charts are made.

use crate::svg::{Anchor, Axes, Drawing, Ink, LEFT, shorten};

pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// Lines over a common x, with a key above and dots that tell their values.
pub(super) fn lines(
    ink: &Ink,
    lines: &[Line],
    x_name: &str,
    floor: Option<f64>,
    format: impl Fn(f64) -> String,
) -> String {
    let mut drawing = Drawing::new(ink, 520.0, 280.0);
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    let x = range(&mut points().map(|p| p.0));
    let (low, high) = range(&mut points().map(|p| p.1));
    let margin = 0.08 * (high - low).max(0.02 * high.abs());
    let y = (floor.unwrap_or(low - margin), high + margin);
    let axes = Axes::new(&drawing, x, y);
    axes.draw_y(&mut drawing, &format);
    let whole: Vec<f64> = axes.ticks_x().into_iter().filter(|v| v.fract() == 0.0).collect();
    let values = if x.1 - x.0 <= 12.0 && x.0.fract() == 0.0 {
        (x.0 as i64..=x.1 as i64).map(|v| v as f64).collect()
    } else if whole.len() >= 3 {
        whole
    } else {
        axes.ticks_x()
    };
    axes.draw_x(&mut drawing, &values, |v| format!("{v}"), x_name);
    for (at, line) in lines.iter().enumerate() {
        let places: Vec<(f64, f64)> = line.points.iter().map(|&(x, y)| (axes.x(x), axes.y(y))).collect();
        drawing.path(&places, ink.line(at));
        for (&(x, y), &(px, py)) in line.points.iter().zip(&places) {
            drawing.dot(px, py, 3.5, ink.line(at), &format!("{}, {x_name} {x}: {}", line.name, format(y)));
        }
    }
    let key: Vec<(String, String)> =
        lines.iter().enumerate().map(|(at, line)| (line.name.clone(), ink.line(at).to_string())).collect();
    drawing.key(LEFT, 18.0, &key);
    drawing.finish(x_name)
}

/// A line for each row, its values as dots: for numbers that are all nearly as large.
pub(super) fn dots(ink: &Ink, series: &[String], rows: &[(String, Vec<f64>)]) -> String {
    let mut drawing = Drawing::new(ink, 520.0, 70.0 + 20.0 * rows.len() as f64);
    let values = || rows.iter().flat_map(|row| row.1.iter().copied());
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let margin = 0.04 * (high - low).max(1.0);
    let axes =
        Axes::new(&drawing, (low - margin, high + margin), (0.0, rows.len() as f64)).starting_at(160.0);
    axes.draw_down(&mut drawing);
    axes.draw_x(&mut drawing, &axes.ticks_x(), |v| format!("{v}"), "");
    for (at, (name, values)) in rows.iter().enumerate() {
        let y = axes.y(rows.len() as f64 - at as f64 - 0.5);
        drawing.text(152.0, y + 4.0, Anchor::End, ink.text, &shorten(name, 23));
        for (of, &value) in values.iter().enumerate() {
            let tip = format!("{name}, {}: {value:.1}", series.get(of).map_or("", String::as_str));
            drawing.dot(axes.x(value), y, 4.5, ink.line(of), &tip);
        }
    }
    let key: Vec<(String, String)> =
        series.iter().enumerate().map(|(at, name)| (name.clone(), ink.line(at).to_string())).collect();
    drawing.key(12.0, 18.0, &key);
    drawing.finish("results")
}

pub(super) struct Bar<'a> {
    pub(super) value: f64,
    pub(super) colour: &'a str,
    pub(super) tip: String,
    pub(super) words: Option<String>,
}

/// Groups of bars that grow to the right, a group below the other.
pub(super) fn bars<'a>(
    ink: &'a Ink,
    groups: &[(String, Vec<Bar<'_>>)],
    key: &[(String, String)],
) -> Drawing<'a> {
    let most = groups.iter().flat_map(|group| group.1.iter().map(|bar| bar.value)).fold(1e-9, f64::max);
    let in_group = groups.iter().map(|group| group.1.len()).max().unwrap_or(1) as f64;
    let thickness = if groups.len() > 20 { 5.0 } else { 8.0 };
    let step = thickness * in_group + 7.0;
    let mut drawing = Drawing::new(ink, 520.0, 46.0 + step * groups.len() as f64);
    let left = 140.0;
    let full = drawing.width - left - 60.0;
    for (at, (name, bars)) in groups.iter().enumerate() {
        let top = 32.0 + step * at as f64;
        let middle = top + thickness * in_group / 2.0 + 4.0;
        drawing.text(left - 6.0, middle, Anchor::End, ink.text, &shorten(name, 20));
        for (line, bar) in bars.iter().enumerate() {
            let (y, width) = (top + line as f64 * thickness, full * bar.value / most);
            drawing.bar(left, y, width, thickness - 1.0, bar.colour, &bar.tip);
            if let Some(words) = &bar.words {
                // Clear of all bars of the group.
                let longest = bars.iter().map(|bar| full * bar.value / most).fold(0.0, f64::max);
                drawing.text(
                    left + longest + 5.0,
                    y + thickness / 2.0 + 3.5,
                    Anchor::Start,
                    ink.muted,
                    words,
                );
            }
        }
    }
    drawing.key(left, 18.0, key);
    drawing
}
