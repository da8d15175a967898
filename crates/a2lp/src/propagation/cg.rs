//! Conjugate gradients for all classes together: one pass over the graph per iteration, a step size of its
//! own for each class, finished classes frozen. f32 vectors, f64 scalars; sums over nodes go through
//! fixed-size chunks in order, so the number of threads does not matter.

use super::loops::{Advance, Descend, Subtract};
use super::{GoOn, LabelMatrix};
use crate::affinity::Affinity;
use crate::error::Error;
use crate::features::ROWS_PER_TASK;
use crate::kernels::vectorised;
use rayon::prelude::*;
use std::ops::Range;

/// Most classes solved together: more would outgrow the cache.
const PANEL: usize = 16;

/// Nodes from which on rows of F do not fit into the cache together.
const MANY: usize = 150_000;

/// Numbers in a row of the vectors: a multiple of 4, so that rows fill vector registers. Where rows come from memory, each is a cache line
/// of its own: one of 12 numbers would often lie in two.
pub(crate) fn width(nodes: usize, classes: usize) -> usize {
    match classes.next_multiple_of(4).min(PANEL) {
        12 if nodes >= MANY => PANEL,
        width => width,
    }
}

/// Room for the four vectors of a solve, from the start of a cache line.
struct Vectors {
    values: Vec<f32>,
    start: usize,
}

impl Vectors {
    fn new(nodes: usize, classes: usize) -> Self {
        let values = vec![0f32; 4 * nodes * width(nodes, classes) + PANEL];
        let start = values.as_ptr().align_offset(64).min(PANEL);
        Vectors { values, start }
    }

    fn room(&mut self) -> &mut [f32] {
        &mut self.values[self.start..]
    }
}

pub(super) struct Outcome {
    pub(super) iterations: usize,
    pub(super) converged: bool,
    /// ‖r_c‖₂ of every class.
    pub(super) residuals: Vec<f64>,
}

/// Solves (I − αS)F = Y from the F given, which is also Y if there are no `labels`, until ‖r_c‖₂ ≤ `target[c]` for every class with a labelled node.
pub(super) fn solve(
    affinity: &Affinity<'_>,
    labels: Option<&LabelMatrix<'_>>,
    alpha: f64,
    target: &[f64],
    max_iterations: usize,
    go_on: GoOn<'_>,
    f: &mut [f32],
) -> Result<Outcome, Error> {
    let classes = target.len();
    let mut vectors = Vectors::new(affinity.nodes(), classes);
    let mut outcome = Outcome { iterations: 0, converged: true, residuals: vec![0.0; classes] };
    for first in (0..classes).step_by(PANEL) {
        let panel = first..classes.min(first + PANEL);
        let system = System { affinity, labels, alpha: alpha as f32, classes, panel: panel.clone(), go_on };
        let target = &target[panel.clone()];
        let part = match width(affinity.nodes(), panel.len()) {
            4 => system.solve::<4>(target, max_iterations, vectors.room(), f)?,
            8 => system.solve::<8>(target, max_iterations, vectors.room(), f)?,
            12 => system.solve::<12>(target, max_iterations, vectors.room(), f)?,
            _ => system.solve::<16>(target, max_iterations, vectors.room(), f)?,
        };
        outcome.iterations = outcome.iterations.max(part.iterations);
        outcome.converged &= part.converged;
        outcome.residuals[panel].copy_from_slice(&part.residuals);
    }
    Ok(outcome)
}

/// The equations of one panel of classes.
struct System<'a, 'v> {
    affinity: &'a Affinity<'v>,
    labels: Option<&'a LabelMatrix<'a>>,
    alpha: f32,
    classes: usize,
    panel: Range<usize>,
    go_on: GoOn<'a>,
}

impl System<'_, '_> {
    /// `vectors` is room to work in.
    fn solve<const W: usize>(
        &self,
        target: &[f64],
        max_iterations: usize,
        vectors: &mut [f32],
        f: &mut [f32],
    ) -> Result<Outcome, Error> {
        let width = self.panel.len();
        // x is the panel's part of F, r the residual, p the search directions, q = (I − αS)p.
        let mut vectors = vectors.as_chunks_mut::<W>().0.chunks_exact_mut(self.affinity.nodes());
        let [x, r, p, q] = std::array::from_fn(|_| vectors.next().unwrap_or_default());
        let numbering = self.affinity.numbering();
        x.par_iter_mut().enumerate().with_min_len(ROWS_PER_TASK).for_each(|(position, x)| {
            *x = [0.0; W];
            let scores = &f[numbering.node_at(position) * self.classes..][..self.classes];
            x[..width].copy_from_slice(&scores[self.panel.clone()]);
        });
        self.multiply(x, q);
        r.par_iter_mut().enumerate().with_min_len(ROWS_PER_TASK).for_each(|(position, r)| {
            match self.labels {
                Some(labels) => {
                    *r = [0.0; W];
                    labels.write(numbering.node_at(position), &self.panel, r);
                }
                None => *r = x[position],
            }
        });
        let mut rr = descend(r, q, [1.0; W]);
        p.copy_from_slice(r);

        let mut active: [bool; W] = std::array::from_fn(|c| c < width && rr[c].sqrt() > target[c]);
        let mut iterations = 0;
        while iterations < max_iterations && active.contains(&true) {
            iterations += 1;
            (self.go_on)()?;
            let pq = self.multiply(p, q);
            let step: [f32; W] =
                std::array::from_fn(|c| if active[c] && pq[c] > 0.0 { (rr[c] / pq[c]) as f32 } else { 0.0 });
            let new_rr = descend(r, q, step);
            let keep: [f32; W] =
                std::array::from_fn(
                    |c| if active[c] && rr[c] > 0.0 { (new_rr[c] / rr[c]) as f32 } else { 0.0 },
                );
            let parts = x.par_chunks_mut(ROWS_PER_TASK).zip(p.par_chunks_mut(ROWS_PER_TASK));
            parts
                .zip(r.par_chunks(ROWS_PER_TASK))
                .for_each(|((x, p), r)| vectorised(Advance { x, p, r, step, keep }));
            for c in 0..width {
                active[c] = active[c] && new_rr[c].sqrt() > target[c];
            }
            rr = new_rr;
        }
        f.par_chunks_mut(self.classes).enumerate().with_min_len(ROWS_PER_TASK).for_each(|(node, f)| {
            f[self.panel.clone()].copy_from_slice(&x[numbering.position_of(node)][..width]);
        });
        let residuals = rr[..width].iter().map(|rr| rr.sqrt()).collect();
        Ok(Outcome { iterations, converged: !active.contains(&true), residuals })
    }

    /// q = (I − αS)p, and p·q for every class.
    fn multiply<const W: usize>(&self, p: &[[f32; W]], q: &mut [[f32; W]]) -> [f64; W] {
        let prepared = self.affinity.prepare(p);
        sum_chunks(q.par_chunks_mut(ROWS_PER_TASK).enumerate().map(|(task, q)| {
            let rows = task * ROWS_PER_TASK..task * ROWS_PER_TASK + q.len();
            self.affinity.multiply_rows(&prepared, rows.clone(), p, q);
            vectorised(Subtract { p: &p[rows], alpha: self.alpha, q, sum: [0.0; W] })
        }))
    }
}

/// r ← r − step·q, and ‖r‖² of every class.
fn descend<const W: usize>(r: &mut [[f32; W]], q: &[[f32; W]], step: [f32; W]) -> [f64; W] {
    let parts = r.par_chunks_mut(ROWS_PER_TASK).zip(q.par_chunks(ROWS_PER_TASK));
    sum_chunks(parts.map(|(r, q)| vectorised(Descend { r, q, step, sum: [0.0; W] })))
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
