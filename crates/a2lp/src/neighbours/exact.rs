//! The exact graph: every pair in full.

use super::search::{Ranking, Scorer, best_of_all};
use super::{BestOf, Centring, NeighbourLists, Room, Wanted};
use crate::error::Error;
use crate::features::{FeatureMatrix, ROWS_PER_TASK};
use crate::kernels::{Hit, PackedRows, ScoreTile};
use crate::observer::Observer;
use crate::similarity::Similarity;
use rayon::prelude::*;
use std::ops::Range;

struct FullScores<'a> {
    features: &'a FeatureMatrix,
    similarity: Similarity,
}

impl Scorer for FullScores<'_> {
    type Packed = PackedRows;

    fn rows(&self) -> usize {
        self.features.rows()
    }

    fn packed(&self) -> PackedRows {
        PackedRows::new()
    }

    fn pack(&self, packed: &mut PackedRows, range: Range<usize>) {
        packed.pack(self.features.block(range), self.features.columns());
    }

    fn score(&self, range: Range<usize>, packed: &PackedRows, tile: &mut ScoreTile) {
        tile.score(self.similarity.chain(), self.features.block(range), packed);
    }

    fn hits(
        &self,
        _: Range<usize>,
        _: &PackedRows,
        tile: &mut ScoreTile,
        [rows, packed_rows]: [&[f32]; 2],
        hits: &mut Vec<Hit>,
    ) {
        tile.collect_hits(self.similarity.score(1.0), rows, packed_rows, hits);
    }

    fn floor(&self) -> f32 {
        self.similarity.floor()
    }
}

/// The nearest other rows of every row. Known neighbours in other features of the same rows save many comparisons.
pub(super) fn find(
    features: &FeatureMatrix,
    wanted: Wanted,
    similarity: Similarity,
    before: Option<&NeighbourLists>,
    observer: &dyn Observer,
) -> Result<NeighbourLists, Error> {
    let reached = match (wanted, before) {
        (Wanted::Nearest(k), Some(before)) => Some(least_scores(features, k, similarity, before)),
        _ => None,
    };
    let ranking = Ranking { reached: reached.as_deref(), ..Ranking::plain(wanted) };
    Ok(rank(features, &[ranking], similarity, observer)?.swap_remove(0))
}

/// The lists of several rankings, from one pass over all pairs.
pub(super) fn find_together(
    features: &FeatureMatrix,
    wanted: &[(Wanted, Option<&Centring>)],
    similarity: Similarity,
    observer: &dyn Observer,
) -> Result<Vec<NeighbourLists>, Error> {
    let rankings: Vec<Ranking<'_>> =
        wanted.iter().map(|&(wanted, centring)| Ranking { centring, ..Ranking::plain(wanted) }).collect();
    rank(features, &rankings, similarity, observer)
}

fn rank(
    features: &FeatureMatrix,
    rankings: &[Ranking<'_>],
    similarity: Similarity,
    observer: &dyn Observer,
) -> Result<Vec<NeighbourLists>, Error> {
    let best = best_of_all(&FullScores { features, similarity }, rankings, observer)?;
    let sorted = |pool: Vec<BestOf>| pool.into_par_iter().with_min_len(64).map(BestOf::sorted).collect();
    let lists = |(best, ranking): (Vec<Vec<BestOf>>, &Ranking<'_>)| {
        NeighbourLists::from_pools(best.into_iter().map(sorted).collect(), ranking.wanted.most())
    };
    Ok(best.into_iter().zip(rankings).map(lists).collect())
}

/// What the rows listed `before` score now, the least of each list: if they are k, the k nearest score no less.
fn least_scores(
    features: &FeatureMatrix,
    k: usize,
    similarity: Similarity,
    before: &NeighbourLists,
) -> Vec<f32> {
    (0..features.rows())
        .into_par_iter()
        .with_min_len(64)
        .map_init(Vec::new, |scores, row| {
            let listed = before.of(row);
            if listed.len() < k {
                return similarity.floor();
            }
            let others = listed.iter().map(|r| features.row(r.node() as usize));
            similarity.chain().of_each(features.row(row), others, scores);
            let least = scores.iter().map(|&score| similarity.score(score)).fold(f32::INFINITY, f32::min);
            least.max(similarity.floor())
        })
        .collect()
}

/// The `k` nearest other rows of some rows, by looking at all of a pool: what a faster search is measured against.
pub(super) fn find_for(
    features: &FeatureMatrix,
    wanted: &[usize],
    pool: &Range<usize>,
    k: usize,
    similarity: Similarity,
) -> Vec<Vec<super::Ranked>> {
    let rows: Vec<f32> = wanted.iter().flat_map(|&row| features.row(row)).copied().collect();
    let left_out = |query: usize, row: usize| wanted[query] == row || !pool.contains(&row);
    let best = look_at_all(features, &rows, k, similarity, left_out);
    best.into_iter().map(BestOf::sorted).collect()
}

/// The `k` rows of `features` nearest to each of the `queries` (row after row), but for those that are `left_out`.
pub(crate) fn look_at_all(
    features: &FeatureMatrix,
    queries: &[f32],
    k: usize,
    similarity: Similarity,
    left_out: impl Fn(usize, usize) -> bool + Sync,
) -> Vec<BestOf> {
    let mut packed = PackedRows::new();
    packed.pack(queries, features.columns());
    let count = queries.len().checked_div(features.columns()).unwrap_or(0);
    let (nobody, sign) = (vec![f32::INFINITY; ROWS_PER_TASK], similarity.score(1.0));
    let nothing = || vec![BestOf::new(k, similarity.floor()); count];
    let look = |(mut best, mut room): (Vec<BestOf>, Room), task: usize| {
        let start = task * ROWS_PER_TASK;
        let range = start..features.rows().min(start + ROWS_PER_TASK);
        let Room { tile, hits, .. } = &mut room;
        tile.score(similarity.chain(), features.block(range.clone()), &packed);
        let thresholds: Vec<f32> = best.iter().map(BestOf::threshold).collect();
        for panel in 0..tile.panels() {
            hits.clear();
            tile.add_hits(panel, sign, &nobody[..range.len()], &thresholds, hits);
            for hit in &*hits {
                let (query, row) = (hit.packed_row as usize, start + hit.row as usize);
                if hit.score > similarity.floor() && !left_out(query, row) {
                    best[query].consider(hit.score, row as u32);
                }
            }
        }
        (best, room)
    };
    // The best of all is the same in whatever order parts of it are joined.
    (0..features.rows().div_ceil(ROWS_PER_TASK))
        .into_par_iter()
        .fold(|| (nothing(), Room::new()), look)
        .map(|(best, _)| best)
        .reduce(nothing, |mut all, part| {
            all.iter_mut().zip(part).for_each(|(all, part)| all.absorb(part));
            all
        })
}
