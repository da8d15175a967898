//! A = L·Lᵀ, for small matrices.

/// L⁻¹ of a symmetric, positive definite n × n matrix A = L·Lᵀ; `None` when it is not positive definite.
pub(crate) fn inverse_cholesky_factor(mut matrix: Vec<f64>, n: usize) -> Option<Vec<f64>> {
    let l = &mut matrix;
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for i in 0..n {
        for j in 0..=i {
            let rest = l[i * n + j] - dot(&l[i * n..i * n + j], &l[j * n..j * n + j]);
            l[i * n + j] = match i == j {
                true if rest > 0.0 && rest.is_finite() => rest.sqrt(),
                true => return None,
                false => rest / l[j * n + j],
            };
        }
    }
    // Row i of L⁻¹ is (eᵢ − Σ_{k<i} l_ik · row k) / l_ii.
    let mut inverse = vec![0f64; n * n];
    for i in 0..n {
        let (above, row) = inverse.split_at_mut(i * n);
        let row = &mut row[..n];
        row[i] = 1.0;
        for (k, other) in above.chunks_exact(n).enumerate() {
            row[..=k].iter_mut().zip(other).for_each(|(value, other)| *value -= l[i * n + k] * other);
        }
        row[..=i].iter_mut().for_each(|value| *value /= l[i * n + i]);
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_factor_turns_the_matrix_into_the_identity() {
        let n = 40;
        let root: Vec<f64> = (0..n * n).map(|at| ((at * 7919 % 101) as f64 - 50.0) / 64.0).collect();
        let product = |a: &dyn Fn(usize, usize) -> f64, b: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            (0..n * n).map(|at| (0..n).map(|k| a(at / n, k) * b(k, at % n)).sum()).collect()
        };
        let mut matrix = product(&|i, k| root[i * n + k], &|k, j| root[j * n + k]);
        (0..n).for_each(|i| matrix[i * n + i] += 1.0);
        let inverse = inverse_cholesky_factor(matrix.clone(), n).unwrap();
        let half = product(&|i, k| inverse[i * n + k], &|k, j| matrix[k * n + j]);
        let identity = product(&|i, k| half[i * n + k], &|k, j| inverse[j * n + k]);
        for (at, value) in identity.into_iter().enumerate() {
            let want = if at / n == at % n { 1.0 } else { 0.0 };
            assert!((value - want).abs() < 1e-9, "{at}: {value}");
        }
        assert_eq!(inverse_cholesky_factor(vec![1.0, 2.0, 2.0, 1.0], 2), None);
    }
}
