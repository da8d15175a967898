//! Conjugate gradients over all workers. The driver has the scalars and the rows of the anchors.

use crate::error::ShardError;
use crate::panel::lanes;
use crate::state::{Answer, Step};
use a2lp::blocks;
use std::ops::Range;

/// What a solve needs of the driver.
pub(crate) trait Talk {
    /// Sends a step.
    fn say(&mut self, step: Step) -> Result<(), ShardError>;
    /// Sends a step and waits for the answers.
    fn ask(&mut self, step: Step) -> Result<Vec<Answer>, ShardError>;
    /// Asked before every iteration; an error ends the solve.
    fn go_on(&self) -> Result<(), ShardError>;
}

/// A system of one panel of classes.
pub(crate) struct System<'a> {
    /// Rows, without anchors.
    pub(crate) rows: usize,
    pub(crate) alpha: f32,
    pub(crate) classes: Range<usize>,
    /// S between anchors.
    pub(crate) between: &'a [Vec<(u32, f32)>],
    /// The class of every anchor.
    pub(crate) anchor_classes: &'a [u32],
    /// The value of Y of every class.
    pub(crate) entries: &'a [f32],
    pub(crate) max_iterations: usize,
}

/// How the solve of a panel went.
pub(crate) struct Solved {
    pub(crate) iterations: usize,
    pub(crate) converged: bool,
    /// ‖r_c‖₂ of every class of the panel.
    pub(crate) residuals: Vec<f64>,
}

impl System<'_> {
    /// Solves until ‖r_c‖₂ ≤ `target[c]`. `f` are the rows of F of the anchors, with all classes; the panel's are changed.
    pub(crate) fn solve<const W: usize>(
        &self,
        target: &[f64],
        driver: &mut dyn Talk,
        f: &mut [Vec<f32>],
    ) -> Result<Solved, ShardError> {
        let width = self.classes.len();
        let anchors = f.len();
        let mut x: Vec<[f32; W]> = f.iter().map(|row| lanes(&row[self.classes.clone()])).collect();
        let entries = self.entries[self.classes.clone()].to_vec();
        let (first, count) = (self.classes.start, width);
        driver.say(Step::Begin { first, count, anchors: self.flat(&x), entries: entries.clone() })?;
        let answers = driver.ask(Step::Residual)?;
        let mut q = self.anchor_products(&answers, &x);
        self.subtract(&mut q, &x);
        let mut r: Vec<[f32; W]> = vec![[0.0; W]; anchors];
        for (r, &class) in r.iter_mut().zip(self.anchor_classes) {
            if self.classes.contains(&(class as usize)) {
                r[class as usize - first] = entries[class as usize - first];
            }
        }
        let mut rr =
            self.total(&answers, |begun| blocks::descend_anchors(&mut r, &q, [1.0; W], self.rows, begun));
        let mut p = r.clone();

        let mut active: [bool; W] = std::array::from_fn(|c| c < width && rr[c].sqrt() > target[c]);
        let mut iterations = 0;
        while iterations < self.max_iterations && active.contains(&true) {
            iterations += 1;
            driver.go_on()?;
            let answers = driver.ask(Step::Multiply { anchors: self.flat(&p) })?;
            q = self.anchor_products(&answers, &p);
            let pq = self.total(&answers, |begun| blocks::subtract(&p, self.alpha, &mut q, self.rows, begun));
            let step: [f32; W] =
                std::array::from_fn(|c| if active[c] && pq[c] > 0.0 { (rr[c] / pq[c]) as f32 } else { 0.0 });
            let answers = driver.ask(Step::Descend { step: step.to_vec() })?;
            let new_rr =
                self.total(&answers, |begun| blocks::descend_anchors(&mut r, &q, step, self.rows, begun));
            let keep: [f32; W] =
                std::array::from_fn(
                    |c| {
                        if active[c] && rr[c] > 0.0 { (new_rr[c] / rr[c]) as f32 } else { 0.0 }
                    },
                );
            driver.say(Step::Advance { step: step.to_vec(), keep: keep.to_vec() })?;
            blocks::advance(&mut x, &mut p, &r, step, keep);
            for c in 0..width {
                active[c] = active[c] && new_rr[c].sqrt() > target[c];
            }
            rr = new_rr;
        }
        driver.say(Step::Finish)?;
        for (row, x) in f.iter_mut().zip(&x) {
            row[self.classes.clone()].copy_from_slice(&x[..width]);
        }
        let residuals = rr[..width].iter().map(|rr| rr.sqrt()).collect();
        Ok(Solved { iterations, converged: !active.contains(&true), residuals })
    }

    /// The values of the anchors, as many classes each as the panel has.
    fn flat<const W: usize>(&self, values: &[[f32; W]]) -> Vec<f32> {
        values.iter().flat_map(|row| &row[..self.classes.len()]).copied().collect()
    }

    /// The rows of S·p that belong to anchors: segments in order, then the other anchors.
    fn anchor_products<const W: usize>(&self, answers: &[Answer], p: &[[f32; W]]) -> Vec<[f32; W]> {
        let mut products = vec![[0f32; W]; p.len()];
        if p.is_empty() {
            return products;
        }
        for answer in answers {
            for segment in answer.to_anchors.as_chunks::<W>().0.chunks_exact(p.len()) {
                add(&mut products, segment.iter().copied());
            }
        }
        add(&mut products, self.between.iter().map(|entries| blocks::between_anchors(entries, p)));
        products
    }

    fn subtract<const W: usize>(&self, q: &mut [[f32; W]], x: &[[f32; W]]) {
        blocks::subtract(x, self.alpha, q, self.rows, [0.0; W]);
    }

    /// The sum over all chunks, in order. `anchors` makes the sums of the chunks that anchors are in, of which rows may have begun the
    /// first.
    fn total<const W: usize>(
        &self,
        answers: &[Answer],
        anchors: impl FnOnce([f64; W]) -> blocks::Sums<W>,
    ) -> [f64; W] {
        let mut chunks: blocks::Sums<W> =
            answers.iter().flat_map(|answer| answer.sums.as_chunks::<W>().0).copied().collect();
        let begun = match self.rows.is_multiple_of(blocks::CHUNK) {
            true => [0.0; W],
            false => chunks.last().copied().unwrap_or([0.0; W]),
        };
        let sums = anchors(begun);
        if !sums.is_empty() && !self.rows.is_multiple_of(blocks::CHUNK) {
            chunks.pop();
        }
        chunks.extend(sums);
        let mut total = [0f64; W];
        for chunk in chunks {
            total.iter_mut().zip(chunk).for_each(|(total, sum)| *total += sum);
        }
        total
    }
}

fn add<const W: usize>(all: &mut [[f32; W]], part: impl Iterator<Item = [f32; W]>) {
    for (all, part) in all.iter_mut().zip(part) {
        all.iter_mut().zip(part).for_each(|(all, part)| *all += part);
    }
}
