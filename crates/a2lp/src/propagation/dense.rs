//! The closed form: a factorisation of the n × n matrix I − αS in f64. Needed for α > 1, where the matrix
//! is indefinite; for small problems also a check on the other solver.

use super::LabelMatrix;
use crate::affinity::Affinity;
use crate::error::Error;
use crate::linear_algebra::Lu;

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
        return Err(Error::Memory { what: "dense solver", bytes, advice: "choose the solver cg" });
    }
    let mut matrix = vec![0f64; nodes * nodes];
    (0..nodes).for_each(|node| matrix[node * nodes + node] = 1.0);
    affinity.for_each_normalised(|i, j, s| matrix[i * nodes + j] -= alpha * s);
    let mut right = vec![0f64; nodes * classes];
    for node in 0..nodes {
        if let Some((class, weight)) = labels.entry(node) {
            right[node * classes + class] = f64::from(weight);
        }
    }
    let solution = Lu::new(matrix, nodes).ok_or(Error::Singular(alpha))?.solve(&right, classes);
    let mut largest = 0f64;
    for (value, exact) in f.iter_mut().zip(solution) {
        if !exact.is_finite() {
            return Err(Error::Singular(alpha));
        }
        largest = largest.max(exact.abs());
        *value = exact as f32;
    }
    Ok((largest * f64::EPSILON * (nodes as f64).sqrt() / (1.0 - alpha).abs()) as f32)
}
