//! The closed form: a factorisation of the n × n matrix I − αS in f64. Needed for α > 1, where the matrix
//! is indefinite; for small problems also a check on the other solver. One thread, so that results repeat.

use super::LabelMatrix;
use crate::affinity::Affinity;
use crate::error::Error;
use faer::linalg::solvers::{Llt, PartialPivLu, Solve};
use faer::{Mat, Side};

/// Solves for F; returns a bound on its error.
pub(super) fn solve(
    affinity: &Affinity<'_>,
    labels: &LabelMatrix<'_>,
    alpha: f64,
    f: &mut [f32],
) -> Result<f32, Error> {
    let nodes = affinity.nodes();
    let classes = labels.weights.len();
    let bytes = nodes as u128 * nodes as u128 * 8;
    if bytes > isize::MAX as u128 || Vec::<f64>::new().try_reserve_exact(nodes * nodes).is_err() {
        return Err(Error::Memory { what: "dense solver", bytes, advice: "use --solver cg" });
    }
    faer::set_global_parallelism(faer::Par::Seq);
    let mut matrix = Mat::<f64>::identity(nodes, nodes);
    affinity.for_each_normalised(|i, j, s| matrix[(i, j)] -= alpha * s);
    let mut solution = Mat::<f64>::zeros(nodes, classes);
    for node in 0..nodes {
        if let Some((class, weight)) = labels.entry(node) {
            solution[(node, class)] = f64::from(weight);
        }
    }
    if alpha < 1.0 {
        let factor = Llt::new(matrix.as_ref(), Side::Lower).map_err(|_| Error::Singular(alpha))?;
        factor.solve_in_place(solution.as_mut());
    } else {
        PartialPivLu::new(matrix.as_ref()).solve_in_place(solution.as_mut());
    }
    let mut largest = 0f64;
    for (node, row) in f.chunks_exact_mut(classes.max(1)).enumerate() {
        for (class, value) in row.iter_mut().enumerate() {
            let exact = solution[(node, class)];
            if !exact.is_finite() {
                return Err(Error::Singular(alpha));
            }
            largest = largest.max(exact.abs());
            *value = exact as f32;
        }
    }
    Ok((largest * f64::EPSILON * (nodes as f64).sqrt() / (1.0 - alpha).abs()) as f32)
}
