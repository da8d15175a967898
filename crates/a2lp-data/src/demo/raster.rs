//! From lines to grey values.

use super::SIDE;

/// How much ink covers each pixel, from 0 to 1: strokes of this thickness with soft edges.
pub(super) fn render(strokes: &[Vec<[f32; 2]>], thickness: f32) -> Vec<f32> {
    let mut ink = Vec::with_capacity(SIDE * SIDE);
    for y in 0..SIDE {
        for x in 0..SIDE {
            let point = [x as f32 + 0.5, y as f32 + 0.5];
            let distance = strokes
                .iter()
                .flat_map(|line| line.windows(2))
                .map(|ends| distance_to_segment(point, ends[0], ends[1]))
                .fold(f32::INFINITY, f32::min);
            ink.push((thickness / 2.0 - distance + 0.5).clamp(0.0, 1.0));
        }
    }
    ink
}

fn distance_to_segment(p: [f32; 2], a: [f32; 2], b: [f32; 2]) -> f32 {
    let (ab, ap) = ([b[0] - a[0], b[1] - a[1]], [p[0] - a[0], p[1] - a[1]]);
    let length = ab[0] * ab[0] + ab[1] * ab[1];
    let along = if length > 0.0 { ((ap[0] * ab[0] + ap[1] * ab[1]) / length).clamp(0.0, 1.0) } else { 0.0 };
    let off = [ap[0] - along * ab[0], ap[1] - along * ab[1]];
    (off[0] * off[0] + off[1] * off[1]).sqrt()
}
