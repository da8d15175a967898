//! Every chart of a run. The same functions draw for the page and for paper.

use crate::svg::{Anchor, Axes, Drawing, Ink, LEFT, class_colour, count, escape, percent, shorten};
use crate::trace::{AffinityPicture, CalibrationBin, Map, MapKind, NO_CLASS};
use crate::{Chart, Run};
use a2lp::evaluation::RoundScore;
use base64::Engine;
use std::collections::BTreeMap;

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
    let charts: [fn(&Run, &Ink) -> Option<Figure>; 10] = [
        accuracy_by_round,
        changes_by_round,
        confidence,
        coverage,
        calibration,
        class_balance,
        confusion,
        degrees,
        pow_by_round,
        affinity,
    ];
    charts.iter().filter_map(|chart| chart(run, ink)).collect()
}

struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

/// Lines over a common x, with a key above and dots that tell their values.
fn lines(
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

/// A line for each row, its values as dots: for numbers that are all nearly as large.
fn dots(ink: &Ink, series: &[String], rows: &[(String, Vec<f64>)]) -> String {
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

struct Bar<'a> {
    value: f64,
    colour: &'a str,
    tip: String,
    words: Option<String>,
}

/// Groups of bars that grow to the right, a group below the other.
fn bars<'a>(ink: &'a Ink, groups: &[(String, Vec<Bar<'_>>)], key: &[(String, String)]) -> Drawing<'a> {
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

fn coverage(run: &Run, ink: &Ink) -> Option<Figure> {
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

fn calibration(run: &Run, ink: &Ink) -> Option<Figure> {
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

fn confusion(run: &Run, ink: &Ink) -> Option<Figure> {
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

fn degrees(run: &Run, ink: &Ink) -> Option<Figure> {
    let graph = run.trace.as_ref()?.graph.as_ref()?;
    let most = graph.degrees.iter().map(|bin| bin.2).max()?.max(1) as f64;
    let mut drawing = Drawing::new(ink, 520.0, 280.0);
    let bins = graph.degrees.len();
    let axes = Axes::new(&drawing, (0.0, bins as f64), (0.0, most * 1.05));
    axes.draw_y(&mut drawing, |v| count(v as usize));
    let shown = bins.div_ceil(8).max(1);
    let middles: Vec<f64> = (0..bins).step_by(shown).map(|at| at as f64 + 0.5).collect();
    axes.draw_x(&mut drawing, &middles, |at| count(graph.degrees[at as usize].0), "neighbours of a node");
    for (at, &(from, to, nodes)) in graph.degrees.iter().enumerate() {
        let (left, top) = (axes.x(at as f64) + 1.0, axes.y(nodes as f64));
        let range = if from == to { count(from) } else { format!("{} to {}", count(from), count(to)) };
        let width = axes.x(1.0) - axes.x(0.0) - 2.0;
        let tip = format!("{} nodes with {range} neighbours", count(nodes));
        drawing.bar(left, top, width, axes.y(0.0) - top, ink.accent, &tip);
    }
    drawing.key(LEFT, 18.0, &[("nodes of the graph".into(), ink.accent.into())]);
    let caption = format!(
        "Half of the nodes have {} neighbours or fewer, the most joined one has {}. A long tail means hubs: items near everything.",
        count(graph.median_degree),
        count(graph.largest_degree)
    );
    Some(figure("degrees", "Neighbours", caption, drawing))
}

fn pow_by_round(run: &Run, ink: &Ink) -> Option<Figure> {
    let rounds = &run.record.evaluation.as_ref()?.rounds;
    // Not known where rounds were scored after the run.
    if rounds.iter().any(|round| !round.pow.is_finite()) {
        return None;
    }
    let points = rounds.iter().map(|r| (r.round as f64, r.pow)).collect();
    let line = [Line { name: "PoW".into(), points }];
    Some(Figure {
        name: "pow",
        title: "Weight where it should be",
        caption: "PoW: share of the graph's weight between labelled and unlabelled nodes of the same class. \
                  Anchors raise it when the domains differ."
            .into(),
        svg: lines(ink, &line, "round", Some(0.0), percent),
    })
}

fn affinity(run: &Run, ink: &Ink) -> Option<Figure> {
    let pictures = &run.trace.as_ref()?.affinity;
    let last = pictures.last()?;
    let mut drawing = Drawing::new(ink, 520.0, 310.0);
    let width = 236.0;
    for (at, picture) in pictures.iter().enumerate() {
        let left = 20.0 + 254.0 * at as f64;
        drawing.text(left, 18.0, Anchor::Start, ink.text, &format!("round {}", picture.round));
        let rows = (picture.source_height + picture.anchor_height).max(1) as f64;
        let height = 250.0 * rows / 160f64.max(rows);
        drawing.raw(&format!(
            r#"<image x="{left}" y="28" width="{width}" height="{height:.1}" preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,{}"/>"#,
            heat_png(picture)
        ));
        if picture.anchor_height > 0 {
            let y = 28.0 + height * picture.source_height as f64 / rows;
            drawing.line((left, y), (left + width, y), ink.second, false);
            drawing.text(left + width, y - 4.0, Anchor::End, ink.second, "anchors below");
        }
    }
    drawing.text(
        20.0,
        300.0,
        Anchor::Start,
        ink.muted,
        "rows: labelled nodes by class · columns: target items by class",
    );
    let order = if last.by_truth { "true" } else { "predicted" };
    let caption = format!(
        "Weight of the edges between labelled and target nodes, target items ordered by {order} class; anchors have a scale \
         of their own. Dark blocks on the diagonal are edges within a class."
    );
    Some(figure("affinity", "Edges between groups of nodes", caption, drawing))
}

/// White to dark blue.
fn heat_png(picture: &AffinityPicture) -> String {
    let (width, height) = (picture.width.max(1), (picture.source_height + picture.anchor_height).max(1));
    let mut pixels: Vec<u8> = picture
        .pixels
        .iter()
        .flat_map(|&value| {
            let t = f32::from(value) / 255.0;
            let mix = |light: f32, dark: f32| (light + (dark - light) * t).round() as u8;
            [mix(250.0, 8.0), mix(251.0, 48.0), mix(253.0, 107.0)]
        })
        .collect();
    // A trace that was tampered with gets a picture, not a panic.
    pixels.resize(width * height * 3, 0);
    base64::engine::general_purpose::STANDARD.encode(png_bytes(width, height, png::ColorType::Rgb, &pixels))
}

pub(crate) fn png_bytes(width: usize, height: usize, colour: png::ColorType, pixels: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(colour);
    encoder.set_depth(png::BitDepth::Eight);
    // Writing to memory fails only for a wrong size, which the callers rule out.
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(pixels));
    debug_assert!(written.is_ok());
    bytes
}

/// The map as a still picture: after the last round, coloured by class.
pub(crate) fn map(run: &Run, ink: &Ink) -> Option<Figure> {
    let trace = run.trace.as_ref()?;
    let map = &trace.map;
    let frame = map.frames.last()?;
    let side = 520.0;
    let shown = trace.source_counts.len().min(24);
    let mut drawing = Drawing::new(ink, side + 190.0, side + 16.0);
    let place = |x: f64, y: f64| {
        (12.0 + (side - 24.0) * x / 65535.0, 8.0 + (side - 24.0) * (1.0 - y / 65535.0) + 12.0)
    };
    let colour = |class: u16| match class {
        NO_CLASS => ink.muted.to_string(),
        class => class_colour(usize::from(class)),
    };
    for at in 0..map.x.len() {
        let (x, y) = place(f64::from(map.x[at]), f64::from(map.y[at]));
        match at.checked_sub(map.source_points) {
            None => drawing.raw(&format!(
                r#"<rect x="{:.1}" y="{:.1}" width="3" height="3" fill="none" stroke-width="0.8" style="stroke:{}" stroke-opacity="0.55"/>"#,
                x - 1.5,
                y - 1.5,
                colour(map.source_labels[at])
            )),
            Some(item) => drawing.raw(&format!(
                r#"<circle cx="{x:.1}" cy="{y:.1}" r="2" style="fill:{}" fill-opacity="0.75"/>"#,
                colour(frame.labels[item])
            )),
        }
    }
    let latest = map.anchors.iter().map(|anchor| anchor.round).max();
    for anchor in map.anchors.iter().filter(|anchor| Some(anchor.round) == latest) {
        let (x, y) = place(f64::from(anchor.x), f64::from(anchor.y));
        let d = 6.0;
        drawing.raw(&format!(
            r#"<path d="M{x:.1} {:.1}L{:.1} {y:.1}L{x:.1} {:.1}L{:.1} {y:.1}Z" stroke-width="1.5" style="fill:{};stroke:{}"/>"#,
            y - d,
            x + d,
            y + d,
            x - d,
            colour(anchor.class),
            ink.text
        ));
    }
    for class in 0..shown {
        let y = 30.0 + 17.0 * class as f64;
        drawing.bar(side + 12.0, y - 9.0, 10.0, 10.0, &class_colour(class), &trace.classes[class]);
        drawing.text(side + 28.0, y, Anchor::Start, ink.text, &shorten(&trace.classes[class], 22));
    }
    let below = 30.0 + 17.0 * shown as f64;
    if trace.source_counts.len() > shown {
        let more = trace.source_counts.len() - shown;
        drawing.text(side + 28.0, below, Anchor::Start, ink.muted, &format!("and {more} more"));
    }
    let marks = [
        ("source", "M0 0h7v7h-7z"),
        ("target", "M3.5 0a3.5 3.5 0 1 0 .01 0z"),
        ("newest anchors", "M3.5 -1l4.5 4.5l-4.5 4.5l-4.5 -4.5z"),
    ];
    for (line, (name, path)) in marks.iter().enumerate() {
        let y = below + 24.0 + 17.0 * line as f64;
        let fill = if line == 0 { "none" } else { ink.muted };
        drawing.raw(&format!(
            r#"<path transform="translate({:.1} {:.1})" d="{path}" style="fill:{fill};stroke:{}"/>"#,
            side + 13.5,
            y - 7.5,
            ink.muted
        ));
        drawing.text(side + 28.0, y, Anchor::Start, ink.muted, name);
    }
    Some(figure("map", "The items in two dimensions", map_caption(map), drawing))
}

/// Caption of the map: how it was made, and what it omits.
pub(crate) fn map_caption(map: &Map) -> String {
    let mut caption = match (map.kind, map.explained) {
        (MapKind::Pca, Some([x, y])) => format!(
            "Principal components: the two directions along which the items differ most, {} of all variance. What \
             overlaps here may be apart in the other dimensions.",
            percent(x + y)
        ),
        (MapKind::Pca, None) => "Principal components.".into(),
        (MapKind::Tsne, _) => {
            "t-SNE by cosine: neighbours stay neighbours; sizes and distances of clusters mean \
                               little. Anchors stand at the mean of their items."
                .into()
        }
    };
    let all = map.source_items + map.target_items;
    if map.x.len() < all {
        caption += &format!(
            " {} of {} items are drawn: a sample with every class in proportion.",
            count(map.x.len()),
            count(all)
        );
    }
    caption
}
