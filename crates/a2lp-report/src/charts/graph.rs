//! Charts of the graph: degrees, the weights between classes, the affinity matrix.

use super::shapes::{Line, lines};
use super::{Figure, figure};
use crate::Run;
use crate::svg::{Anchor, Axes, Drawing, Ink, LEFT, count, percent};
use crate::trace::AffinityPicture;
use base64::Engine;

pub(super) fn degrees(run: &Run, ink: &Ink) -> Option<Figure> {
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

pub(super) fn pow_by_round(run: &Run, ink: &Ink) -> Option<Figure> {
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

pub(super) fn affinity(run: &Run, ink: &Ink) -> Option<Figure> {
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
pub(super) fn heat_png(picture: &AffinityPicture) -> String {
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

fn png_bytes(width: usize, height: usize, colour: png::ColorType, pixels: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(colour);
    encoder.set_depth(png::BitDepth::Eight);
    // Writing to memory fails only for a wrong size, which the callers rule out.
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(pixels));
    debug_assert!(written.is_ok());
    bytes
}
