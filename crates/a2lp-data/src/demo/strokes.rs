//! The digits as lines in the unit square, x to the right, y down.

type Line = Vec<[f32; 2]>;

/// A stretch of an ellipse; degrees run clockwise from the right.
fn arc(centre: [f32; 2], radius: [f32; 2], from: f32, to: f32) -> Line {
    let steps = 16;
    (0..=steps)
        .map(|step| {
            let angle = (from + (to - from) * step as f32 / steps as f32).to_radians();
            [centre[0] + radius[0] * angle.cos(), centre[1] + radius[1] * angle.sin()]
        })
        .collect()
}

/// The strokes of a digit.
pub(super) fn glyph(digit: usize) -> Vec<Line> {
    match digit {
        0 => vec![arc([0.5, 0.5], [0.28, 0.4], 0.0, 360.0)],
        1 => vec![vec![[0.34, 0.28], [0.54, 0.1], [0.54, 0.9]]],
        2 => {
            let mut line = arc([0.5, 0.34], [0.26, 0.24], 190.0, 390.0);
            line.extend([[0.24, 0.9], [0.78, 0.9]]);
            vec![line]
        }
        3 => {
            let mut line = arc([0.47, 0.3], [0.25, 0.2], 215.0, 450.0);
            line.extend(arc([0.47, 0.7], [0.28, 0.2], 270.0, 505.0));
            vec![line]
        }
        4 => vec![vec![[0.64, 0.9], [0.64, 0.1], [0.2, 0.66], [0.84, 0.66]]],
        5 => {
            let mut line = vec![[0.74, 0.1], [0.32, 0.1], [0.28, 0.46]];
            line.extend(arc([0.48, 0.65], [0.28, 0.25], 235.0, 500.0));
            vec![line]
        }
        6 => {
            let mut line = vec![[0.66, 0.1], [0.42, 0.32], [0.27, 0.6]];
            line.extend(arc([0.51, 0.68], [0.25, 0.22], 180.0, 540.0));
            vec![line]
        }
        7 => vec![vec![[0.22, 0.1], [0.78, 0.1], [0.42, 0.9]]],
        8 => vec![arc([0.5, 0.3], [0.22, 0.2], 0.0, 360.0), arc([0.5, 0.7], [0.27, 0.2], 0.0, 360.0)],
        _ => {
            let mut line = arc([0.49, 0.32], [0.25, 0.22], 0.0, 360.0);
            line.extend([[0.72, 0.5], [0.56, 0.9]]);
            vec![line]
        }
    }
}
