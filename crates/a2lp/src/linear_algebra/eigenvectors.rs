//! Leading eigenvectors of a symmetric matrix: Householder's reflections make it tridiagonal, bisection finds the
//! eigenvalues wanted, inverse iteration their vectors, and the reflections turn those back.

use crate::error::Error;
use crate::kernels::{Loops, vectorised};
use rayon::prelude::*;

/// Lanes a sum is kept in, whatever the width of the CPU's vectors.
const LANES: usize = 16;
/// Rows of one task.
const ROWS: usize = 64;
/// Rounds of inverse iteration; each multiplies what is not the wanted vector by nearly nothing.
const ITERATIONS: usize = 3;

/// The eigenvectors of the `count` largest eigenvalues of a symmetric n × n matrix, one after the other, largest first.
/// `check` is asked now and then whether to go on.
pub(crate) fn leading_eigenvectors(
    matrix: Vec<f32>,
    n: usize,
    count: usize,
    check: &dyn Fn() -> Result<(), Error>,
) -> Result<Vec<f32>, Error> {
    let reduced = Tridiagonal::reduce(matrix, n, check)?;
    let values: Vec<f64> = (0..count).into_par_iter().map(|rank| reduced.eigenvalue(n - 1 - rank)).collect();
    check()?;
    let vectors = reduced.eigenvectors(&values);
    let turned: Vec<Vec<f32>> = vectors.into_par_iter().map(|vector| reduced.turn_back(vector)).collect();
    Ok(turned.concat())
}

/// Qᵀ·A·Q = T, with T tridiagonal.
struct Tridiagonal {
    n: usize,
    diagonal: Vec<f64>,
    /// Beside the diagonal: entry k joins k and k + 1; the last is 0.
    beside: Vec<f64>,
    /// Reflection k is I − s·v·vᵀ and acts on the coordinates after k. Row k of this matrix holds v, right of the diagonal.
    reflections: Vec<f32>,
    /// s of each reflection.
    scales: Vec<f32>,
    /// The largest absolute row sum of T: no eigenvalue is larger.
    norm: f64,
}

impl Tridiagonal {
    fn reduce(mut a: Vec<f32>, n: usize, check: &dyn Fn() -> Result<(), Error>) -> Result<Self, Error> {
        let (mut diagonal, mut beside, mut scales) = (vec![0f64; n], vec![0f64; n], vec![0f32; n]);
        // The last reflection, whose effect on the rows below is still to come: A ← A − v·wᵀ − w·vᵀ.
        let (mut v, mut w) = (vec![0f32; n], vec![0f32; n]);
        for k in 0..n {
            check()?;
            let (done, below) = a.split_at_mut((k + 1) * n);
            let row = &mut done[k * n..];
            let (vk, wk) = (v[k], w[k]);
            for j in k..n {
                row[j] -= vk * w[j] + wk * v[j];
            }
            diagonal[k] = f64::from(row[k]);
            let x = &mut row[k + 1..];
            let length = x.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
            // A column of zeros needs no reflection: s stays 0, and what follows applies the pending update alone.
            let mut scale = 0.0;
            if length > 0.0 {
                // x becomes a multiple of the first unit vector; the sign avoids cancellation.
                let first = f64::from(x[0]);
                let reflected = -length.copysign(first);
                beside[k] = reflected;
                x[0] = (first - reflected) as f32;
                scale = 2.0 / x.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>();
            }
            scales[k] = scale as f32;
            // One pass over the rows below: the pending update, and p = A·x.
            let next = &*x;
            let product: Vec<f32> = below
                .par_chunks_mut(ROWS * n)
                .enumerate()
                .flat_map_iter(|(task, rows)| {
                    let first = k + 1 + task * ROWS;
                    vectorised(UpdateAndMultiply { rows, n, first, from: k + 1, v: &v, w: &w, next })
                })
                .collect();
            // w = s·p − (s²/2)(xᵀp)·x
            let along: f64 = next.iter().zip(&product).map(|(&x, &p)| f64::from(x) * f64::from(p)).sum();
            let shift = scale * scale / 2.0 * along;
            v[..=k].fill(0.0);
            w[..=k].fill(0.0);
            v[k + 1..].copy_from_slice(next);
            for ((w, &p), &x) in w[k + 1..].iter_mut().zip(&product).zip(next) {
                *w = (scale * f64::from(p) - shift * f64::from(x)) as f32;
            }
        }
        let before = |k: usize| if k > 0 { beside[k - 1] } else { 0.0 };
        let row_sum = |k: usize| diagonal[k].abs() + before(k).abs() + beside[k].abs();
        let norm = (0..n).map(row_sum).fold(0.0, f64::max);
        Ok(Tridiagonal { n, diagonal, beside, reflections: a, scales, norm })
    }

    /// Smaller values count as zero.
    fn tiny(&self) -> f64 {
        (self.norm * f64::EPSILON).max(1e-300)
    }

    /// Eigenvalues below `limit`: the negative pivots of T − limit·I.
    fn below(&self, limit: f64) -> usize {
        let tiny = self.tiny();
        let (mut pivot, mut count) = (self.diagonal[0] - limit, 0);
        for k in 0..self.n {
            if k > 0 {
                pivot = self.diagonal[k] - limit - self.beside[k - 1] * self.beside[k - 1] / pivot;
            }
            if pivot.abs() < tiny {
                pivot = -tiny;
            }
            count += usize::from(pivot < 0.0);
        }
        count
    }

    /// The eigenvalue that has this many below it.
    fn eigenvalue(&self, rank: usize) -> f64 {
        let norm = self.norm;
        let (mut low, mut high) = (-norm, norm);
        while high - low > 4.0 * f64::EPSILON * norm {
            let middle = (low + high) / 2.0;
            if middle <= low || middle >= high {
                break;
            }
            if self.below(middle) > rank { high = middle } else { low = middle }
        }
        (low + high) / 2.0
    }

    /// Orthonormal vectors for these eigenvalues, given in descending order.
    fn eigenvectors(&self, values: &[f64]) -> Vec<Vec<f64>> {
        let mut found: Vec<Vec<f64>> = Vec::with_capacity(values.len());
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for &value in values {
            let mut vector = vec![0f64; self.n];
            let solver = Shifted::new(self, value);
            // A start that lies within what was found already is drawn again.
            for _attempt in 0..8 {
                vector.iter_mut().for_each(|number| *number = draw(&mut state));
                let mut length = remove(&mut vector, &found);
                for _ in 0..ITERATIONS {
                    solver.solve(&mut vector);
                    scale_to_unit(&mut vector);
                    length = remove(&mut vector, &found);
                    scale_to_unit(&mut vector);
                }
                if length > 1e-3 {
                    // Once more, for what rounding left.
                    remove(&mut vector, &found);
                    scale_to_unit(&mut vector);
                    break;
                }
            }
            found.push(vector);
        }
        found
    }

    /// Q·x
    fn turn_back(&self, mut x: Vec<f64>) -> Vec<f32> {
        for k in (0..self.n).rev().filter(|&k| self.scales[k] != 0.0) {
            let v = &self.reflections[k * self.n..][k + 1..self.n];
            let x = &mut x[k + 1..];
            let along: f64 = v.iter().zip(&*x).map(|(&v, x)| f64::from(v) * x).sum();
            let factor = f64::from(self.scales[k]) * along;
            x.iter_mut().zip(v).for_each(|(x, &v)| *x -= factor * f64::from(v));
        }
        x.into_iter().map(|value| value as f32).collect()
    }
}

/// Updates rows by the last reflection and multiplies them by the next one.
struct UpdateAndMultiply<'a> {
    rows: &'a mut [f32],
    n: usize,
    /// Number of the first row.
    first: usize,
    /// First column that is still needed.
    from: usize,
    v: &'a [f32],
    w: &'a [f32],
    next: &'a [f32],
}

impl Loops for UpdateAndMultiply<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn run(self) -> Vec<f32> {
        let (v, w) = (&self.v[self.from..], &self.w[self.from..]);
        let mut products = Vec::with_capacity(ROWS);
        for (i, row) in (self.first..).zip(self.rows.chunks_exact_mut(self.n)) {
            let (vi, wi) = (self.v[i], self.w[i]);
            let row = &mut row[self.from..];
            let mut sums = [0f32; LANES];
            let whole = row.len() / LANES * LANES;
            let lanes = row[..whole].chunks_exact_mut(LANES).zip(v.chunks_exact(LANES));
            let others = w.chunks_exact(LANES).zip(self.next.chunks_exact(LANES));
            for ((row, v), (w, next)) in lanes.zip(others) {
                for lane in 0..LANES {
                    row[lane] -= vi * w[lane] + wi * v[lane];
                    sums[lane] += row[lane] * next[lane];
                }
            }
            let mut sum: f32 = sums.iter().sum();
            for j in whole..row.len() {
                row[j] -= vi * w[j] + wi * v[j];
                sum += row[j] * self.next[j];
            }
            products.push(sum);
        }
        products
    }
}

/// T − λI, factorised with partial pivoting. A pivot of zero becomes tiny, which is what inverse iteration wants.
struct Shifted {
    /// U: diagonal, first and second above it.
    upper: Vec<[f64; 3]>,
    /// Of each step: the factor, and whether rows were swapped.
    steps: Vec<(f64, bool)>,
}

impl Shifted {
    fn new(matrix: &Tridiagonal, shift: f64) -> Self {
        let (n, tiny) = (matrix.n, matrix.tiny());
        let beside = |k: usize| matrix.beside[k];
        let mut upper = Vec::with_capacity(n);
        let mut steps = Vec::with_capacity(n.saturating_sub(1));
        let mut row = [matrix.diagonal[0] - shift, beside(0), 0.0];
        for k in 0..n - 1 {
            let mut next = [beside(k), matrix.diagonal[k + 1] - shift, beside(k + 1)];
            let swapped = next[0].abs() > row[0].abs();
            if swapped {
                std::mem::swap(&mut row, &mut next);
            }
            if row[0].abs() < tiny {
                row[0] = tiny;
            }
            let factor = next[0] / row[0];
            upper.push(row);
            steps.push((factor, swapped));
            row = [next[1] - factor * row[1], next[2] - factor * row[2], 0.0];
        }
        if row[0].abs() < tiny {
            row[0] = tiny;
        }
        upper.push(row);
        Shifted { upper, steps }
    }

    fn solve(&self, x: &mut [f64]) {
        for (k, &(factor, swapped)) in self.steps.iter().enumerate() {
            if swapped {
                x.swap(k, k + 1);
            }
            x[k + 1] -= factor * x[k];
        }
        let n = x.len();
        for k in (0..n).rev() {
            let mut rest = x[k];
            if k + 1 < n {
                rest -= self.upper[k][1] * x[k + 1];
            }
            if k + 2 < n {
                rest -= self.upper[k][2] * x[k + 2];
            }
            x[k] = rest / self.upper[k][0];
        }
        // Numbers as large as 1/tiny come out; what matters is their direction.
        let largest = x.iter().fold(0f64, |largest, value| largest.max(value.abs()));
        if largest > 0.0 && largest.is_finite() {
            x.iter_mut().for_each(|value| *value /= largest);
        }
    }
}

/// Takes out what lies along unit vectors found before; returns the length of the rest.
fn remove(vector: &mut [f64], found: &[Vec<f64>]) -> f64 {
    for other in found {
        let along: f64 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
        vector.iter_mut().zip(other).for_each(|(value, other)| *value -= along * other);
    }
    vector.iter().map(|value| value * value).sum::<f64>().sqrt()
}

fn scale_to_unit(vector: &mut [f64]) {
    let length = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|value| *value /= length);
    }
}

/// A number between −1 and 1.
fn draw(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Σ λₖ·qₖ·qₖᵀ over the columns q of a random orthogonal matrix: two reflections.
    fn with_eigenvalues(values: &[f64]) -> Vec<f32> {
        let n = values.len();
        let mut state = 7;
        let reflections: Vec<Vec<f64>> = (0..2)
            .map(|_| {
                let mut v: Vec<f64> = (0..n).map(|_| draw(&mut state)).collect();
                scale_to_unit(&mut v);
                v
            })
            .collect();
        let column = |k: usize| {
            let mut q = vec![0f64; n];
            q[k] = 1.0;
            for v in &reflections {
                let along: f64 = v.iter().zip(&q).map(|(a, b)| a * b).sum();
                q.iter_mut().zip(v).for_each(|(q, v)| *q -= 2.0 * along * v);
            }
            q
        };
        let mut matrix = vec![0f64; n * n];
        for (k, value) in values.iter().enumerate() {
            let q = column(k);
            (0..n * n).for_each(|at| matrix[at] += value * q[at / n] * q[at % n]);
        }
        matrix.into_iter().map(|value| value as f32).collect()
    }

    fn check(values: Vec<f64>, count: usize) {
        let n = values.len();
        let matrix = with_eigenvalues(&values);
        let vectors = leading_eigenvectors(matrix.clone(), n, count, &|| Ok(())).unwrap();
        let mut sorted = values;
        sorted.sort_by(|a, b| b.total_cmp(a));
        let largest = sorted.iter().fold(1e-30f64, |a, b| a.max(b.abs()));
        let row = |k: usize| &vectors[k * n..][..n];
        for k in 0..count {
            for other in 0..=k {
                let dot: f64 =
                    row(k).iter().zip(row(other)).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                let want = if k == other { 1.0 } else { 0.0 };
                assert!((dot - want).abs() < 1e-5, "n {n}: {k} · {other} = {dot}");
            }
            // A·x = λ·x
            for (i, line) in matrix.chunks_exact(n).enumerate() {
                let product: f64 = line.iter().zip(row(k)).map(|(&a, &x)| f64::from(a) * f64::from(x)).sum();
                let error = (product - sorted[k] * f64::from(row(k)[i])).abs() / largest;
                assert!(error < 2e-5, "n {n}, vector {k}: {error}");
            }
        }
    }

    #[test]
    fn eigenvectors_fulfil_their_equation() {
        check(vec![3.0], 1);
        check(vec![1.0, 5.0], 2);
        check((0..40).map(f64::from).collect(), 40);
        check((0..200).map(|k| 1.0 / f64::from(1 + k)).collect(), 128);
    }

    /// Equal eigenvalues, and matrices of zeros, have any orthonormal vectors; they still have some.
    #[test]
    fn eigenvalues_may_be_equal() {
        check(vec![2.0; 50], 30);
        check(vec![0.0; 50], 30);
        check((0..150).map(|k| if k < 20 { 1.0 } else { 0.0 }).collect(), 60);
        check((0..60).map(|k| f64::from(k / 6)).collect(), 45);
    }

    #[test]
    fn threads_do_not_show() {
        let values: Vec<f64> = (0..300).map(|k| 1.0 / f64::from(1 + k)).collect();
        let matrix = with_eigenvalues(&values);
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| leading_eigenvectors(matrix.clone(), 300, 64, &|| Ok(())).unwrap())
        };
        assert_eq!(with(1), with(3));
    }
}
