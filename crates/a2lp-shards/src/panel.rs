//! The vectors of conjugate gradients for a panel of classes: x, r and q of the own rows; p of the own rows, the halo and the anchors.

use crate::error::ShardError;
use crate::state::{Answer, State};
use a2lp::blocks::{self, Sums};
use std::ops::Range;

/// A panel of any width.
pub(crate) trait Panel: Send {
    /// Starts from F.
    fn begin(
        &mut self,
        state: &State,
        classes: Range<usize>,
        all: usize,
        anchors: &[f32],
        entries: &[f32],
    ) -> Result<(), ShardError>;
    /// The values of p at these own rows.
    fn rows(&self, rows: &[u32]) -> Vec<u8>;
    /// Takes p of the halo.
    fn receive(&mut self, state: &State, parcels: &[&[u8]]) -> Result<(), ShardError>;
    /// r = Y − (I − αS)x, and p = r.
    fn residual(&mut self, state: &State, answer: &mut Answer) -> Result<(), ShardError>;
    /// q = (I − αS)p.
    fn multiply(&mut self, state: &State, anchors: &[f32], answer: &mut Answer) -> Result<(), ShardError>;
    /// r ← r − step·q, and r·r.
    fn descend(&mut self, step: &[f32]) -> Vec<f64>;
    /// x ← x + step·p, p ← r + keep·p.
    fn advance(&mut self, step: &[f32], keep: &[f32]);
    /// Puts x into F.
    fn finish(&self, state: &mut State, all: usize) -> Result<(), ShardError>;
}

pub(crate) struct Vectors<const W: usize> {
    alpha: f32,
    classes: Range<usize>,
    /// Y of the own rows: a class of the panel, if they have one.
    entries: Vec<f32>,
    x: Vec<[f32; W]>,
    r: Vec<[f32; W]>,
    p: Vec<[f32; W]>,
    q: Vec<[f32; W]>,
}

impl<const W: usize> Vectors<W> {
    pub(crate) fn new(alpha: f32) -> Self {
        let [x, r, p, q] = std::array::from_fn(|_| Vec::new());
        Vectors { alpha, classes: 0..0, entries: Vec::new(), x, r, p, q }
    }

    /// Puts values of the anchors, whose rows have as many classes as the panel, behind the halo.
    fn set_anchors(&mut self, first: usize, anchors: &[f32]) {
        let count = self.classes.len();
        for (p, values) in self.p[first..].iter_mut().zip(anchors.chunks_exact(count.max(1))) {
            *p = [0.0; W];
            p[..count].copy_from_slice(values);
        }
    }

    /// q = (I − αS)p and p·q, and what goes to the anchors.
    fn times(&mut self, state: &State, answer: &mut Answer) -> Result<Sums<W>, ShardError> {
        let mut sums: Sums<W> = Vec::new();
        let mut first = 0;
        for (shelf, entries) in state.blocks() {
            let matrix = shelf.get()?;
            let rows = first..first + matrix.ends.len();
            sums.extend(blocks::multiply(&matrix, first, &self.p, self.alpha, &mut self.q[rows.clone()]));
            let added = blocks::to_anchors(&*entries.get()?, &self.p);
            answer.to_anchors.extend(added.as_flattened());
            first = rows.end;
        }
        Ok(sums)
    }
}

fn flat<const W: usize>(sums: Sums<W>) -> Vec<f64> {
    sums.as_flattened().to_vec()
}

/// Values in the first lanes; the others are 0.
pub(crate) fn lanes<const W: usize>(values: &[f32]) -> [f32; W] {
    std::array::from_fn(|lane| values.get(lane).copied().unwrap_or(0.0))
}

impl<const W: usize> Panel for Vectors<W> {
    fn begin(
        &mut self,
        state: &State,
        classes: Range<usize>,
        all: usize,
        anchors: &[f32],
        entries: &[f32],
    ) -> Result<(), ShardError> {
        let (own, halo) = state.lengths();
        let count = classes.len();
        self.classes = classes.clone();
        self.entries = entries.to_vec();
        self.x = Vec::with_capacity(own);
        for scores in state.scores() {
            let scores = scores.get()?;
            self.x.extend(scores.chunks_exact(all.max(1)).map(|row| lanes(&row[classes.clone()])));
        }
        self.r = vec![[0.0; W]; own];
        self.q = vec![[0.0; W]; own];
        self.p = vec![[0.0; W]; own + halo + anchors.len() / count.max(1)];
        self.p[..own].copy_from_slice(&self.x);
        self.set_anchors(own + halo, anchors);
        Ok(())
    }

    fn rows(&self, rows: &[u32]) -> Vec<u8> {
        let picked: Vec<[f32; W]> = rows.iter().map(|&row| self.p[row as usize]).collect();
        bytemuck::cast_slice(picked.as_flattened()).to_vec()
    }

    fn receive(&mut self, state: &State, parcels: &[&[u8]]) -> Result<(), ShardError> {
        let (own, halo) = state.lengths();
        let values: Vec<f32> =
            parcels.iter().flat_map(|parcel| bytemuck::allocation::pod_collect_to_vec(parcel)).collect();
        if values.len() != halo * W {
            let (wanted, got) = (halo, values.len() / W);
            return Err(ShardError::Broken(format!("{wanted} rows of others are needed, {got} were sent")));
        }
        self.p[own..own + halo].as_flattened_mut().copy_from_slice(&values);
        Ok(())
    }

    fn residual(&mut self, state: &State, answer: &mut Answer) -> Result<(), ShardError> {
        self.times(state, answer)?;
        for (r, &label) in self.r.iter_mut().zip(state.labels()) {
            *r = [0.0; W];
            if self.classes.contains(&(label as usize)) {
                let lane = label as usize - self.classes.start;
                r[lane] = self.entries[lane];
            }
        }
        answer.sums = flat(blocks::descend(&mut self.r, &self.q, [1.0; W]));
        self.p[..self.r.len()].copy_from_slice(&self.r);
        Ok(())
    }

    fn multiply(&mut self, state: &State, anchors: &[f32], answer: &mut Answer) -> Result<(), ShardError> {
        let (own, halo) = state.lengths();
        self.set_anchors(own + halo, anchors);
        answer.sums = flat(self.times(state, answer)?);
        Ok(())
    }

    fn descend(&mut self, step: &[f32]) -> Vec<f64> {
        flat(blocks::descend(&mut self.r, &self.q, lanes(step)))
    }

    fn advance(&mut self, step: &[f32], keep: &[f32]) {
        let own = self.x.len();
        blocks::advance(&mut self.x, &mut self.p[..own], &self.r, lanes(step), lanes(keep));
    }

    fn finish(&self, state: &mut State, all: usize) -> Result<(), ShardError> {
        let mut rows = self.x.iter();
        state.change_scores(&mut |scores| {
            for (row, x) in scores.chunks_exact_mut(all.max(1)).zip(&mut rows) {
                row[self.classes.clone()].copy_from_slice(&x[..self.classes.len()]);
            }
        })
    }
}
