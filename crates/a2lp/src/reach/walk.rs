//! Averages over the surroundings of a row: what a walk sees that stops with probability 1 − α at each step.

use super::votes::Counted;
use crate::affinity::{Affinity, symmetrise};
use crate::error::Error;
use crate::neighbours::NeighbourLists;
use crate::propagation::{GoOn, Limits, smooth};
use crate::similarity::Similarity;
use std::ops::Range;

/// When a walk has gone far enough.
const LIMITS: Limits = Limits { tolerance: 1e-8, max_iterations: 1000 };

/// The graph of one domain.
pub(super) struct Walk {
    affinity: Affinity<'static>,
    /// √d of every node; 1 for a node without neighbours.
    roots: Vec<f64>,
}

impl Walk {
    /// Over the neighbours that these nodes have among each other.
    pub(super) fn within(lists: &NeighbourLists, nodes: Range<usize>) -> Result<Self, Error> {
        let affinity = symmetrise(&lists.within(nodes, usize::MAX), Similarity::Cosine)?;
        let root = |node: usize| match affinity.degree(node) {
            degree if degree > 0.0 => degree.sqrt(),
            _ => 1.0,
        };
        let roots = (0..affinity.nodes()).map(root).collect();
        Ok(Walk { affinity, roots })
    }

    /// (1 − α)(I − αD⁻¹A)⁻¹h for every column of h, negative values cut off. With x = D^½y and b = D^½h this is the symmetric
    /// system (I − αS)x = b.
    /// The second value tells whether the solver reached its tolerance.
    pub(super) fn average(&self, h: Counted, alpha: f64, go_on: GoOn<'_>) -> Result<(Vec<f32>, bool), Error> {
        let Counted { values, columns } = h;
        let rows = values.chunks_exact(columns.max(1)).zip(&self.roots);
        let mut x: Vec<f32> =
            rows.flat_map(|(row, root)| row.iter().map(move |&h| (h * root) as f32)).collect();
        drop(values);
        let solve = smooth(&self.affinity, columns, alpha, LIMITS, go_on, &mut x)?;
        for (row, root) in x.chunks_exact_mut(columns.max(1)).zip(&self.roots) {
            row.iter_mut().for_each(|x| *x = ((1.0 - alpha) * f64::from(*x) / root).max(0.0) as f32);
        }
        Ok((x, solve.converged))
    }
}
