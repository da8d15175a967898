//! The dense linear algebra the method needs: products, one factorisation to solve with, one to whiten with, and the
//! leading eigenvectors of a symmetric matrix.
//!
//! Matrices are slices, row after row. Every sum runs in an order that depends on the shape alone, so that threads and
//! instruction sets do not show in the bits. A general library took longer to compile than the rest of the method.

mod cholesky;
mod eigenvectors;
mod lu;

pub(crate) use cholesky::inverse_cholesky_factor;
pub(crate) use eigenvectors::leading_eigenvectors;
pub(crate) use lu::Lu;

use crate::kernels::{Chain, PackedRows, ScoreTile};

/// The right-hand side of products A·B, laid out for the kernels.
pub struct Factor(PackedRows);

impl Factor {
    /// B itself: `values` are its rows, `columns` numbers each.
    pub fn new(values: &[f32], columns: usize) -> Self {
        let mut packed = PackedRows::new();
        packed.pack_columns(values, columns);
        Factor(packed)
    }

    /// B = Cᵀ: `values` are the rows of C, `columns` numbers each.
    pub fn transposed(values: &[f32], columns: usize) -> Self {
        let mut packed = PackedRows::new();
        packed.pack(values, columns);
        Factor(packed)
    }

    /// A·B into `out`, where `a` holds the rows of A. One thread; every entry is one chain of fused multiply-adds.
    pub fn multiply(&self, a: &[f32], out: &mut [f32]) {
        let columns = self.0.rows();
        let mut tile = ScoreTile::new();
        tile.score(Chain::Product, a, &self.0);
        for (row, first, products) in tile.segments() {
            out[row * columns + first..][..products.len()].copy_from_slice(products);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_equal_those_of_the_definition() {
        for (rows, inner, columns) in [(1, 1, 1), (3, 5, 7), (40, 130, 33), (13, 300, 65)] {
            let value = |at: usize| ((at * 7919 % 101) as f32 - 50.0) / 64.0;
            let a: Vec<f32> = (0..rows * inner).map(value).collect();
            let b: Vec<f32> = (0..inner * columns).map(|at| value(at + 3)).collect();
            let turned: Vec<f32> =
                (0..columns * inner).map(|at| b[at % inner * columns + at / inner]).collect();
            let want = |i: usize, j: usize| {
                (0..inner).map(|p| f64::from(a[i * inner + p]) * f64::from(b[p * columns + j])).sum::<f64>()
            };
            for factor in [Factor::new(&b, columns), Factor::transposed(&turned, inner)] {
                let mut out = vec![f32::NAN; rows * columns];
                factor.multiply(&a, &mut out);
                for (at, &have) in out.iter().enumerate() {
                    assert!((f64::from(have) - want(at / columns, at % columns)).abs() < 1e-4);
                }
            }
        }
    }
}
