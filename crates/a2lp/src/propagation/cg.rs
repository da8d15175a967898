//! Conjugate gradients for all classes together: one pass over the graph per iteration, a step size of its
//! own for each class, finished classes frozen. f32 vectors, f64 scalars; sums over nodes go through
//! fixed-size chunks in order, so the number of threads does not matter.

use super::LabelMatrix;
use crate::affinity::Affinity;
use crate::features::ROWS_PER_TASK;
use rayon::prelude::*;
use std::ops::Range;

/// Most classes solved together: more would outgrow the cache.
const PANEL: usize = 32;

pub(super) struct Outcome {
    pub(super) iterations: usize,
    pub(super) converged: bool,
    /// ‖r_c‖₂ of every class.
    pub(super) residuals: Vec<f64>,
}

/// Solves (I − αS)F = Y from the F given, until ‖r_c‖₂ ≤ `target[c]` for every class with a labelled node.
pub(super) fn solve(
    affinity: &Affinity<'_>,
    labels: &LabelMatrix<'_>,
    alpha: f64,
    target: &[f64],
    max_iterations: usize,
    f: &mut [f32],
) -> Outcome {
    let classes = target.len();
    let mut outcome = Outcome { iterations: 0, converged: true, residuals: vec![0.0; classes] };
    for first in (0..classes).step_by(PANEL) {
        let panel = first..classes.min(first + PANEL);
        let system = System { affinity, labels, alpha: alpha as f32, classes, panel: panel.clone() };
        let target = &target[panel.clone()];
        // Padded to a multiple of 4 so that rows fill vector registers.
        let part = match panel.len().div_ceil(4) {
            1 => system.solve::<4>(target, max_iterations, f),
            2 => system.solve::<8>(target, max_iterations, f),
            3 => system.solve::<12>(target, max_iterations, f),
            4 => system.solve::<16>(target, max_iterations, f),
            5 => system.solve::<20>(target, max_iterations, f),
            6 => system.solve::<24>(target, max_iterations, f),
            7 => system.solve::<28>(target, max_iterations, f),
            _ => system.solve::<32>(target, max_iterations, f),
        };
        outcome.iterations = outcome.iterations.max(part.iterations);
        outcome.converged &= part.converged;
        outcome.residuals[panel].copy_from_slice(&part.residuals);
    }
    outcome
}

/// The equations of one panel of classes.
struct System<'a, 'v> {
    affinity: &'a Affinity<'v>,
    labels: &'a LabelMatrix<'a>,
    alpha: f32,
    classes: usize,
    panel: Range<usize>,
}

impl System<'_, '_> {
    fn solve<const W: usize>(&self, target: &[f64], max_iterations: usize, f: &mut [f32]) -> Outcome {
        let nodes = self.affinity.nodes();
        let width = self.panel.len();
        // p holds F for the first product, then the search directions; q = (I − αS)p.
        let mut p = vec![0f32; nodes * W];
        for (p, f) in p.chunks_exact_mut(W).zip(f.chunks_exact(self.classes)) {
            p[..width].copy_from_slice(&f[self.panel.clone()]);
        }
        let mut q = vec![0f32; nodes * W];
        let mut r = vec![0f32; nodes * W];
        self.multiply::<W>(&p, &mut q);
        let mut rr = sum_chunks::<W>(
            r.par_chunks_mut(ROWS_PER_TASK * W).zip(q.par_chunks(ROWS_PER_TASK * W)).enumerate().map(
                |(task, (r, q))| {
                    let mut sum = [0f64; W];
                    for (node, (r, q)) in
                        (task * ROWS_PER_TASK..).zip(r.chunks_exact_mut(W).zip(q.chunks_exact(W)))
                    {
                        for c in 0..width {
                            r[c] = self.labels.entry(node, self.panel.start + c) - q[c];
                            sum[c] += f64::from(r[c]) * f64::from(r[c]);
                        }
                    }
                    sum
                },
            ),
        );
        p.copy_from_slice(&r);

        let mut active: Vec<bool> = (0..W).map(|c| c < width && rr[c].sqrt() > target[c]).collect();
        let mut iterations = 0;
        while iterations < max_iterations && active.contains(&true) {
            iterations += 1;
            let pq = self.multiply::<W>(&p, &mut q);
            let step: [f32; W] =
                std::array::from_fn(|c| if active[c] && pq[c] > 0.0 { (rr[c] / pq[c]) as f32 } else { 0.0 });
            let new_rr = sum_chunks::<W>(
                f.par_chunks_mut(ROWS_PER_TASK * self.classes)
                    .zip(r.par_chunks_mut(ROWS_PER_TASK * W))
                    .zip(p.par_chunks(ROWS_PER_TASK * W).zip(q.par_chunks(ROWS_PER_TASK * W)))
                    .map(|((f, r), (p, q))| {
                        let mut sum = [0f64; W];
                        let rows = f.chunks_exact_mut(self.classes).zip(r.chunks_exact_mut(W));
                        for ((f, r), (p, q)) in rows.zip(p.chunks_exact(W).zip(q.chunks_exact(W))) {
                            for (f, c) in f[self.panel.clone()].iter_mut().zip(0..) {
                                *f += step[c] * p[c];
                            }
                            for c in 0..W {
                                r[c] -= step[c] * q[c];
                                sum[c] += f64::from(r[c]) * f64::from(r[c]);
                            }
                        }
                        sum
                    }),
            );
            let keep: [f32; W] =
                std::array::from_fn(
                    |c| if active[c] && rr[c] > 0.0 { (new_rr[c] / rr[c]) as f32 } else { 0.0 },
                );
            p.par_chunks_mut(ROWS_PER_TASK * W).zip(r.par_chunks(ROWS_PER_TASK * W)).for_each(|(p, r)| {
                for (p, r) in p.chunks_exact_mut(W).zip(r.chunks_exact(W)) {
                    for c in 0..W {
                        p[c] = r[c] + keep[c] * p[c];
                    }
                }
            });
            for c in 0..width {
                active[c] = active[c] && new_rr[c].sqrt() > target[c];
            }
            rr = new_rr;
        }
        let residuals = rr[..width].iter().map(|rr| rr.sqrt()).collect();
        Outcome { iterations, converged: !active.contains(&true), residuals }
    }

    /// q = (I − αS)p, and p·q for every class.
    fn multiply<const W: usize>(&self, p: &[f32], q: &mut [f32]) -> [f64; W] {
        let prepared = self.affinity.prepare::<W>(p);
        sum_chunks::<W>(q.par_chunks_mut(ROWS_PER_TASK * W).enumerate().map(|(task, q)| {
            let start = task * ROWS_PER_TASK;
            self.affinity.multiply_rows::<W>(&prepared, start..start + q.len() / W, p, q);
            let mut sum = [0f64; W];
            for (q, p) in q.chunks_exact_mut(W).zip(p[start * W..].chunks_exact(W)) {
                for c in 0..W {
                    q[c] = p[c] - self.alpha * q[c];
                    sum[c] += f64::from(p[c]) * f64::from(q[c]);
                }
            }
            sum
        }))
    }
}

/// Adds the chunks' sums in chunk order.
fn sum_chunks<const W: usize>(chunks: impl IndexedParallelIterator<Item = [f64; W]>) -> [f64; W] {
    let mut total = [0f64; W];
    for sum in chunks.collect::<Vec<_>>() {
        for c in 0..W {
            total[c] += sum[c];
        }
    }
    total
}
