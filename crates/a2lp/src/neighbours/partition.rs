//! Rows in groups of similar ones: a few rounds of k-means on a sample, then every row to its nearest centre. Groups are numbered
//! so that near ones have near numbers.

use super::ranked::offer_to_rows;
use super::{BestOf, Ranked, Room};
use crate::features::{FeatureMatrix, ROWS_PER_TASK, normalise, weighted_mean};
use crate::kernels::PackedRows;
use crate::similarity::Similarity;
use rayon::prelude::*;
use std::ops::Range;

/// Sampled rows per centre while the centres are being found.
const SAMPLE_PER_CENTRE: usize = 32;
/// Rounds of k-means; more change the groups, not the search.
const ROUNDS: usize = 4;
/// More groups than this would take longer to compare with than they save.
const MOST_GROUPS: usize = 1 << 16;

/// Number of groups for a number of rows. More groups mean fewer rows to visit and more centres to compare with.
pub(crate) fn usual_groups(rows: usize) -> usize {
    ((1.1 * (rows as f64).sqrt()) as usize).max(rows / 250).min(MOST_GROUPS).clamp(1, rows.max(1))
}

/// The rows on which this many centres are found.
pub(crate) fn centre_sample(rows: usize, count: usize, seed: u64) -> Vec<usize> {
    spread(rows, count * SAMPLE_PER_CENTRE, seed)
}

/// The rows on which the number of groups to look at is decided: not those on which the recall is measured in the end.
pub(crate) fn probe_sample(rows: usize) -> Vec<usize> {
    let count = (rows / 128).clamp(256, 1024).min(rows);
    (0..count).map(|at| (2 * at + 1) * rows / (2 * count)).collect()
}

/// The centres of groups of rows. Near ones stand together.
pub(crate) struct Centres {
    similarity: Similarity,
    vectors: FeatureMatrix,
    packed: PackedRows,
    /// For many centres, stretches of them.
    stretches: Option<Stretches>,
}

/// Stretches of centres that stand together: a row looks for its nearest centre in the stretches near it.
struct Stretches {
    /// Centres of a stretch.
    length: usize,
    /// Their means.
    means: Box<Centres>,
    packed: Vec<PackedRows>,
}

/// From this many centres on, a row does not look at all of them for the nearest.
const MANY_CENTRES: usize = 1024;

/// Stretches of centres that it looks at.
const STRETCHES: usize = 8;

impl Stretches {
    fn of(vectors: &FeatureMatrix, similarity: Similarity) -> Self {
        let length = vectors.rows().isqrt().next_multiple_of(32);
        let mut means = FeatureMatrix::default();
        let starts: Vec<usize> = (0..vectors.rows()).step_by(length).collect();
        let stretch = |start: usize| start..vectors.rows().min(start + length);
        for &start in &starts {
            let rows = stretch(start).map(|row| (vectors.row(row), 1.0));
            let mut mean = weighted_mean(rows, stretch(start).len() as f64, vectors.columns());
            if similarity.scales_rows() {
                normalise(&mut mean);
            }
            means.append_row(&mean);
        }
        let pack = |&start: &usize| {
            let mut packed = PackedRows::new();
            packed.pack(vectors.block(stretch(start)), vectors.columns());
            packed
        };
        let means = Box::new(Centres::new(means, similarity));
        Stretches { length, means, packed: starts.iter().map(pack).collect() }
    }

    /// Finds the nearest centre of each row. A row looks only at the stretches near it.
    fn nearest(&self, rows: &[&[f32]], similarity: Similarity, room: &mut Room, near: &mut [u32]) {
        let looked_at = STRETCHES.min(self.packed.len());
        let mut stretches = vec![0; rows.len() * looked_at];
        self.means.rank(rows.iter().copied(), looked_at, room, &mut stretches);
        let visits = (0..rows.len()).flat_map(|row| {
            let stretches = &stretches[row * looked_at..][..looked_at];
            stretches.iter().map(move |&group| Visit { is_first: true, group, position: row })
        });
        let mut best = vec![Ranked::NOTHING; rows.len()];
        for (stretch, visitors) in Visits::new(visits.collect(), self.packed.len()).iter() {
            room.values.clear();
            visitors.iter().for_each(|&row| room.values.extend_from_slice(rows[row]));
            let mut found = vec![BestOf::new(1, f32::NEG_INFINITY); visitors.len()];
            room.tile.score(similarity.chain(), &room.values, &self.packed[stretch]);
            offer_to_rows(&room.tile, similarity.score(1.0), &mut found, &mut room.hits);
            for (&row, found) in visitors.iter().zip(found) {
                for found in found.sorted() {
                    let centre = (stretch * self.length) as u32 + found.node();
                    best[row] = best[row].max(Ranked::new(found.score(), centre));
                }
            }
        }
        near.iter_mut().zip(best).for_each(|(near, best)| *near = best.node());
    }
}

impl Centres {
    /// Centres with these vectors.
    pub(crate) fn new(vectors: FeatureMatrix, similarity: Similarity) -> Self {
        let has_many = vectors.rows() >= MANY_CENTRES;
        let stretches = has_many.then(|| Stretches::of(&vectors, similarity));
        Centres { stretches, ..Self::without_stretches(vectors, similarity) }
    }

    /// The same for rows that look at all of them.
    fn without_stretches(vectors: FeatureMatrix, similarity: Similarity) -> Self {
        let mut packed = PackedRows::new();
        packed.pack(vectors.values(), vectors.columns());
        Centres { similarity, vectors, packed, stretches: None }
    }

    /// Finds `count` centres by k-means on a sample of the rows.
    pub(crate) fn find(sample: &FeatureMatrix, similarity: Similarity, count: usize) -> Self {
        let mut vectors = FeatureMatrix::default();
        for row in (0..sample.rows()).step_by(sample.rows().div_ceil(count)) {
            vectors.append_row(sample.row(row));
        }
        let mut centres = Centres::in_order(vectors, similarity);
        for _ in 0..ROUNDS {
            centres = Centres::new(centres.moved(sample), similarity);
        }
        Centres::in_order(centres.vectors, similarity)
    }

    /// Centres with these vectors, near ones together.
    fn in_order(vectors: FeatureMatrix, similarity: Similarity) -> Self {
        let mut order: Vec<u32> = (0..vectors.rows() as u32).collect();
        put_near_ones_together(&vectors, &mut order);
        Centres::new(vectors.gathered(&order), similarity)
    }

    /// The same on a sample of all rows that the seed decides.
    pub(crate) fn find_in(features: &FeatureMatrix, similarity: Similarity, count: usize, seed: u64) -> Self {
        let sample: Vec<u32> =
            centre_sample(features.rows(), count, seed).into_iter().map(|row| row as u32).collect();
        Self::find(&features.gathered(&sample), similarity, count)
    }

    pub(crate) fn count(&self) -> usize {
        self.vectors.rows()
    }

    /// A row per centre.
    pub(crate) fn vectors(&self) -> &FeatureMatrix {
        &self.vectors
    }

    /// The mean of the sampled rows nearest to each centre; a centre without rows stays where it is.
    fn moved(&self, sample: &FeatureMatrix) -> FeatureMatrix {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.count()];
        let near = self.nearest(sample.rows(), |row| sample.row(row), 1);
        near.iter().enumerate().for_each(|(row, &near)| members[near as usize].push(row));
        let moved: Vec<Vec<f32>> = members
            .into_par_iter()
            .enumerate()
            .map(|(centre, members)| {
                if members.is_empty() {
                    return self.vectors.row(centre).to_vec();
                }
                let rows = members.iter().map(|&row| (sample.row(row), 1.0));
                let mut mean = weighted_mean(rows, members.len() as f64, sample.columns());
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

    /// The nearest `count` centres of each row, nearest first, row after row. A single one among many is nearly always the nearest.
    pub(crate) fn nearest<'r>(
        &self,
        rows: usize,
        row: impl Fn(usize) -> &'r [f32] + Sync,
        count: usize,
    ) -> Vec<u32> {
        let stretches = self.stretches.as_ref().filter(|_| count == 1);
        let together = if stretches.is_some() { ROWS_PER_TASK } else { ROWS_PER_TASK / 8 };
        let mut near = vec![0; rows * count];
        near.par_chunks_mut(together * count).enumerate().for_each_init(Room::new, |room, (task, near)| {
            let first = task * together;
            let rows = (first..first + near.len() / count).map(&row);
            match stretches {
                Some(stretches) => {
                    let rows: Vec<&[f32]> = rows.collect();
                    stretches.nearest(&rows, self.similarity, room, near);
                }
                None => self.rank(rows, count, room, near),
            }
        });
        near
    }

    /// The same on this thread, with buffers to work in.
    pub(super) fn rank<'r>(
        &self,
        rows: impl Iterator<Item = &'r [f32]>,
        count: usize,
        room: &mut Room,
        near: &mut [u32],
    ) {
        let Room { tile, values, hits, .. } = room;
        values.clear();
        rows.for_each(|row| values.extend_from_slice(row));
        tile.score(self.similarity.chain(), values, &self.packed);
        let mut best = vec![BestOf::new(count, f32::NEG_INFINITY); near.len() / count.max(1)];
        offer_to_rows(tile, self.similarity.score(1.0), &mut best, hits);
        for (near, best) in near.chunks_mut(count.max(1)).zip(best) {
            near.iter_mut().zip(best.sorted()).for_each(|(near, centre)| *near = centre.node());
        }
    }

    /// How many of the nearest groups a row must look at to meet the wanted share of its nearest rows, going by a sample of rows
    /// whose nearest ones, `truth`, were found by looking at everything. `home` tells the group of a row.
    pub(crate) fn probes_for(
        &self,
        (sample, numbers): (&FeatureMatrix, &[usize]),
        truth: &[Vec<Ranked>],
        home: impl Fn(u32) -> u32,
        wanted: f64,
    ) -> usize {
        let count = self.count();
        let ranks = |ranked: &[u32]| {
            let mut rank = vec![0; count];
            ranked.iter().enumerate().for_each(|(at, &group)| rank[group as usize] = at);
            rank
        };
        // Neighbours that are met when 1, 2, … groups are looked at.
        let mut met = vec![0usize; count];
        let ranked = self.nearest(sample.rows(), |row| sample.row(row), count);
        let homes: Vec<u32> = numbers.iter().map(|&row| home(row as u32)).collect();
        let ranked_by_home = self.nearest(sample.rows(), |row| self.vectors.row(homes[row] as usize), count);
        for ((truth, ranked), by_home) in
            truth.iter().zip(ranked.chunks(count)).zip(ranked_by_home.chunks(count))
        {
            let (rank, by_home) = (ranks(ranked), ranks(by_home));
            for neighbour in truth {
                let group = home(neighbour.node()) as usize;
                // The group has to be among those that the row chooses from, too.
                met[rank[group].max(by_home[group].saturating_sub(MORE_CHOICE) / CHOICE)] += 1;
            }
        }
        let neighbours: usize = met.iter().sum();
        let mut so_far = 0;
        let enough = met.iter().position(|&met| {
            so_far += met;
            so_far as f64 >= wanted * neighbours as f64
        });
        enough.map_or(count, |at| at + 1)
    }
}

/// Groups of rows that stand together: fewer need no further order.
const BUNDLE: usize = 4;

/// Orders vectors so that near ones stand together: they are cut in half across the direction in which they differ most, then
/// either half again.
fn put_near_ones_together(vectors: &FeatureMatrix, order: &mut [u32]) {
    if order.len() <= BUNDLE {
        return;
    }
    let direction = widest_direction(vectors, order);
    let along = |row: u32| -> f64 {
        vectors.row(row as usize).iter().zip(&direction).map(|(&v, d)| f64::from(v) * d).sum()
    };
    let mut keyed: Vec<(f64, u32)> = order.iter().map(|&row| (along(row), row)).collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    order.iter_mut().zip(keyed).for_each(|(slot, (_, row))| *slot = row);
    let (left, right) = order.split_at_mut(order.len() / 2);
    rayon::join(|| put_near_ones_together(vectors, left), || put_near_ones_together(vectors, right));
}

/// The leading principal direction of some vectors, nearly: a few steps of the power method.
fn widest_direction(vectors: &FeatureMatrix, rows: &[u32]) -> Vec<f64> {
    const STEPS: usize = 6;
    let columns = vectors.columns();
    let mut mean = vec![0f64; columns];
    for &row in rows {
        let row = vectors.row(row as usize);
        mean.iter_mut().zip(row).for_each(|(mean, &v)| *mean += f64::from(v) / rows.len() as f64);
    }
    // The first vector's own deviation is as good a start as any.
    let deviation = |row: u32| vectors.row(row as usize).iter().zip(&mean).map(|(&v, m)| f64::from(v) - m);
    let mut direction: Vec<f64> = deviation(rows[0]).collect();
    for _ in 0..STEPS {
        let mut next = vec![0f64; columns];
        for &row in rows {
            let along: f64 = deviation(row).zip(&direction).map(|(v, d)| v * d).sum();
            next.iter_mut().zip(deviation(row)).for_each(|(next, v)| *next += along * v);
        }
        let length = next.iter().map(|v| v * v).sum::<f64>().sqrt();
        if length == 0.0 {
            break;
        }
        direction = next.into_iter().map(|v| v / length).collect();
    }
    direction
}

/// Rows ordered by group.
pub(crate) struct Groups {
    /// Row at each position; the rows of a group stand together, in ascending order.
    pub(crate) order: Vec<u32>,
    /// First position of each group, and the end.
    pub(crate) starts: Vec<usize>,
}

impl Groups {
    /// Puts every row into its group.
    pub(crate) fn new(groups: &[u32], count: usize) -> Self {
        let mut order: Vec<u32> = (0..groups.len() as u32).collect();
        order.sort_by_key(|&row| groups[row as usize]);
        let mut starts = vec![0; count + 1];
        groups.iter().for_each(|&group| starts[group as usize + 1] += 1);
        for group in 0..count {
            starts[group + 1] += starts[group];
        }
        Groups { order, starts }
    }

    /// Where the rows with these numbers start and end in each group.
    pub(crate) fn bounds_within(&self, rows: &Range<usize>) -> (Vec<usize>, Vec<usize>) {
        let bound = |group: &[usize], number: usize| {
            let members = &self.order[group[0]..group[1]];
            group[0] + members.partition_point(|&row| (row as usize) < number)
        };
        let groups = || self.starts.windows(2);
        (
            groups().map(|group| bound(group, rows.start)).collect(),
            groups().map(|group| bound(group, rows.end)).collect(),
        )
    }
}

/// Rows that neighbours are taken from, and how far rows look for them.
pub(crate) struct Pool<'a> {
    /// The first position of those in each group,
    pub(crate) starts: &'a [usize],
    /// and the position after the last.
    pub(crate) ends: &'a [usize],
    /// Neighbours wanted.
    pub(crate) k: usize,
    /// Nearest groups that a row looks at,
    pub(crate) probes: usize,
    /// or more if those hold fewer rows than this, which is no more than there are.
    pub(crate) least: usize,
}

impl<'a> Pool<'a> {
    /// All rows. `starts` has the first position of each group, and the end.
    pub(crate) fn of_all(starts: &'a [usize], k: usize, probes: usize, least: usize) -> Self {
        let (starts, ends) = (&starts[..starts.len() - 1], &starts[1..]);
        Pool { starts, ends, k, probes, least: least.min(ends[ends.len() - 1]) }
    }

    /// Positions of its rows in a group.
    pub(crate) fn group(&self, group: usize) -> Range<usize> {
        self.starts[group]..self.ends[group]
    }
}

/// Rows compared with the centres at a time.
const TOGETHER: usize = 512;

/// A row chooses its groups among this many times as many, which are the nearest to its own group…
const CHOICE: usize = 16;
/// …and this many more.
const MORE_CHOICE: usize = 64;

impl Centres {
    /// The groups that the rows at these positions look at for neighbours from each pool, with those positions. The nearest groups
    /// come first, so that good neighbours are met early and few others look worth a closer look.
    pub(super) fn visits<'r>(
        &self,
        pools: &[Pool<'_>],
        positions: Range<usize>,
        row: impl Fn(usize) -> &'r [f32],
        room: &mut Room,
    ) -> Vec<Visits> {
        let groups = self.count();
        let most = pools.iter().map(|pool| pool.probes).max().unwrap_or(0).min(groups);
        let choice = (CHOICE * most + MORE_CHOICE).min(groups);
        let mut visits: Vec<Vec<Visit>> =
            pools.iter().map(|pool| Vec::with_capacity(positions.len() * pool.probes.min(groups))).collect();
        let mut short: Vec<Vec<usize>> = vec![Vec::new(); pools.len()];
        let ends = pools[pools.len() - 1].ends;
        let (mut near_home, mut start) = (vec![0; choice], positions.start);
        while start < positions.end {
            // Rows of one group have much the same groups near them.
            let home = ends.partition_point(|&end| end <= start);
            let some = start..positions.end.min(ends[home]).min(start + TOGETHER);
            start = some.end;
            let mut near = vec![0; some.len() * most];
            if choice == groups {
                self.rank(some.clone().map(&row), most, room, &mut near);
            } else {
                self.rank(std::iter::once(self.vectors.row(home)), choice, room, &mut near_home);
                let choice = Centres::without_stretches(self.vectors.gathered(&near_home), self.similarity);
                choice.rank(some.clone().map(&row), most, room, &mut near);
                near.iter_mut().for_each(|group| *group = near_home[*group as usize]);
            }
            for (position, near) in some.zip(near.chunks(most)) {
                for ((pool, visits), short) in pools.iter().zip(&mut visits).zip(&mut short) {
                    let near = &near[..pool.probes.min(groups)];
                    if near.iter().map(|&group| pool.group(group as usize).len()).sum::<usize>() < pool.least
                    {
                        short.push(position);
                    } else {
                        let visit = |(at, &group)| Visit { is_first: at < FIRST, group, position };
                        visits.extend(near.iter().enumerate().map(visit));
                    }
                }
            }
        }
        for ((pool, visits), short) in pools.iter().zip(&mut visits).zip(short) {
            for short in short.chunks(TOGETHER) {
                let mut ranked = vec![0; short.len() * groups];
                self.rank(short.iter().map(|&at| row(at)), groups, room, &mut ranked);
                for (&position, ranked) in short.iter().zip(ranked.chunks(groups)) {
                    let mut held = 0;
                    for &group in ranked {
                        visits.push(Visit { is_first: true, group, position });
                        held += pool.group(group as usize).len();
                        if held >= pool.least {
                            break;
                        }
                    }
                }
            }
        }
        visits.into_iter().map(|visits| Visits::new(visits, groups)).collect()
    }
}

/// Groups that every row looks at before others.
const FIRST: usize = 4;

/// The row at a position looks at a group.
#[derive(Clone, Copy)]
struct Visit {
    is_first: bool,
    group: u32,
    position: usize,
}

/// The visitors of each group, in few large allocations: many small ones would fragment memory.
pub(super) struct Visits {
    /// Positions, by group: first those of visits that come first.
    visitors: Vec<usize>,
    /// Groups that have any, and where their visitors stand: first visits first, the group of most of them before the others.
    groups: Vec<(usize, Range<usize>)>,
}

impl Visits {
    fn new(visits: Vec<Visit>, groups: usize) -> Self {
        let slot = |visit: &Visit| visit.group as usize + if visit.is_first { 0 } else { groups };
        let mut ends = vec![0; 2 * groups + 1];
        visits.iter().for_each(|visit| ends[slot(visit) + 1] += 1);
        for at in 0..2 * groups {
            ends[at + 1] += ends[at];
        }
        let mut slots: Vec<(usize, Range<usize>)> = ends
            .windows(2)
            .map(|ends| ends[0]..ends[1])
            .enumerate()
            .filter(|(_, range)| !range.is_empty())
            .collect();
        slots.sort_by_key(|(slot, range)| (slot / groups, std::cmp::Reverse(range.len())));
        let mut visitors = vec![0; visits.len()];
        for visit in visits {
            let end = &mut ends[slot(&visit)];
            visitors[*end] = visit.position;
            *end += 1;
        }
        let groups = slots.into_iter().map(|(slot, range)| (slot % groups, range)).collect();
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

    struct Partition<'a> {
        features: &'a FeatureMatrix,
        centres: Centres,
        groups: Groups,
    }

    fn grouped(features: &FeatureMatrix, groups: usize) -> Partition<'_> {
        let centres = Centres::find_in(features, Similarity::Cosine, groups, 0);
        let own = centres.nearest(features.rows(), |row| features.row(row), 1);
        Partition { features, groups: Groups::new(&own, centres.count()), centres }
    }

    /// Groups that a position looks at.
    fn near(partition: &Partition<'_>, position: usize, probes: usize, least: usize) -> Vec<usize> {
        let Partition { features, centres, groups } = partition;
        let pool = Pool::of_all(&groups.starts, 1, probes, least);
        let row = |at: usize| features.row(groups.order[at] as usize);
        let visits = centres.visits(&[pool], position..position + 1, row, &mut Room::new()).swap_remove(0);
        assert!(visits.iter().all(|(_, visitors)| visitors == [position]));
        visits.iter().map(|(group, _)| group).collect()
    }

    #[test]
    fn groups_that_are_near_have_near_numbers() {
        let mut features = FeatureMatrix::default();
        for row in 0..4000u32 {
            let angle = (row * 7919 % 4000) as f32 / 4000.0;
            features.append_row(&[angle.cos(), angle.sin()]);
        }
        let centres = Centres::find_in(&features, Similarity::Cosine, 64, 0);
        let angle = |group: usize| {
            let row = centres.vectors().row(group);
            f64::from(row[1].atan2(row[0]))
        };
        // One step on a quarter circle of 64 groups, not a jump across it.
        let steps: Vec<f64> = (1..64).map(|group| (angle(group) - angle(group - 1)).abs()).collect();
        assert!(steps.iter().sum::<f64>() < 4.0, "{steps:?}");
    }

    #[test]
    fn among_many_centres_nearly_every_row_finds_the_nearest() {
        let mut features = FeatureMatrix::default();
        for row in 0..20_000u32 {
            let at = |step: u32| (row.wrapping_mul(step) % 10_007) as f32 / 10_007.0 - 0.5;
            features.append_row(&[at(7919), at(104_729), at(1_299_709), 0.7]);
        }
        features.normalise_rows();
        let centres = Centres::find_in(&features, Similarity::Cosine, MANY_CENTRES + 100, 0);
        assert!(centres.stretches.is_some());
        let found = centres.nearest(features.rows(), |row| features.row(row), 1);
        // Looking for two looks at all.
        let truth = centres.nearest(features.rows(), |row| features.row(row), 2);
        let right = found.iter().zip(truth.chunks(2)).filter(|(found, truth)| **found == truth[0]).count();
        assert!(right >= 19_600, "{right}");
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
        let mut order = partition.groups.order.clone();
        order.sort_unstable();
        assert_eq!(order, (0..600).collect::<Vec<u32>>());
        for group in 0..6 {
            let positions = partition.groups.starts[group]..partition.groups.starts[group + 1];
            assert!(positions.clone().all(|at| near(&partition, at, 1, 0) == [group]));
            assert!(positions.clone().all(|at| near(&partition, at, 2, 0).len() == 2));
            // Six tight bundles: what stands together points the same way.
            let bundles: Vec<u32> = positions.map(|at| partition.groups.order[at] % 6).collect();
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
            let rows: usize =
                near.iter().map(|&g| partition.groups.starts[g + 1] - partition.groups.starts[g]).sum();
            assert!(rows >= 20, "row {}: {rows}", partition.groups.order[position]);
        }
    }
}
