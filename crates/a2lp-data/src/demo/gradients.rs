//! A plain descriptor of an image: how much edge there is in each direction, in each part. Edges have no sign,
//! so light on dark and dark on light look alike.

use super::SIDE;

/// Parts of the image in each direction.
const CELLS: usize = 4;
/// Bins of gradient direction, over half a turn.
const DIRECTIONS: usize = 8;

/// Numbers per image.
pub(super) const LENGTH: usize = CELLS * CELLS * DIRECTIONS;

/// Histograms of gradient directions, each pixel shared between the nearest cells and directions, then square
/// roots, so that a few strong edges do not drown the rest.
pub(super) fn describe(image: &[u8]) -> [f32; LENGTH] {
    let smooth = blur(image);
    let pixel = |x: usize, y: usize| smooth[y * SIDE + x];
    let mut sums = [0f32; LENGTH];
    for y in 1..SIDE - 1 {
        for x in 1..SIDE - 1 {
            let dx = pixel(x + 1, y) - pixel(x - 1, y);
            let dy = pixel(x, y + 1) - pixel(x, y - 1);
            let strength = (dx * dx + dy * dy).sqrt();
            if strength == 0.0 {
                continue;
            }
            let direction = dy.atan2(dx).rem_euclid(std::f32::consts::PI) / std::f32::consts::PI;
            let cell = |at: usize| (at as f32 + 0.5) / SIDE as f32 * CELLS as f32 - 0.5;
            for (cy, wy) in neighbours(cell(y)) {
                for (cx, wx) in neighbours(cell(x)) {
                    for (bin, wb) in neighbours(direction * DIRECTIONS as f32) {
                        let inside = (0..CELLS as i32).contains(&cx) && (0..CELLS as i32).contains(&cy);
                        if inside {
                            let bin = bin.rem_euclid(DIRECTIONS as i32) as usize;
                            let at = (cy as usize * CELLS + cx as usize) * DIRECTIONS + bin;
                            sums[at] += strength * wy * wx * wb;
                        }
                    }
                }
            }
        }
    }
    sums.map(f32::sqrt)
}

/// The two whole numbers round `at` and their shares.
fn neighbours(at: f32) -> [(i32, f32); 2] {
    let low = at.floor();
    [(low as i32, 1.0 - (at - low)), (low as i32 + 1, at - low)]
}

/// A 3 × 3 mean with weights 1-2-1; the border repeats.
fn blur(image: &[u8]) -> Vec<f32> {
    let pass = |values: &[f32], step: usize, along: &dyn Fn(usize) -> usize| -> Vec<f32> {
        (0..SIDE * SIDE)
            .map(|at| {
                let position = along(at);
                let before = if position > 0 { values[at - step] } else { values[at] };
                let after = if position + 1 < SIDE { values[at + step] } else { values[at] };
                (before + 2.0 * values[at] + after) / 4.0
            })
            .collect()
    };
    let grey: Vec<f32> = image.iter().map(|&v| f32::from(v)).collect();
    let rows = pass(&grey, 1, &|at| at % SIDE);
    pass(&rows, SIDE, &|at| at / SIDE)
}
