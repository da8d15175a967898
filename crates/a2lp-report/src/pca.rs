//! The two directions along which the items differ most.

use a2lp::FeatureMatrix;
use rayon::prelude::*;

/// Rows the directions are found on, evenly spaced.
const SAMPLE: usize = 2000;
/// Directions iterated on; the two wanted converge the faster for the others.
const BLOCK: usize = 8;
const ITERATIONS: usize = 30;

/// A plane in feature space.
pub(crate) struct Plane {
    /// Rows are scaled to unit length first, as the graph sees them under the cosine.
    unit: bool,
    mean: Vec<f32>,
    /// The two directions, interleaved.
    directions: Vec<[f32; 2]>,
    /// Share of the sample's variance along each.
    pub(crate) explained: [f64; 2],
}

impl Plane {
    /// The plane of the first two principal components.
    pub(crate) fn of(features: &FeatureMatrix, unit: bool) -> Self {
        let columns = features.columns();
        let count = features.rows().min(SAMPLE);
        let mut rows: Vec<Vec<f32>> =
            (0..count).map(|at| scaled(features.row(at * features.rows() / count), unit).collect()).collect();
        let mut mean = vec![0f32; columns];
        for (column, mean) in mean.iter_mut().enumerate() {
            let sum: f64 = rows.iter().map(|row| f64::from(row[column])).sum();
            *mean = (sum / count as f64) as f32;
        }
        rows.iter_mut().for_each(|row| row.iter_mut().zip(&mean).for_each(|(value, mean)| *value -= mean));
        let variance: f64 = rows.iter().flatten().map(|&v| f64::from(v).powi(2)).sum();

        // Subspace iteration: V ← orthonormal basis of Xᵀ(X·V).
        let mut basis: Vec<[f32; BLOCK]> = (0..columns).map(start).collect();
        let mut lengths = [0f64; BLOCK];
        orthonormalise(&mut basis);
        for _ in 0..ITERATIONS {
            let tasks: Vec<Vec<[f32; BLOCK]>> = rows
                .par_chunks(256)
                .map(|rows| {
                    let mut sum = vec![[0f32; BLOCK]; columns];
                    for row in rows {
                        let mut along = [0f32; BLOCK];
                        for (&value, basis) in row.iter().zip(&basis) {
                            (0..BLOCK).for_each(|b| along[b] += value * basis[b]);
                        }
                        for (&value, sum) in row.iter().zip(&mut sum) {
                            (0..BLOCK).for_each(|b| sum[b] += value * along[b]);
                        }
                    }
                    sum
                })
                .collect();
            basis.fill([0.0; BLOCK]);
            for task in tasks {
                for (sum, part) in basis.iter_mut().zip(task) {
                    (0..BLOCK).for_each(|b| sum[b] += part[b]);
                }
            }
            lengths = orthonormalise(&mut basis);
        }
        // At convergence |XᵀXv| = λ, and Σλ is the variance.
        let share = |b: usize| if variance > 0.0 { (lengths[b] / variance).clamp(0.0, 1.0) } else { 0.0 };
        Plane {
            unit,
            mean,
            directions: basis.iter().map(|row| [row[0], row[1]]).collect(),
            explained: [share(0), share(1)],
        }
    }

    /// Where a row lies.
    pub(crate) fn place(&self, row: &[f32]) -> [f32; 2] {
        let mut place = [0f64; 2];
        for ((value, mean), direction) in scaled(row, self.unit).zip(&self.mean).zip(&self.directions) {
            place[0] += f64::from((value - mean) * direction[0]);
            place[1] += f64::from((value - mean) * direction[1]);
        }
        place.map(|p| p as f32)
    }

    /// Where every row lies.
    pub(crate) fn place_all(&self, features: &FeatureMatrix) -> Vec<[f32; 2]> {
        (0..features.rows())
            .into_par_iter()
            .with_min_len(1024)
            .map(|row| self.place(features.row(row)))
            .collect()
    }
}

/// The row, at unit length if asked for.
fn scaled(row: &[f32], unit: bool) -> impl Iterator<Item = f32> + '_ {
    let length = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
    let scale = if unit && length > 0.0 { length.recip() } else { 1.0 };
    row.iter().map(move |&value| (f64::from(value) * scale) as f32)
}

/// Numbers between -1 and 1 that look random and are the same everywhere.
fn start(column: usize) -> [f32; BLOCK] {
    std::array::from_fn(|b| {
        let mut z = ((column * BLOCK + b) as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    })
}

/// Gram and Schmidt, column by column; tells how long each was after the earlier ones were taken out.
fn orthonormalise(basis: &mut [[f32; BLOCK]]) -> [f64; BLOCK] {
    let mut lengths = [0f64; BLOCK];
    for b in 0..BLOCK {
        for earlier in 0..b {
            let dot: f64 = basis.iter().map(|row| f64::from(row[b]) * f64::from(row[earlier])).sum();
            basis.iter_mut().for_each(|row| row[b] -= dot as f32 * row[earlier]);
        }
        let length = basis.iter().map(|row| f64::from(row[b]).powi(2)).sum::<f64>().sqrt();
        lengths[b] = length;
        let scale = if length > 1e-30 { length.recip() as f32 } else { 0.0 };
        basis.iter_mut().for_each(|row| row[b] *= scale);
        // The sign is free; the largest entry is made positive.
        let largest = basis.iter().map(|row| row[b]).fold(0f32, |a, v| if v.abs() > a.abs() { v } else { a });
        if largest < 0.0 {
            basis.iter_mut().for_each(|row| row[b] = -row[b]);
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plane_of_a_flat_cloud_is_found() {
        // Variance 9 along (1,1,0)/√2, 4 along (0,0,1), 0.01 along (1,-1,0)/√2.
        let rows: Vec<[f32; 3]> = (0..400)
            .map(|at| {
                let [a, b, c, ..] = start(at);
                let (a, b, c) = (3.0 * a, 2.0 * b, 0.1 * c);
                [(a + c) / 2f32.sqrt() + 5.0, (a - c) / 2f32.sqrt() - 2.0, b]
            })
            .collect();
        let plane = Plane::of(&FeatureMatrix::from_rows(&rows).unwrap(), false);
        let at = |row: [f32; 3]| plane.place(&row);
        let origin = at([0.0; 3]);
        let along = |row: [f32; 3]| [at(row)[0] - origin[0], at(row)[1] - origin[1]];
        let h = 0.5f32.sqrt();
        assert!((along([h, h, 0.0])[0].abs() - 1.0).abs() < 0.02, "{:?}", along([h, h, 0.0]));
        assert!((along([0.0, 0.0, 1.0])[1].abs() - 1.0).abs() < 0.02);
        assert!(along([h, -h, 0.0]).iter().all(|v| v.abs() < 0.1));
        let [first, second] = plane.explained;
        assert!(
            (first - 9.0 / 13.01).abs() < 0.05 && (second - 4.0 / 13.01).abs() < 0.05,
            "{first} {second}"
        );
    }

    #[test]
    fn rows_that_do_not_differ_lie_in_one_place() {
        let plane = Plane::of(&FeatureMatrix::from_rows(&[[1.0, 2.0]; 5]).unwrap(), true);
        assert_eq!(plane.explained, [0.0, 0.0]);
        assert!(plane.place(&[1.0, 2.0]).iter().all(|v| v.abs() < 1e-6));
    }
}
