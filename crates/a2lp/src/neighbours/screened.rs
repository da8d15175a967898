//! The screened graph: six-bit rows propose more candidates than needed, full scores choose among them.
//!
//! Scores and order of the lists equal the exact graph's; only a neighbour whose cheap score fell short of the
//! candidates can be missing. Rows where that is likely are looked at again in full. How many neighbours are missing is
//! measured on a sample of rows in every run, and a row is *certified* when an error bound proves that none can be.

use super::search::{Ranking, Scorer, best_of_all};
use super::{BestOf, NeighbourLists, Ranked, Wanted, exact};
use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::kernels::{Hit, PackedBytes, QuantisedRows, ScoreTile};
use crate::observer::{Observer, Stage, report_progress};
use crate::similarity::Similarity;
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

    fn score(&self, _: Range<usize>, _: &PackedBytes, _: &mut ScoreTile) {}

    fn hits(
        &self,
        range: Range<usize>,
        packed: &PackedBytes,
        tile: &mut ScoreTile,
        thresholds: [&[f32]; 2],
        hits: &mut Vec<Hit>,
    ) {
        tile.look(&self.0, range, packed, thresholds, hits);
    }

    /// A cheap score below zero may stand for one above it.
    fn floor(&self) -> f32 {
        f32::NEG_INFINITY
    }
}

/// Candidates looked at in full for k neighbours: enough that few rows are doubtful, on network features. Where rows are
/// short, more candidates cost less than second looks.
pub(super) fn candidates(k: usize, columns: usize) -> usize {
    k + (k / 5).max(12) * if columns < 1024 { 2 } else { 1 }
}

/// The nearest other rows of every row, and the share of rows for which that is certain.
pub(super) fn find(
    features: &FeatureMatrix,
    wanted: Wanted,
    similarity: Similarity,
    observer: &dyn Observer,
) -> Result<(NeighbourLists, f64), Error> {
    let quantised = QuantisedRows::new(features, similarity.chain());
    let bounds = quantised.error_bounds(similarity.chain());
    let more = |k| candidates(k, features.columns());
    let proposed = match wanted {
        Wanted::Nearest(k) => Wanted::Nearest(more(k)),
        Wanted::OfEach { first_target, source, target } => {
            Wanted::OfEach { first_target, source: more(source), target: more(target) }
        }
    };
    let scores = CheapScores(quantised);
    let proposed = best_of_all(&scores, &[Ranking::plain(proposed)], observer)?.swap_remove(0);
    drop(scores);
    let mut pools: Vec<Vec<Vec<Ranked>>> = Vec::new();
    let mut certain_lists = 0;
    for (proposed, (pool, k)) in proposed.into_iter().zip(wanted.pools(features.rows())) {
        let (mut lists, certain, doubtful) = choose_all(features, proposed, k, similarity, &bounds);
        // Six bits do not report_progress the neighbours of these rows from the rest: nearly equal rows, most likely.
        if doubtful.len() as f64 > MOSTLY_DOUBTFUL * lists.len() as f64 {
            return Ok((exact::find(features, wanted, similarity, None, observer)?, 1.0));
        }
        for batch in doubtful.chunks(SECOND_LOOKS) {
            let total = features.rows() as u64;
            report_progress(observer, Stage::Neighbours, total - 1, total)?;
            for (&row, list) in batch.iter().zip(exact::find_for(features, batch, &pool, k, similarity)) {
                lists[row] = list;
            }
        }
        certain_lists += certain + doubtful.len();
        pools.push(lists);
    }
    let certified = certain_lists as f64 / (pools.len() * features.rows()).max(1) as f64;
    Ok((NeighbourLists::from_pools(pools, wanted.most()), certified))
}

/// What full scores make of the proposals for every row: the lists, how many of them are certain, and the rows that had
/// better be looked at again.
fn choose_all(
    features: &FeatureMatrix,
    proposed: Vec<BestOf>,
    k: usize,
    similarity: Similarity,
    bounds: &[f32],
) -> (Vec<Vec<Ranked>>, usize, Vec<usize>) {
    let chosen: Vec<(Chosen, bool)> = proposed
        .into_par_iter()
        .with_min_len(16)
        .enumerate()
        .map_init(Vec::new, |scores, (row, proposed)| {
            let others = |row: u32| features.row(row as usize);
            let chosen = choose(features.row(row), others, proposed, k, similarity, scores);
            // What was not proposed has a cheap score of at most the cut, so a true one of at most this.
            let limit = chosen.cut + bounds[row];
            let certain = chosen.best.get(k - 1).is_some_and(|last| last.score() > limit);
            let certain = certain || chosen.cut == f32::NEG_INFINITY;
            (chosen, certain)
        })
        .collect();
    let certain = chosen.iter().filter(|(_, certain)| *certain).count();
    let mut lists: Vec<Vec<Ranked>> = Vec::with_capacity(chosen.len());
    let mut doubtful = Vec::new();
    for (row, (chosen, certain)) in chosen.into_iter().enumerate() {
        if chosen.doubtful && !certain {
            doubtful.push(row);
        }
        lists.push(chosen.best);
    }
    (lists, certain, doubtful)
}

/// Share of doubtful rows above which looking at every pair in full is cheaper.
const MOSTLY_DOUBTFUL: f64 = 0.4;

/// Doubtful rows looked at again together.
const SECOND_LOOKS: usize = 512;

/// How many standard deviations of the cheap scores' error must lie between the last neighbour and the best row that
/// was not proposed.
const CLEAR: f32 = 3.0;

/// What full scores make of the proposals for one row.
pub(super) struct Chosen {
    /// The best, nearest first.
    pub(super) best: Vec<Ranked>,
    /// What was not proposed has a cheap score of at most this; −∞ when everything was proposed.
    cut: f32,
    /// A neighbour may well have been left out.
    pub(super) doubtful: bool,
}

/// The `k` best of the rows proposed for `row`, by their full scores. `others` has the rows by their numbers.
pub(super) fn choose<'r>(
    row: &[f32],
    others: impl Fn(u32) -> &'r [f32],
    proposed: BestOf,
    k: usize,
    similarity: Similarity,
    scores: &mut Vec<f32>,
) -> Chosen {
    let everything = proposed.is_short();
    let proposed = proposed.sorted();
    similarity.chain().of_each(row, proposed.iter().map(|r| others(r.node())), scores);
    let mut best = BestOf::new(k, similarity.floor());
    let (mut sum, mut squares) = (0f64, 0f64);
    for (candidate, &accumulated) in proposed.iter().zip(scores.iter()) {
        let score = similarity.score(accumulated);
        if score > similarity.floor() {
            best.consider(score, candidate.node());
        }
        let error = f64::from(candidate.score()) - f64::from(score);
        (sum, squares) = (sum + error, squares + error * error);
    }
    let best = best.sorted();
    let count = proposed.len().max(1) as f64;
    let bias = (sum / count) as f32;
    let spread = (squares / count - (sum / count).powi(2)).max(0.0).sqrt() as f32;
    let cut = match proposed.last() {
        Some(last) if !everything => last.score(),
        _ => f32::NEG_INFINITY,
    };
    let last = best.get(k - 1).map_or(similarity.floor(), |last| last.score());
    let doubtful = last + bias < cut + CLEAR * spread;
    Chosen { best, cut, doubtful }
}
