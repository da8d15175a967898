//! All pairs, each scored once: blocks over the upper triangle, every pair offered to both of its rows. Nothing of
//! size n × n is held. Which pairs are best does not depend on the order they are met in, so neither block sizes
//! nor threads show in the result.

use super::{BestOf, Centring, Wanted};
use crate::error::Error;
use crate::kernels::{Hit, ScoreTile};
use crate::observer::{Observer, Stage, report_progress};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows scored against one packed block at a time; their candidates share a lock.
const ROWS: usize = 144;

/// Most rows in a packed block: enough that reading the other rows costs little next to scoring them.
const BLOCK: usize = 8 * ROWS;

/// Something that scores blocks of rows against each other.
pub(super) trait Scorer: Sync {
    /// A block of rows prepared for scoring.
    type Packed: Send;

    /// Number of rows.
    fn rows(&self) -> usize;
    /// An empty block.
    fn packed(&self) -> Self::Packed;
    /// Prepares the rows of `range`.
    fn pack(&self, packed: &mut Self::Packed, range: Range<usize>);
    /// Scores the rows of `range` against the prepared ones, for all rankings. Nothing to do if scores are not kept.
    fn score(&self, range: Range<usize>, packed: &Self::Packed, tile: &mut ScoreTile);
    /// Collects the pairs that reach the threshold of their row or of their prepared row.
    fn hits(
        &self,
        range: Range<usize>,
        packed: &Self::Packed,
        tile: &mut ScoreTile,
        thresholds: [&[f32]; 2],
        hits: &mut Vec<Hit>,
    );
    /// Pairs that do not score above this are not offered.
    fn floor(&self) -> f32;
}

/// One way to rank the other rows. A pass over all pairs serves several.
pub(super) struct Ranking<'a> {
    pub(super) wanted: Wanted,
    /// Scores that as many rows reach as are wanted of the first pool; nothing below is looked at.
    pub(super) reached: Option<&'a [f32]>,
    /// Ranks by the scores that centred rows would have.
    pub(super) centring: Option<&'a Centring>,
}

impl Ranking<'_> {
    /// By the scores of the rows themselves.
    pub(super) fn plain(wanted: Wanted) -> Self {
        Ranking { wanted, reached: None, centring: None }
    }
}

/// The best other rows of every row, not yet sorted: for each ranking, one list of rows for each pool that neighbours are
/// [`Wanted`] from.
pub(super) fn best_of_all(
    scorer: &impl Scorer,
    rankings: &[Ranking<'_>],
    observer: &dyn Observer,
) -> Result<Vec<Vec<Vec<BestOf>>>, Error> {
    let rows = scorer.rows();
    let slots = Slots::new(rankings, rows);
    let groups = slots.cut(ROWS);
    let candidates = no_candidates(scorer, rankings, &slots, &groups);

    // Blocks are multiples of ROWS; small inputs get smaller ones so that the work still splits.
    let block = (rows.div_ceil(16 * rayon::current_num_threads())).clamp(1, BLOCK).next_multiple_of(ROWS);
    let mut blocks = slots.cut(block);
    // The last block meets the most rows: longest work first.
    blocks.reverse();
    let total = rows as u64 * rows as u64 / 2;
    let done = AtomicU64::new(0);
    blocks.into_par_iter().with_max_len(1).try_for_each_init(
        || (scorer.packed(), ScoreTile::new(), ScoreTile::new(), Vec::new()),
        |(packed, tile, centred, hits), columns| {
            scorer.pack(packed, columns.clone());
            let own = groups.partition_point(|rows| rows.end <= columns.start);
            let own = own..groups.partition_point(|rows| rows.start < columns.end);
            // What these rows have found in blocks done before need not be beaten again.
            let mut column_best: Vec<Vec<BestOf>> = (0..slots.count())
                .map(|slot| {
                    let found = own.clone().flat_map(|group| {
                        lock(&candidates[group])[slot].iter().map(BestOf::threshold).collect::<Vec<_>>()
                    });
                    found.map(|threshold| BestOf::new(slots.wanted[slot], threshold)).collect()
                })
                .collect();
            for (group, candidates) in groups[..own.end].iter().zip(&candidates) {
                scorer.score(group.clone(), packed, tile);
                let mut row_best = lock(candidates);
                for (at, ranking) in rankings.iter().enumerate() {
                    let tile = match ranking.centring {
                        None => &mut *tile,
                        Some(centring) => {
                            centring.apply(tile, group, &columns, centred);
                            &mut *centred
                        }
                    };
                    // Rows get neighbours of the columns' pool, and columns of the rows'.
                    let row_best = &mut row_best[slots.of(at, columns.start)];
                    let column_best = &mut column_best[slots.of(at, group.start)];
                    let row_thresholds: Vec<f32> = row_best.iter().map(BestOf::threshold).collect();
                    let column_thresholds: Vec<f32> = column_best.iter().map(BestOf::threshold).collect();
                    let thresholds = [&row_thresholds[..], &column_thresholds];
                    scorer.hits(group.clone(), packed, tile, thresholds, hits);
                    offer_both(hits, group, &columns, scorer.floor(), row_best, column_best);
                }
                drop(row_best);
                let pairs = (group.len() * columns.len()) as u64;
                report_progress(
                    observer,
                    Stage::Neighbours,
                    done.fetch_add(pairs, Ordering::Relaxed).min(total),
                    total,
                )?;
            }
            for (slot, best) in column_best.into_iter().enumerate() {
                let mut best = best.into_iter();
                for group in own.clone() {
                    lock(&candidates[group])[slot]
                        .iter_mut()
                        .zip(&mut best)
                        .for_each(|(all, part)| all.absorb(part));
                }
            }
            Ok(())
        },
    )?;
    let mut best: Vec<Vec<BestOf>> = (0..slots.count()).map(|_| Vec::with_capacity(rows)).collect();
    for group in candidates {
        let group = group.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        best.iter_mut().zip(group).for_each(|(all, part)| all.extend(part));
    }
    let mut best = best.into_iter();
    Ok(slots.pools.iter().map(|pools| best.by_ref().take(pools.len()).collect()).collect())
}

/// The lists that a row keeps: one for every pool of every ranking.
struct Slots {
    /// The pools of every ranking, with the number of its first slot.
    pools: Vec<Vec<Range<usize>>>,
    first: Vec<usize>,
    /// How many rows each slot wants.
    wanted: Vec<usize>,
    /// Stretches of rows that lie in one pool of every ranking.
    stretches: Vec<Range<usize>>,
}

impl Slots {
    fn new(rankings: &[Ranking<'_>], rows: usize) -> Self {
        let mut slots =
            Slots { pools: Vec::new(), first: Vec::new(), wanted: Vec::new(), stretches: Vec::new() };
        let mut bounds = std::collections::BTreeSet::from([0, rows]);
        for ranking in rankings {
            slots.first.push(slots.wanted.len());
            let pools = ranking.wanted.pools(rows);
            bounds.extend(pools.iter().map(|(pool, _)| pool.start));
            slots.wanted.extend(pools.iter().map(|(_, wanted)| wanted));
            slots.pools.push(pools.into_iter().map(|(pool, _)| pool).collect());
        }
        let bounds: Vec<usize> = bounds.into_iter().collect();
        slots.stretches = bounds.windows(2).map(|pair| pair[0]..pair[1]).collect();
        slots
    }

    fn count(&self) -> usize {
        self.wanted.len()
    }

    /// The slot of a ranking for neighbours from the pool that holds this row.
    fn of(&self, ranking: usize, row: usize) -> usize {
        let pool = self.pools[ranking].iter().position(|pool| pool.contains(&row));
        self.first[ranking] + pool.unwrap_or(0)
    }

    /// All rows in pieces of at most `size`, none of which crosses from one stretch into another.
    fn cut(&self, size: usize) -> Vec<Range<usize>> {
        let pieces = |all: &Range<usize>| {
            let end = all.end;
            all.clone().step_by(size).map(move |start| start..end.min(start + size))
        };
        self.stretches.iter().flat_map(pieces).collect()
    }
}

/// Empty lists for every group of rows and every slot. A group shares a lock.
fn no_candidates(
    scorer: &impl Scorer,
    rankings: &[Ranking<'_>],
    slots: &Slots,
    groups: &[Range<usize>],
) -> Vec<Mutex<Vec<Vec<BestOf>>>> {
    let of_group = |rows: &Range<usize>| {
        let empty = |&wanted: &usize| vec![BestOf::new(wanted, scorer.floor()); rows.len()];
        let mut best: Vec<Vec<BestOf>> = slots.wanted.iter().map(empty).collect();
        for (ranking, &slot) in rankings.iter().zip(&slots.first) {
            if let Some(reached) = ranking.reached {
                let reached = reached[rows.clone()].iter();
                best[slot] = reached.map(|&score| BestOf::new(slots.wanted[slot], score)).collect();
            }
        }
        Mutex::new(best)
    };
    groups.iter().map(of_group).collect()
}

/// Offers pairs (row, column) with row < column to the row's and the column's candidates.
fn offer_both(
    hits: &[Hit],
    rows: &Range<usize>,
    columns: &Range<usize>,
    floor: f32,
    row_best: &mut [BestOf],
    column_best: &mut [BestOf],
) {
    for hit in hits {
        let (row, column) = (rows.start + hit.row as usize, columns.start + hit.packed_row as usize);
        // Columns up to the row itself belong to the other half of the triangle.
        if row < column && hit.score > floor {
            row_best[hit.row as usize].consider(hit.score, column as u32);
            column_best[hit.packed_row as usize].consider(hit.score, row as u32);
        }
    }
}

fn lock<T>(candidates: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    candidates.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
