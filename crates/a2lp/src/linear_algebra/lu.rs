//! P·A = L·U with partial pivoting, block by block, to solve A·X = B.

use crate::kernels::{Loops, vectorised};
use rayon::prelude::*;

/// Columns eliminated together.
const BLOCK: usize = 64;
/// Columns updated together: a block of U this wide stays in the second-level cache.
const TILE: usize = 512;
/// Rows updated by one task.
const ROWS: usize = 32;

/// A factorised n × n matrix.
pub(crate) struct Lu {
    n: usize,
    /// L below the diagonal (its own diagonal is 1), U on and above it.
    values: Vec<f64>,
    /// Row of A that ended up in each row.
    order: Vec<usize>,
}

impl Lu {
    /// Factorises in place; `None` when the matrix is singular.
    pub(crate) fn new(mut values: Vec<f64>, n: usize) -> Option<Self> {
        let mut order: Vec<usize> = (0..n).collect();
        for start in (0..n).step_by(BLOCK) {
            let end = n.min(start + BLOCK);
            eliminate_block(&mut values, n, start..end, &mut order)?;
            let (above, below) = values.split_at_mut(end * n);
            finish_rows(&mut above[start * n..], n, start..end);
            let upper = &above[start * n..];
            below
                .par_chunks_mut(ROWS * n)
                .for_each(|rows| vectorised(Update { rows, upper, n, block: start..end }));
        }
        Some(Lu { n, values, order })
    }

    /// Solves for a right-hand side of `columns` columns, row after row.
    pub(crate) fn solve(&self, right: &[f64], columns: usize) -> Vec<f64> {
        let n = self.n;
        let mut x: Vec<f64> = Vec::with_capacity(right.len());
        for &row in &self.order {
            x.extend_from_slice(&right[row * columns..][..columns]);
        }
        let minus = |row: &mut [f64], factor: f64, other: &[f64]| {
            row.iter_mut().zip(other).for_each(|(value, other)| *value -= factor * other);
        };
        for i in 0..n {
            let (done, rest) = x.split_at_mut(i * columns);
            for (k, other) in done.chunks_exact(columns).enumerate() {
                minus(&mut rest[..columns], self.values[i * n + k], other);
            }
        }
        for i in (0..n).rev() {
            let (rest, done) = x.split_at_mut((i + 1) * columns);
            let row = &mut rest[i * columns..];
            for (k, other) in (i + 1..).zip(done.chunks_exact(columns)) {
                minus(row, self.values[i * n + k], other);
            }
            row.iter_mut().for_each(|value| *value /= self.values[i * n + i]);
        }
        x
    }
}

/// Eliminates the columns of `block` within that block, rows being swapped whole.
fn eliminate_block(
    values: &mut [f64],
    n: usize,
    block: std::ops::Range<usize>,
    order: &mut [usize],
) -> Option<()> {
    let end = block.end;
    for k in block {
        let largest = (k..n).max_by(|&a, &b| values[a * n + k].abs().total_cmp(&values[b * n + k].abs()))?;
        let pivot = values[largest * n + k];
        if pivot == 0.0 || !pivot.is_finite() {
            return None;
        }
        if largest != k {
            order.swap(k, largest);
            let (upper, lower) = values.split_at_mut(largest * n);
            upper[k * n..][..n].swap_with_slice(&mut lower[..n]);
        }
        let (upper, lower) = values.split_at_mut((k + 1) * n);
        let pivot_row = &upper[k * n..][k + 1..end];
        for row in lower.chunks_exact_mut(n) {
            let factor = row[k] / pivot;
            row[k] = factor;
            row[k + 1..end].iter_mut().zip(pivot_row).for_each(|(value, other)| *value -= factor * other);
        }
    }
    Some(())
}

/// What eliminating a block does to the rest of its own rows.
fn finish_rows(rows: &mut [f64], n: usize, block: std::ops::Range<usize>) {
    for i in 1..block.len() {
        let (done, rest) = rows.split_at_mut(i * n);
        let (factors, row) = rest[..n].split_at_mut(block.end);
        for (k, other) in done.chunks_exact(n).enumerate() {
            let factor = factors[block.start + k];
            row.iter_mut().zip(&other[block.end..]).for_each(|(value, other)| *value -= factor * other);
        }
    }
}

/// What eliminating a block does to rows below it.
struct Update<'a> {
    rows: &'a mut [f64],
    /// The rows of the block.
    upper: &'a [f64],
    n: usize,
    block: std::ops::Range<usize>,
}

impl Loops for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (n, end) = (self.n, self.block.end);
        for tile in (end..n).step_by(TILE) {
            let columns = tile..n.min(tile + TILE);
            for row in self.rows.chunks_exact_mut(n) {
                let (factors, rest) = row.split_at_mut(end);
                let factors = &factors[self.block.start..];
                let out = &mut rest[columns.start - end..columns.end - end];
                // Four at a time, so that a value is loaded and stored a quarter as often.
                for (factors, upper) in factors.chunks(4).zip(self.upper.chunks(4 * n)) {
                    let line = |k: usize| &upper[k * n..][columns.clone()];
                    if let &[a, b, c, d] = factors {
                        let lines = line(0).iter().zip(line(1)).zip(line(2).iter().zip(line(3)));
                        for (value, ((p, q), (r, s))) in out.iter_mut().zip(lines) {
                            *value = *value - a * p - b * q - c * r - d * s;
                        }
                        continue;
                    }
                    for (k, factor) in factors.iter().enumerate() {
                        out.iter_mut().zip(line(k)).for_each(|(value, other)| *value -= factor * other);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A·x is the right-hand side again, for sizes on both sides of a block, with a zero on the diagonal.
    #[test]
    fn solutions_fulfil_their_equations() {
        for n in [1, 2, 7, 64, 65, 130, 601] {
            let mut state = 1u64;
            let mut number = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 40) as f64 / (1u64 << 23) as f64 - 1.0
            };
            let mut matrix: Vec<f64> = (0..n * n).map(|_| number()).collect();
            if n > 1 {
                matrix[0] = 0.0;
            }
            let right: Vec<f64> = (0..n * 3).map(|_| number()).collect();
            let x = Lu::new(matrix.clone(), n).unwrap().solve(&right, 3);
            for (at, want) in right.iter().enumerate() {
                let (i, c) = (at / 3, at % 3);
                let have: f64 = (0..n).map(|k| matrix[i * n + k] * x[k * 3 + c]).sum();
                assert!((have - want).abs() < 1e-8, "n {n}: {have} {want}");
            }
        }
    }

    #[test]
    fn singular_matrices_are_refused() {
        assert!(Lu::new(vec![1.0, 2.0, 2.0, 4.0], 2).is_none());
        assert!(Lu::new(vec![0.0; 9], 3).is_none());
        assert!(Lu::new(vec![f64::NAN], 1).is_none());
    }
}
