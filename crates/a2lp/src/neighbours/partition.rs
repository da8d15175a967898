//! Rows in groups of similar ones: a few rounds of k-means on a sample, then every row to its nearest centre.

use super::BestOf;
use crate::anchors::weighted_mean;
use crate::features::{FeatureMatrix, ROWS_PER_TASK, normalise};
use crate::kernels::{PackedRows, ScoreTile};
use crate::parameters::Similarity;
use rayon::prelude::*;
use std::ops::Range;

/// Sampled rows per centre while the centres are being found.
const SAMPLE_PER_CENTRE: usize = 32;
/// Rounds of k-means; more change the groups, not the search.
const ROUNDS: usize = 4;

/// Rows ordered by group.
pub(super) struct Partition {
    /// Row at each position; the rows of a group stand together, in ascending order.
    pub(super) order: Vec<u32>,
    /// First position of each group, and the end.
    starts: Vec<usize>,
    /// The groups nearest to the row at each position, nearest first.
    near: Vec<Vec<u32>>,
}

impl Partition {
    /// Groups the rows round `groups` centres and notes for each row its `probes` nearest groups.
    pub(super) fn new(
        features: &FeatureMatrix,
        similarity: Similarity,
        groups: usize,
        probes: usize,
        seed: u64,
    ) -> Self {
        let rows = features.rows();
        let sample: Vec<usize> = spread(rows, groups * SAMPLE_PER_CENTRE, seed);
        let mut centres = FeatureMatrix::default();
        for &row in sample.iter().step_by(sample.len().div_ceil(groups)) {
            centres.append_row(features.row(row));
        }
        for _ in 0..ROUNDS {
            centres = move_centres(features, &sample, &centres, similarity);
        }

        let all: Vec<usize> = (0..rows).collect();
        let near = nearest_centres(features, &all, &centres, probes, similarity);
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order.sort_by_key(|&row| near[row as usize][0]);
        let mut starts = vec![0; centres.rows() + 1];
        near.iter().for_each(|near| starts[near[0] as usize + 1] += 1);
        for group in 0..centres.rows() {
            starts[group + 1] += starts[group];
        }
        let near = order.iter().map(|&row| near[row as usize].clone()).collect();
        Partition { order, starts, near }
    }

    /// Positions of a group.
    pub(super) fn group(&self, group: usize) -> Range<usize> {
        self.starts[group]..self.starts[group + 1]
    }

    /// Number of groups.
    pub(super) fn groups(&self) -> usize {
        self.starts.len() - 1
    }

    /// The groups that the positions have among their near ones, each with those positions; the group of most first,
    /// so that good neighbours are met early.
    pub(super) fn visits(&self, positions: Range<usize>) -> Vec<(usize, Vec<usize>)> {
        let mut visits: Vec<(usize, Vec<usize>)> =
            (0..self.groups()).map(|group| (group, Vec::new())).collect();
        for position in positions {
            self.near[position].iter().for_each(|&group| visits[group as usize].1.push(position));
        }
        visits.retain(|(_, visitors)| !visitors.is_empty());
        visits.sort_by_key(|(_, visitors)| std::cmp::Reverse(visitors.len()));
        visits
    }
}

/// Up to `count` different rows, in an order that the seed decides: steps of a size that shares no factor with `rows`.
fn spread(rows: usize, count: usize, seed: u64) -> Vec<usize> {
    let mut step = (rows as f64 * 0.618_033_988_75) as usize + seed as usize % rows;
    let shares_factor = |mut a: usize, mut b: usize| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a != 1
    };
    while shares_factor(step.max(1), rows) {
        step += 1;
    }
    (0..count.min(rows)).map(|at| (at as u128 * step as u128 % rows as u128) as usize).collect()
}

/// The mean of the sampled rows nearest to each centre; a centre without rows stays where it is.
fn move_centres(
    features: &FeatureMatrix,
    sample: &[usize],
    centres: &FeatureMatrix,
    similarity: Similarity,
) -> FeatureMatrix {
    let nearest = nearest_centres(features, sample, centres, 1, similarity);
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); centres.rows()];
    nearest.iter().zip(sample).for_each(|(near, &row)| members[near[0] as usize].push(row));
    let moved: Vec<Vec<f32>> = members
        .into_par_iter()
        .enumerate()
        .map(|(centre, members)| {
            if members.is_empty() {
                return centres.row(centre).to_vec();
            }
            let rows = members.iter().map(|&row| (features.row(row), 1.0));
            let mut mean = weighted_mean(rows, members.len() as f64, features.columns());
            if similarity == Similarity::Cosine {
                normalise(&mut mean);
            }
            mean
        })
        .collect();
    let mut centres = FeatureMatrix::default();
    moved.iter().for_each(|row| centres.append_row(row));
    centres
}

/// The nearest `count` centres of each of `rows`, nearest first.
fn nearest_centres(
    features: &FeatureMatrix,
    rows: &[usize],
    centres: &FeatureMatrix,
    count: usize,
    similarity: Similarity,
) -> Vec<Vec<u32>> {
    let mut packed = PackedRows::new();
    packed.pack(centres.block(0..centres.rows()), centres.columns());
    let tasks: Vec<Vec<Vec<u32>>> = rows
        .par_chunks(ROWS_PER_TASK / 8)
        .map_init(
            || (ScoreTile::new(), Vec::new()),
            |(tile, values), rows| {
                values.clear();
                rows.iter().for_each(|&row| values.extend_from_slice(features.row(row)));
                tile.score(similarity.chain(), values, &packed);
                let mut best = vec![BestOf::new(count, f32::NEG_INFINITY); rows.len()];
                for (row, first, scores) in tile.segments() {
                    for (centre, &accumulated) in (first as u32..).zip(scores) {
                        best[row].consider(similarity.score(accumulated), centre);
                    }
                }
                best.into_iter().map(|best| best.sorted().iter().map(|r| r.node()).collect()).collect()
            },
        )
        .collect();
    tasks.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_no_row_twice() {
        for (rows, count, seed) in [(1, 5, 0), (10, 10, 3), (1000, 300, 7), (4096, 4096, 1)] {
            let mut chosen = spread(rows, count, seed);
            chosen.sort_unstable();
            chosen.dedup();
            assert_eq!(chosen.len(), count.min(rows));
        }
    }

    #[test]
    fn every_row_is_in_its_nearest_group() {
        let mut features = FeatureMatrix::default();
        for row in 0..600u32 {
            let angle = (row % 6) as f32 + (row / 6) as f32 * 0.002;
            features.append_row(&[angle.cos(), angle.sin()]);
        }
        let partition = Partition::new(&features, Similarity::Cosine, 6, 2, 0);
        let mut order = partition.order.clone();
        order.sort_unstable();
        assert_eq!(order, (0..600).collect::<Vec<u32>>());
        for group in 0..6 {
            let positions = partition.group(group);
            assert!(
                positions
                    .clone()
                    .all(|at| partition.near[at][0] == group as u32 && partition.near[at].len() == 2)
            );
            // Six tight bundles: what stands together points the same way.
            let bundles: Vec<u32> = positions.map(|at| partition.order[at] % 6).collect();
            assert!(bundles.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }
}
