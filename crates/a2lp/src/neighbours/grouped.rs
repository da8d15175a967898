//! One block of rows looks for neighbours among the groups near it, in six bits first and then in full, wherever the rows are
//! held. A search in memory and the searches of shards are made of this.

use super::partition::{Centres, Pool, Visits};
use super::screened::{Chosen, candidates, choose};
use super::{BestOf, NeighbourLists, Room};
use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::kernels::{PackedBytes, PackedRows, QuantisedRows, ScoreTile};
use crate::similarity::Similarity;
use std::ops::{Deref, Range};

/// The rows of a search in the order of their groups, wherever they are held.
pub(crate) trait GroupedRows: Sync {
    /// Rows may be out of reach.
    type Failure: From<Error> + Send;

    /// The number of the row at a position; it decides between equal scores.
    fn number(&self, position: usize) -> u32;
    /// The rows with these numbers, in full.
    fn rows(&self, numbers: &mut dyn Iterator<Item = u32>) -> Result<LentRows<'_>, Self::Failure>;
    /// The rows at these positions in six bits, and the position of the first that is there.
    fn quantised(&self, positions: &Range<usize>) -> Result<(Held<'_, QuantisedRows>, usize), Self::Failure>;
    /// The rows of a pool in a group, at these positions, prepared to be looked at.
    fn packed(
        &self,
        pool: usize,
        group: usize,
        positions: Range<usize>,
    ) -> Result<Held<'_, PackedBytes>, Self::Failure>;
}

/// Something that is borrowed, or was made to be lent.
pub(crate) enum Held<'a, T> {
    Borrowed(&'a T),
    Own(T),
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Held::Borrowed(held) => held,
            Held::Own(held) => held,
        }
    }
}

/// Rows by their numbers: all, or some.
pub(crate) enum LentRows<'a> {
    All(&'a FeatureMatrix),
    Some {
        /// Numbers, ascending, and where the rows are.
        numbers: Vec<(u32, u32)>,
        rows: FeatureMatrix,
    },
}

impl LentRows<'_> {
    /// One of the rows that were asked for.
    pub(crate) fn row(&self, number: u32) -> &[f32] {
        match self {
            LentRows::All(features) => features.row(number as usize),
            LentRows::Some { numbers, rows } => {
                let at = numbers.partition_point(|&(other, _)| other < number);
                rows.row(numbers[at].1 as usize)
            }
        }
    }
}

/// A row looks at this many times more rows than it proposes, at least.
const LEAST: usize = 4;

/// A row looks at this many rows, at least.
pub(crate) fn least_visited(k: usize, columns: usize) -> usize {
    LEAST * candidates(k, columns)
}

/// Share of the neighbours to be found, as far as a sample of rows can tell. A little more than 0.99, which then also
/// holds on other rows.
pub(crate) const WANTED: f64 = 0.994;

/// What all blocks of a search share.
pub(crate) struct GroupSearch<'a, R> {
    pub(crate) rows: &'a R,
    pub(crate) centres: &'a Centres,
    /// Where neighbours are taken from.
    pub(crate) pools: &'a [Pool<'a>],
    pub(crate) columns: usize,
    pub(crate) similarity: Similarity,
    /// Rows whose candidates are held in full at a time.
    pub(crate) batch: usize,
}

/// The rows that look for neighbours.
struct Own<'a> {
    positions: Range<usize>,
    numbers: Vec<u32>,
    rows: LentRows<'a>,
}

impl<R: GroupedRows> GroupSearch<'_, R> {
    /// The nearest rows of the rows at these positions, in order of position.
    pub(crate) fn find(&self, own: Range<usize>, room: &mut Room) -> Result<NeighbourLists, R::Failure> {
        let numbers: Vec<u32> = own.clone().map(|at| self.rows.number(at)).collect();
        let own_rows = self.rows.rows(&mut numbers.iter().copied())?;
        let row = |at: usize| own_rows.row(numbers[at - own.start]);
        let visits = self.centres.visits(self.pools, own.clone(), row, room);
        let own = Own { positions: own, numbers, rows: own_rows };
        let mut found = Vec::with_capacity(self.pools.len());
        for (pool, visits) in visits.iter().enumerate() {
            found.push(self.find_in(pool, &own, visits, room)?);
        }
        Ok(NeighbourLists::joined(found))
    }

    /// The nearest among the rows of a pool.
    fn find_in(
        &self,
        pool: usize,
        own: &Own<'_>,
        visits: &Visits,
        room: &mut Room,
    ) -> Result<NeighbourLists, R::Failure> {
        let k = self.pools[pool].k;
        let mut proposed = self.propose(pool, &own.positions, visits, room)?.into_iter();
        let mut lists = NeighbourLists::with_capacity(own.numbers.len(), k);
        for batch in own.numbers.chunks(self.batch) {
            let proposed: Vec<BestOf> = proposed.by_ref().take(batch.len()).collect();
            let others = self.rows.rows(&mut proposed.iter().flat_map(BestOf::nodes))?;
            let first = own.positions.start + lists.nodes();
            let choose = |(&number, best): (&u32, BestOf)| {
                let others = |number| others.row(number);
                choose(own.rows.row(number), others, best, k, self.similarity, &mut room.scores)
            };
            let mut chosen: Vec<Chosen> = batch.iter().zip(proposed).map(choose).collect();
            drop(others);
            if chosen.iter().any(|chosen| chosen.doubtful) {
                let doubtful: Vec<bool> = chosen.iter().map(|chosen| chosen.doubtful).collect();
                let second = self.look_again(pool, first, &doubtful, &own.rows, visits)?;
                let doubtful = chosen.iter_mut().zip(second).filter(|(chosen, _)| chosen.doubtful);
                doubtful.for_each(|(chosen, second)| chosen.best = second.sorted());
            }
            chosen.iter().for_each(|chosen| lists.push(&chosen.best, k));
        }
        Ok(lists)
    }

    /// What six bits propose.
    fn propose(
        &self,
        pool: usize,
        own: &Range<usize>,
        visits: &Visits,
        room: &mut Room,
    ) -> Result<Vec<BestOf>, R::Failure> {
        let Room { tile, hits, .. } = room;
        let proposals = candidates(self.pools[pool].k, self.columns);
        let mut best = vec![BestOf::new(proposals, f32::NEG_INFINITY); own.len()];
        let (quantised, first) = self.rows.quantised(own)?;
        for (group, visitors) in visits.iter() {
            let members = self.pools[pool].group(group);
            let packed = self.rows.packed(pool, group, members.clone())?;
            let thresholds: Vec<f32> = visitors.iter().map(|at| best[at - own.start].threshold()).collect();
            // Members look for themselves in their own block.
            let nobody = vec![f32::INFINITY; members.len()];
            let rows = visitors.iter().map(|at| at - first);
            tile.look(&quantised, rows, &packed, [&thresholds, &nobody], hits);
            for hit in hits.iter() {
                let (visitor, member) = (visitors[hit.row as usize], members.start + hit.packed_row as usize);
                if visitor != member {
                    best[visitor - own.start].consider(hit.score, self.rows.number(member));
                }
            }
        }
        Ok(best)
    }

    /// Scores in full what the doubtful rows from position `first` on have looked at: nearly equal rows, which six bits cannot
    /// order.
    fn look_again(
        &self,
        pool: usize,
        first: usize,
        doubtful: &[bool],
        own_rows: &LentRows<'_>,
        visits: &Visits,
    ) -> Result<Vec<BestOf>, R::Failure> {
        let similarity = self.similarity;
        let mut best = vec![BestOf::new(self.pools[pool].k, similarity.floor()); doubtful.len()];
        let (mut packed, mut tile) = (PackedRows::new(), ScoreTile::new());
        let (mut own_values, mut member_values) = (Vec::new(), Vec::new());
        let looks_again = |at: &usize| {
            at.checked_sub(first).and_then(|row| doubtful.get(row)).is_some_and(|&doubtful| doubtful)
        };
        for (group, visitors) in visits.iter() {
            let visitors: Vec<usize> = visitors.iter().copied().filter(looks_again).collect();
            if visitors.is_empty() {
                continue;
            }
            let members = self.pools[pool].group(group);
            own_values.clear();
            for &at in &visitors {
                own_values.extend_from_slice(own_rows.row(self.rows.number(at)));
            }
            packed.pack(&own_values, self.columns);
            let numbers = || members.clone().map(|at| self.rows.number(at));
            let rows = self.rows.rows(&mut numbers())?;
            member_values.clear();
            numbers().for_each(|number| member_values.extend_from_slice(rows.row(number)));
            tile.score(similarity.chain(), &member_values, &packed);
            for (at, first_visitor, scores) in tile.segments() {
                for (&visitor, &accumulated) in visitors[first_visitor..].iter().zip(scores) {
                    let score = similarity.score(accumulated);
                    if visitor != members.start + at && score > similarity.floor() {
                        best[visitor - first].consider(score, self.rows.number(members.start + at));
                    }
                }
            }
        }
        Ok(best)
    }
}
