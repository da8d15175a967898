//! Rows in groups of similar ones: a few rounds of k-means on a sample, then every row to its nearest centre.

use super::{BestOf, exact};
use crate::anchors::weighted_mean;
use crate::features::{FeatureMatrix, ROWS_PER_TASK, normalise};
use crate::kernels::{PackedRows, ScoreTile};
use crate::parameters::Similarity;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// Sampled rows per centre while the centres are being found.
const SAMPLE_PER_CENTRE: usize = 32;
/// Rounds of k-means; more change the groups, not the search.
const ROUNDS: usize = 4;

/// Rows whose neighbours decide how many groups are looked at.
const TUNED_ON: usize = 256;

/// Rows ordered by group.
pub(super) struct Partition {
    /// Row at each position; the rows of a group stand together, in ascending order.
    pub(super) order: Vec<u32>,
    /// First position of each group, and the end.
    starts: Vec<usize>,
    /// The `probes` groups nearest to each row, nearest first, row after row.
    near: Vec<u32>,
    probes: usize,
    /// Rows whose near groups hold too few others, and the groups that they look at instead.
    further: BTreeMap<u32, Vec<u32>>,
}

/// Groups for so many rows: large enough that scoring the rows against the centres costs little.
pub(super) fn usual_groups(rows: usize) -> usize {
    (((rows as f64).sqrt() * 1.1) as usize).clamp(1, rows)
}

/// Centres of `groups` groups, by k-means on a sample of the rows.
pub(super) fn find_centres(
    features: &FeatureMatrix,
    similarity: Similarity,
    groups: usize,
    seed: u64,
) -> FeatureMatrix {
    let sample: Vec<usize> = spread(features.rows(), groups * SAMPLE_PER_CENTRE, seed);
    let mut centres = FeatureMatrix::default();
    for &row in sample.iter().step_by(sample.len().div_ceil(groups)) {
        centres.append_row(features.row(row));
    }
    for _ in 0..ROUNDS {
        centres = move_centres(features, &sample, &centres, similarity);
    }
    centres
}

/// How many of the nearest groups a row must look at to meet the wanted share of its `k` nearest rows, going by a sample
/// of rows whose neighbours are found by looking at everything.
pub(super) fn probes_for(
    features: &FeatureMatrix,
    similarity: Similarity,
    centres: &FeatureMatrix,
    k: usize,
    wanted: f64,
) -> usize {
    let (rows, groups) = (features.rows(), centres.rows());
    let count = TUNED_ON.min(rows);
    // Not the rows on which the recall is measured in the end.
    let sample: Vec<usize> = (0..count).map(|at| (2 * at + 1) * rows / (2 * count)).collect();
    let truth = exact::find_for(features, &sample, k, similarity);
    let neighbours: Vec<usize> = truth.iter().flatten().map(|r| r.node() as usize).collect();
    let mut homes = nearest_centres(features, &neighbours, centres, 1, similarity).into_iter();
    let ranked = nearest_centres(features, &sample, centres, groups, similarity);
    // Neighbours that are first met in the 1st, 2nd, … nearest group.
    let mut met = vec![0usize; groups];
    for (truth, ranked) in truth.iter().zip(ranked.chunks(groups)) {
        let mut rank = vec![0; groups];
        ranked.iter().enumerate().for_each(|(at, &group)| rank[group as usize] = at);
        homes.by_ref().take(truth.len()).for_each(|home| met[rank[home as usize]] += 1);
    }
    let mut so_far = 0;
    let enough = met.iter().position(|&met| {
        so_far += met;
        so_far as f64 >= wanted * neighbours.len() as f64
    });
    enough.map_or(groups, |at| at + 1)
}

impl Partition {
    /// Groups the rows round the centres and notes for each row its `probes` nearest groups, or more if those hold
    /// fewer than `least` rows.
    pub(super) fn new(
        features: &FeatureMatrix,
        similarity: Similarity,
        centres: &FeatureMatrix,
        probes: usize,
        least: usize,
    ) -> Self {
        let rows = features.rows();
        let (groups, probes) = (centres.rows(), probes.min(centres.rows()));
        let all: Vec<usize> = (0..rows).collect();
        let near = nearest_centres(features, &all, centres, probes, similarity);
        let own = |row: u32| near[row as usize * probes];
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order.sort_by_key(|&row| own(row));
        let mut starts = vec![0; groups + 1];
        order.iter().for_each(|&row| starts[own(row) as usize + 1] += 1);
        for group in 0..groups {
            starts[group + 1] += starts[group];
        }

        let size = |group: u32| starts[group as usize + 1] - starts[group as usize];
        let held = |near: &[u32]| near.iter().map(|&group| size(group)).sum::<usize>();
        let short: Vec<usize> = (0..rows)
            .filter(|row| probes < groups && held(&near[row * probes..][..probes]) < least.min(rows))
            .collect();
        let ranked = nearest_centres(features, &short, centres, groups, similarity);
        let enough = |ranked: &[u32]| {
            let mut rows = 0;
            let wanted = ranked.iter().take_while(|&&group| {
                let more = rows < least;
                rows += size(group);
                more
            });
            wanted.copied().collect::<Vec<u32>>()
        };
        let further = short.iter().zip(ranked.chunks(groups)).map(|(&row, near)| (row as u32, enough(near)));
        let further = further.collect();
        Partition { order, starts, near, probes, further }
    }

    /// Positions of a group.
    pub(super) fn group(&self, group: usize) -> Range<usize> {
        self.starts[group]..self.starts[group + 1]
    }

    /// Number of groups.
    pub(super) fn groups(&self) -> usize {
        self.starts.len() - 1
    }

    /// The groups that the row at a position looks at, nearest first.
    fn near(&self, position: usize) -> &[u32] {
        let row = self.order[position];
        match self.further.get(&row) {
            Some(groups) => groups,
            None => &self.near[row as usize * self.probes..][..self.probes],
        }
    }

    /// The groups that the positions have among their near ones, each with those positions; the group of most first,
    /// so that good neighbours are met early.
    pub(super) fn visits(&self, positions: Range<usize>) -> Vec<(usize, Vec<usize>)> {
        let mut visits: Vec<(usize, Vec<usize>)> =
            (0..self.groups()).map(|group| (group, Vec::new())).collect();
        for position in positions {
            self.near(position).iter().for_each(|&group| visits[group as usize].1.push(position));
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
    nearest.iter().zip(sample).for_each(|(&near, &row)| members[near as usize].push(row));
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

/// The nearest `count` centres of each of `rows`, nearest first, row after row.
fn nearest_centres(
    features: &FeatureMatrix,
    rows: &[usize],
    centres: &FeatureMatrix,
    count: usize,
    similarity: Similarity,
) -> Vec<u32> {
    let mut packed = PackedRows::new();
    packed.pack(centres.block(0..centres.rows()), centres.columns());
    let mut near = vec![0; rows.len() * count];
    near.par_chunks_mut(ROWS_PER_TASK / 8 * count).zip(rows.par_chunks(ROWS_PER_TASK / 8)).for_each_init(
        || (ScoreTile::new(), Vec::new()),
        |(tile, values), (near, rows)| {
            values.clear();
            rows.iter().for_each(|&row| values.extend_from_slice(features.row(row)));
            tile.score(similarity.chain(), values, &packed);
            let mut best = vec![BestOf::new(count, f32::NEG_INFINITY); rows.len()];
            for (row, first, scores) in tile.segments() {
                for (centre, &accumulated) in (first as u32..).zip(scores) {
                    best[row].consider(similarity.score(accumulated), centre);
                }
            }
            for (near, best) in near.chunks_mut(count).zip(best) {
                near.iter_mut().zip(best.sorted()).for_each(|(near, centre)| *near = centre.node());
            }
        },
    );
    near
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(features: &FeatureMatrix, groups: usize, probes: usize, least: usize) -> Partition {
        let centres = find_centres(features, Similarity::Cosine, groups, 0);
        Partition::new(features, Similarity::Cosine, &centres, probes, least)
    }

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
        let partition = grouped(&features, 6, 2, 0);
        let mut order = partition.order.clone();
        order.sort_unstable();
        assert_eq!(order, (0..600).collect::<Vec<u32>>());
        for group in 0..6 {
            let positions = partition.group(group);
            assert!(
                positions
                    .clone()
                    .all(|at| partition.near(at)[0] == group as u32 && partition.near(at).len() == 2)
            );
            // Six tight bundles: what stands together points the same way.
            let bundles: Vec<u32> = positions.map(|at| partition.order[at] % 6).collect();
            assert!(bundles.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }

    #[test]
    fn rows_whose_groups_are_too_small_look_further() {
        let mut features = FeatureMatrix::default();
        for row in 0..60u32 {
            // One large bundle, and five rows far from it and from each other.
            let angle = if row < 5 { 1.0 + row as f32 } else { row as f32 * 1e-4 };
            features.append_row(&[angle.cos(), angle.sin()]);
        }
        let partition = grouped(&features, 6, 1, 20);
        for position in 0..60 {
            let rows: usize =
                partition.near(position).iter().map(|&g| partition.group(g as usize).len()).sum();
            assert!(rows >= 20, "row {}: {rows}", partition.order[position]);
        }
    }
}
