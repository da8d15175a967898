//! The screened graph: six-bit rows propose more candidates than needed, full scores choose among them.
//!
//! Scores and order of the lists are those of the exact graph; only a neighbour whose cheap score fell short of the
//! candidates can be missing. How many are is measured on a sample of rows in every run, and a row is *certified*
//! when an error bound proves that none can be.

use super::search::{Scorer, best_of_all};
use super::{BestOf, NeighbourLists, Ranked};
use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::kernels::{PackedBytes, QuantisedRows, ScoreTile};
use crate::observer::Observer;
use crate::parameters::Similarity;
use rayon::prelude::*;
use std::ops::Range;

struct CheapScores(QuantisedRows);

impl Scorer for CheapScores {
    type Packed = PackedBytes;

    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn packed(&self) -> PackedBytes {
        PackedBytes::new()
    }

    fn pack(&self, packed: &mut PackedBytes, range: Range<usize>) {
        packed.pack(&self.0, range);
    }

    fn score(&self, range: Range<usize>, packed: &PackedBytes, tile: &mut ScoreTile) {
        tile.look(&self.0, range, packed);
    }

    fn sign(&self) -> f32 {
        1.0
    }

    /// A cheap score below zero may stand for one above it.
    fn floor(&self) -> f32 {
        f32::NEG_INFINITY
    }
}

/// Candidates looked at in full for k neighbours.
pub(super) fn candidates(k: usize) -> usize {
    k + (k / 2).max(16)
}

/// The `k` nearest other rows of every row, and the share of rows for which that is certain.
pub(super) fn find(
    features: &FeatureMatrix,
    k: usize,
    similarity: Similarity,
    observer: &dyn Observer,
) -> Result<(NeighbourLists, f64), Error> {
    let quantised = QuantisedRows::new(features, similarity);
    let bounds = quantised.error_bounds(similarity);
    let proposed = best_of_all(&CheapScores(quantised), candidates(k), observer)?;
    let chosen: Vec<(Vec<Ranked>, bool)> = proposed
        .into_par_iter()
        .with_min_len(16)
        .enumerate()
        .map_init(Vec::new, |scores, (row, proposed)| {
            // What was not proposed has a cheap score of at most this.
            let everything = proposed.is_short();
            let proposed = proposed.sorted();
            let limit = proposed.last().map_or(f32::NEG_INFINITY, |last| last.score()) + bounds[row];
            let best = choose(features, row, &proposed, k, similarity, scores);
            let certain = everything || best.get(k - 1).is_some_and(|last| last.score() > limit);
            (best, certain)
        })
        .collect();
    let mut lists = NeighbourLists::with_capacity(features.rows(), k);
    chosen.iter().for_each(|(list, _)| lists.push(list, k));
    let certified = chosen.iter().filter(|(_, certain)| *certain).count();
    Ok((lists, certified as f64 / chosen.len().max(1) as f64))
}

/// The `k` best of the rows proposed for `row`, by their full scores.
pub(super) fn choose(
    features: &FeatureMatrix,
    row: usize,
    proposed: &[Ranked],
    k: usize,
    similarity: Similarity,
    scores: &mut Vec<f32>,
) -> Vec<Ranked> {
    similarity.chain().of_each(features, row, proposed.iter().map(|r| r.node()), scores);
    let mut best = BestOf::new(k, similarity.floor());
    for (candidate, &accumulated) in proposed.iter().zip(scores.iter()) {
        let score = similarity.score(accumulated);
        if score > similarity.floor() {
            best.consider(score, candidate.node());
        }
    }
    best.sorted()
}
