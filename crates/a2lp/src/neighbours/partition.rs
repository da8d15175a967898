//! Rows in groups of similar ones: a few rounds of k-means on a sample, then every row to its nearest centre.

use super::{BestOf, exact};
use crate::features::{FeatureMatrix, ROWS_PER_TASK, normalise, weighted_mean};
use crate::kernels::{PackedRows, ScoreTile};
use crate::similarity::Similarity;
use rayon::prelude::*;
use std::ops::Range;

/// Sampled rows per centre while the centres are being found.
const SAMPLE_PER_CENTRE: usize = 32;
/// Rounds of k-means; more change the groups, not the search.
const ROUNDS: usize = 4;

/// Number of groups for a number of rows. More groups mean fewer rows to visit and more centres to compare with.
pub(super) fn usual_groups(rows: usize) -> usize {
    ((1.1 * (rows as f64).sqrt()) as usize).max(rows / 250).clamp(1, rows.max(1))
}

/// The centres of groups of rows.
pub(super) struct Centres<'a> {
    features: &'a FeatureMatrix,
    similarity: Similarity,
    packed: PackedRows,
    count: usize,
}

impl<'a> Centres<'a> {
    /// Finds `count` centres by k-means on a sample of the rows.
    pub(super) fn find(features: &'a FeatureMatrix, similarity: Similarity, count: usize, seed: u64) -> Self {
        let sample: Vec<usize> = spread(features.rows(), count * SAMPLE_PER_CENTRE, seed);
        let mut vectors = FeatureMatrix::default();
        for &row in sample.iter().step_by(sample.len().div_ceil(count)) {
            vectors.append_row(features.row(row));
        }
        let mut centres = Centres { features, similarity, packed: PackedRows::new(), count: vectors.rows() };
        centres.packed.pack(vectors.values(), vectors.columns());
        for _ in 0..ROUNDS {
            vectors = centres.moved(&sample, &vectors);
            centres.packed.pack(vectors.values(), vectors.columns());
        }
        centres
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The mean of the sampled rows nearest to each centre; a centre without rows stays where it is.
    fn moved(&self, sample: &[usize], vectors: &FeatureMatrix) -> FeatureMatrix {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.count];
        self.nearest(sample, 1).iter().zip(sample).for_each(|(&near, &row)| members[near as usize].push(row));
        let moved: Vec<Vec<f32>> = members
            .into_par_iter()
            .enumerate()
            .map(|(centre, members)| {
                if members.is_empty() {
                    return vectors.row(centre).to_vec();
                }
                let rows = members.iter().map(|&row| (self.features.row(row), 1.0));
                let mut mean = weighted_mean(rows, members.len() as f64, self.features.columns());
                if self.similarity.scales_rows() {
                    normalise(&mut mean);
                }
                mean
            })
            .collect();
        let mut vectors = FeatureMatrix::default();
        moved.iter().for_each(|row| vectors.append_row(row));
        vectors
    }

    /// The nearest `count` centres of each of `rows`, nearest first, row after row.
    pub(super) fn nearest(&self, rows: &[usize], count: usize) -> Vec<u32> {
        let mut near = vec![0; rows.len() * count];
        near.par_chunks_mut(ROWS_PER_TASK / 8 * count).zip(rows.par_chunks(ROWS_PER_TASK / 8)).for_each_init(
            || (ScoreTile::new(), Vec::new()),
            |(tile, values), (near, rows)| self.rank(rows, count, tile, values, near),
        );
        near
    }

    /// The same on this thread, with buffers to work in.
    fn rank(
        &self,
        rows: &[usize],
        count: usize,
        tile: &mut ScoreTile,
        values: &mut Vec<f32>,
        near: &mut [u32],
    ) {
        values.clear();
        rows.iter().for_each(|&row| values.extend_from_slice(self.features.row(row)));
        tile.score(self.similarity.chain(), values, &self.packed);
        let mut best = vec![BestOf::new(count, f32::NEG_INFINITY); rows.len()];
        for (row, first, scores) in tile.segments() {
            for (centre, &accumulated) in (first as u32..).zip(scores) {
                best[row].consider(self.similarity.score(accumulated), centre);
            }
        }
        for (near, best) in near.chunks_mut(count).zip(best) {
            near.iter_mut().zip(best.sorted()).for_each(|(near, centre)| *near = centre.node());
        }
    }

    /// How many of the nearest groups a row must look at to meet the wanted share of its `k` nearest rows, going by a
    /// sample of rows whose neighbours are found by looking at everything.
    pub(super) fn probes_for(&self, k: usize, wanted: f64) -> usize {
        let rows = self.features.rows();
        let count = (rows / 128).clamp(256, 1024).min(rows);
        // Not the rows on which the recall is measured in the end.
        let sample: Vec<usize> = (0..count).map(|at| (2 * at + 1) * rows / (2 * count)).collect();
        let truth = exact::find_for(self.features, &sample, &(0..self.features.rows()), k, self.similarity);
        let neighbours: Vec<usize> = truth.iter().flatten().map(|r| r.node() as usize).collect();
        let mut homes = self.nearest(&neighbours, 1).into_iter();
        // Neighbours that are met in the 1st, 2nd, … nearest group.
        let mut met = vec![0usize; self.count];
        for (truth, ranked) in truth.iter().zip(self.nearest(&sample, self.count).chunks(self.count)) {
            let mut rank = vec![0; self.count];
            ranked.iter().enumerate().for_each(|(at, &group)| rank[group as usize] = at);
            homes.by_ref().take(truth.len()).for_each(|home| met[rank[home as usize]] += 1);
        }
        let mut so_far = 0;
        let enough = met.iter().position(|&met| {
            so_far += met;
            so_far as f64 >= wanted * neighbours.len() as f64
        });
        enough.map_or(self.count, |at| at + 1)
    }
}

/// Rows ordered by group.
pub(super) struct Partition<'a> {
    centres: Centres<'a>,
    /// Row at each position; the rows of a group stand together, in ascending order.
    pub(super) order: Vec<u32>,
    /// First position of each group, and the end.
    starts: Vec<usize>,
}

impl<'a> Partition<'a> {
    /// Puts every row into the group of its nearest centre.
    pub(super) fn new(centres: Centres<'a>) -> Self {
        let rows = centres.features.rows();
        let own = centres.nearest(&(0..rows).collect::<Vec<_>>(), 1);
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order.sort_by_key(|&row| own[row as usize]);
        let mut starts = vec![0; centres.count + 1];
        own.iter().for_each(|&group| starts[group as usize + 1] += 1);
        for group in 0..centres.count {
            starts[group + 1] += starts[group];
        }
        Partition { centres, order, starts }
    }

    /// Positions of a group.
    pub(super) fn group(&self, group: usize) -> Range<usize> {
        self.starts[group]..self.starts[group + 1]
    }

    /// Number of groups.
    pub(super) fn groups(&self) -> usize {
        self.centres.count
    }

    /// The groups that the rows at these positions look at, each with those positions: the `probes` nearest of every row,
    /// or more if those hold fewer than `least` rows. The group of most comes first, so that good neighbours are met early.
    pub(super) fn visits(
        &self,
        positions: Range<usize>,
        probes: usize,
        least: usize,
        tile: &mut ScoreTile,
        values: &mut Vec<f32>,
    ) -> Visits {
        let groups = self.groups();
        let (probes, least) = (probes.min(groups), least.min(self.order.len()));
        let mut visits: Vec<(u32, usize)> = Vec::with_capacity(positions.len() * probes);
        let rows: Vec<usize> = positions.clone().map(|at| self.order[at] as usize).collect();
        let mut near = vec![0; rows.len() * probes];
        self.centres.rank(&rows, probes, tile, values, &mut near);
        let mut short = Vec::new();
        for (position, near) in positions.zip(near.chunks(probes)) {
            if near.iter().map(|&group| self.group(group as usize).len()).sum::<usize>() < least {
                short.push(position);
            } else {
                visits.extend(near.iter().map(|&group| (group, position)));
            }
        }
        let rows: Vec<usize> = short.iter().map(|&at| self.order[at] as usize).collect();
        let mut ranked = vec![0; rows.len() * groups];
        self.centres.rank(&rows, groups, tile, values, &mut ranked);
        for (&position, ranked) in short.iter().zip(ranked.chunks(groups)) {
            let mut held = 0;
            for &group in ranked {
                visits.push((group, position));
                held += self.group(group as usize).len();
                if held >= least {
                    break;
                }
            }
        }
        Visits::new(visits, groups)
    }
}

/// The visitors of each group, in few large allocations: many small ones would fragment memory.
pub(super) struct Visits {
    /// Positions, by group.
    visitors: Vec<usize>,
    /// Groups that have any, and where their visitors stand; most visitors first.
    groups: Vec<(usize, Range<usize>)>,
}

impl Visits {
    fn new(visits: Vec<(u32, usize)>, groups: usize) -> Self {
        let mut ends = vec![0; groups + 1];
        visits.iter().for_each(|&(group, _)| ends[group as usize + 1] += 1);
        for group in 0..groups {
            ends[group + 1] += ends[group];
        }
        let mut groups: Vec<(usize, Range<usize>)> = ends
            .windows(2)
            .map(|ends| ends[0]..ends[1])
            .enumerate()
            .filter(|(_, range)| !range.is_empty())
            .collect();
        groups.sort_by_key(|(_, range)| std::cmp::Reverse(range.len()));
        let mut visitors = vec![0; visits.len()];
        for (group, position) in visits {
            visitors[ends[group as usize]] = position;
            ends[group as usize] += 1;
        }
        Visits { visitors, groups }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &[usize])> {
        self.groups.iter().map(|(group, range)| (*group, &self.visitors[range.clone()]))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(features: &FeatureMatrix, groups: usize) -> Partition<'_> {
        Partition::new(Centres::find(features, Similarity::Cosine, groups, 0))
    }

    /// Groups that a position looks at.
    fn near(partition: &Partition<'_>, position: usize, probes: usize, least: usize) -> Vec<usize> {
        let (mut tile, mut values) = (ScoreTile::new(), Vec::new());
        let visits = partition.visits(position..position + 1, probes, least, &mut tile, &mut values);
        assert!(visits.iter().all(|(_, visitors)| visitors == [position]));
        visits.iter().map(|(group, _)| group).collect()
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
        let partition = grouped(&features, 6);
        let mut order = partition.order.clone();
        order.sort_unstable();
        assert_eq!(order, (0..600).collect::<Vec<u32>>());
        for group in 0..6 {
            let positions = partition.group(group);
            assert!(positions.clone().all(|at| near(&partition, at, 1, 0) == [group]));
            assert!(positions.clone().all(|at| near(&partition, at, 2, 0).len() == 2));
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
        let partition = grouped(&features, 6);
        for position in 0..60 {
            let near = near(&partition, position, 1, 20);
            let rows: usize = near.iter().map(|&group| partition.group(group).len()).sum();
            assert!(rows >= 20, "row {}: {rows}", partition.order[position]);
        }
    }
}
