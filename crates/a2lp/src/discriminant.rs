//! A projection in which the classes known so far are tight: the space is cut down to its principal directions once, and
//! in every round whitened by the scatter within the classes.
//!
//! Products are made block by block on one thread each, and blocks joined in order: the same for any number of threads.

use crate::features::{FeatureMatrix, ROWS_PER_TASK};
use crate::labels::ClassId;
use faer::linalg::matmul::matmul;
use faer::linalg::solvers::Llt;
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};
use rayon::prelude::*;

/// Principal directions that are kept.
const DIRECTIONS: usize = 128;

/// Columns of a tile of the covariance matrix.
const TILE: usize = 256;

/// Rows along their principal directions, of unit length.
pub(crate) struct Discriminant {
    principal: FeatureMatrix,
}

impl Discriminant {
    /// Of centred rows of unit length.
    pub(crate) fn new(centred: &FeatureMatrix) -> Self {
        let kept = DIRECTIONS.min(centred.columns()).min(centred.rows() - 1);
        // All directions are only a rotation, which nothing here can tell from none.
        let mut principal = if kept < centred.columns() {
            let directions = principal_directions(centred, kept);
            multiply(centred, directions.as_ref())
        } else {
            centred.clone()
        };
        principal.normalise_rows();
        Discriminant { principal }
    }

    /// U = Z·L⁻ᵀ with LLᵀ = I + Σ_c n_c·S_c, the scatter of the rows whose class is known; mean removed, unit rows.
    pub(crate) fn project(&self, known: &[Option<ClassId>], classes: usize) -> FeatureMatrix {
        let scatter = self.within_classes(known, classes);
        let whitened = match Llt::new(scatter.as_ref(), Side::Lower) {
            Ok(factor) => {
                let columns = self.principal.columns();
                let mut inverse = Mat::<f64>::identity(columns, columns);
                faer::linalg::triangular_solve::solve_lower_triangular_in_place(
                    factor.L(),
                    inverse.as_mut(),
                    Par::Seq,
                );
                let transposed = Mat::<f32>::from_fn(columns, columns, |i, j| inverse[(j, i)] as f32);
                Some(multiply(&self.principal, transposed.as_ref()))
            }
            // I + a sum of squares has a factor unless something overflowed.
            Err(_) => None,
        };
        let mut whitened = whitened.unwrap_or_else(|| self.principal.clone());
        whitened.subtract_mean(0..whitened.rows());
        whitened.normalise_rows();
        whitened
    }

    /// I + Σ_c n_c Σ (x − mean_c)(x − mean_c)ᵀ
    fn within_classes(&self, known: &[Option<ClassId>], classes: usize) -> Mat<f64> {
        let columns = self.principal.columns();
        let mut counts = vec![0f64; classes];
        let mut means = vec![vec![0f64; columns]; classes];
        for (row, class) in known.iter().enumerate() {
            if let Some(class) = class {
                counts[*class as usize] += 1.0;
                let mean = &mut means[*class as usize];
                mean.iter_mut().zip(self.principal.row(row)).for_each(|(mean, &v)| *mean += f64::from(v));
            }
        }
        for (mean, &count) in means.iter_mut().zip(&counts) {
            mean.iter_mut().for_each(|mean| *mean /= f64::max(count, 1.0));
        }
        let parts: Vec<Mat<f64>> = known
            .par_chunks(ROWS_PER_TASK)
            .enumerate()
            .map(|(task, known)| {
                let labelled: Vec<(usize, usize)> = (task * ROWS_PER_TASK..)
                    .zip(known)
                    .filter_map(|(row, class)| class.map(|class| (row, class as usize)))
                    .collect();
                let deviations = Mat::<f64>::from_fn(columns, labelled.len(), |column, at| {
                    let (row, class) = labelled[at];
                    counts[class].sqrt() * (f64::from(self.principal.row(row)[column]) - means[class][column])
                });
                let mut part = Mat::<f64>::zeros(columns, columns);
                matmul(
                    part.as_mut(),
                    Accum::Replace,
                    deviations.as_ref(),
                    deviations.transpose(),
                    1.0,
                    Par::Seq,
                );
                part
            })
            .collect();
        parts.into_iter().fold(Mat::identity(columns, columns), |sum, part| sum + part)
    }
}

/// The eigenvectors of XᵀX/n with the largest eigenvalues, as columns.
fn principal_directions(features: &FeatureMatrix, kept: usize) -> Mat<f32> {
    let columns = features.columns();
    let tiles: Vec<usize> = (0..columns).step_by(TILE).collect();
    let pairs: Vec<(usize, usize)> =
        tiles.iter().flat_map(|&a| tiles.iter().filter(move |&&b| b <= a).map(move |&b| (a, b))).collect();
    let products: Vec<Mat<f64>> = pairs
        .par_iter()
        .map(|&(a, b)| {
            let (a, b) = (a..columns.min(a + TILE), b..columns.min(b + TILE));
            let mut sum = Mat::<f64>::zeros(a.len(), b.len());
            let mut part = Mat::<f32>::zeros(a.len(), b.len());
            for start in (0..features.rows()).step_by(ROWS_PER_TASK) {
                let rows = start..features.rows().min(start + ROWS_PER_TASK);
                let block = MatRef::from_row_major_slice(features.block(rows.clone()), rows.len(), columns);
                let (left, right) =
                    (block.subcols(a.start, a.len()).transpose(), block.subcols(b.start, b.len()));
                matmul(part.as_mut(), Accum::Replace, left, right, 1.0, Par::Seq);
                faer::zip!(&mut sum, &part).for_each(|faer::unzip!(sum, part)| *sum += f64::from(*part));
            }
            sum
        })
        .collect();
    let mut covariance = Mat::<f32>::zeros(columns, columns);
    for (&(a, b), product) in pairs.iter().zip(products) {
        let mut tile = covariance.as_mut().submatrix_mut(a, b, product.nrows(), product.ncols());
        faer::zip!(&mut tile, &product).for_each(|faer::unzip!(tile, sum)| *tile = *sum as f32);
    }
    faer::set_global_parallelism(Par::Seq);
    match covariance.self_adjoint_eigen(Side::Lower) {
        // Eigenvalues ascend.
        Ok(found) => Mat::from_fn(columns, kept, |row, at| found.U()[(row, columns - 1 - at)]),
        // Finite symmetric matrices have eigenvectors; the first columns are a projection as good as any.
        Err(_) => Mat::identity(columns, kept),
    }
}

/// X·M, block by block.
fn multiply(features: &FeatureMatrix, by: MatRef<'_, f32>) -> FeatureMatrix {
    let mut values = vec![0f32; features.rows() * by.ncols()];
    values.par_chunks_mut(ROWS_PER_TASK * by.ncols()).enumerate().for_each(|(task, out)| {
        let start = task * ROWS_PER_TASK;
        let rows = out.len() / by.ncols();
        let block =
            MatRef::from_row_major_slice(features.block(start..start + rows), rows, features.columns());
        let out = MatMut::from_row_major_slice_mut(out, rows, by.ncols());
        matmul(out, Accum::Replace, block, by, 1.0, Par::Seq);
    });
    FeatureMatrix::from_parts(features.rows(), by.ncols(), values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    fn random(rows: usize, columns: usize) -> FeatureMatrix {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        let values = (0..rows * columns).map(|at| {
            let along = 1.0 / (1 + at % columns) as f32;
            along * rng.random_range(-1.0f32..1.0)
        });
        FeatureMatrix::new(rows, columns, values.collect()).unwrap()
    }

    /// Rows of a projection are alike as much as the definition says: uᵢ·uⱼ from zᵢᵀB⁻¹zⱼ.
    #[test]
    fn products_are_those_of_the_inverse_scatter() {
        let mut rows = random(60, 5);
        rows.normalise_rows();
        let known: Vec<Option<ClassId>> = (0..60).map(|at| [Some(0), Some(1), None][at % 3]).collect();
        let discriminant = Discriminant { principal: rows.clone() };
        let projected = discriminant.project(&known, 2);

        let x = |row: usize, column: usize| f64::from(rows.row(row)[column]);
        let mut scatter = Mat::<f64>::identity(5, 5);
        for class in 0..2 {
            let members: Vec<usize> = (0..60).filter(|&at| known[at] == Some(class)).collect();
            let n = members.len() as f64;
            let mean = |c: usize| members.iter().map(|&m| x(m, c)).sum::<f64>() / n;
            for (i, j) in (0..25).map(|at| (at / 5, at % 5)) {
                let sum: f64 = members.iter().map(|&m| (x(m, i) - mean(i)) * (x(m, j) - mean(j))).sum();
                scatter[(i, j)] += n * sum;
            }
        }
        use faer::linalg::solvers::DenseSolveCore;
        let inverse = scatter.partial_piv_lu().inverse();
        let centred =
            Mat::<f64>::from_fn(60, 5, |i, j| x(i, j) - (0..60).map(|r| x(r, j)).sum::<f64>() / 60.0);
        let products = &centred * &inverse * centred.transpose();
        for (i, j) in [(0, 1), (0, 3), (7, 41), (58, 59)] {
            let want = products[(i, j)] / (products[(i, i)] * products[(j, j)]).sqrt();
            let have: f32 = projected.row(i).iter().zip(projected.row(j)).map(|(a, b)| a * b).sum();
            assert!((f64::from(have) - want).abs() < 1e-5, "{i} {j}: {have} {want}");
        }
    }

    /// With one column too many, the direction that is dropped is the one of least variance.
    #[test]
    fn the_direction_of_least_variance_is_dropped() {
        let rows = random(300, 300);
        let directions = principal_directions(&rows, 299);
        let gram = directions.transpose() * &directions;
        for (i, j) in (0..299).flat_map(|i| [(i, i), (i, (i + 1) % 299)]) {
            let want = if i == j { 1.0 } else { 0.0 };
            assert!((gram[(i, j)] - want).abs() < 1e-4);
        }
        let x = Mat::<f32>::from_fn(300, 300, |i, j| rows.row(i)[j]);
        let along = &x * &directions;
        let total: f32 = rows.values().iter().map(|v| v * v).sum();
        let kept: f32 = (0..299).map(|j| along.col(j).squared_norm_l2()).sum();
        // No direction has less than the one of least variance, so no column has.
        let least = (0..300).map(|j| x.col(j).squared_norm_l2()).fold(f32::INFINITY, f32::min);
        assert!(total - kept <= least + 1e-4 * total, "{total} {kept} {least}");
    }
}
