//! All pairs, each scored once: blocks over the upper triangle, every pair offered to both of its rows. Nothing of
//! size n × n is held. Which pairs are best does not depend on the order they are met in, so neither block sizes
//! nor threads show in the result.

use super::{BestOf, Wanted};
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
    /// Scores the rows of `range` against the prepared ones.
    fn score(&self, range: Range<usize>, packed: &Self::Packed, tile: &mut ScoreTile);
    /// −1 when the tile holds distances, which are better when smaller.
    fn sign(&self) -> f32;
    /// Pairs that do not score above this are not offered.
    fn floor(&self) -> f32;
}

/// The best other rows of every row, not yet sorted: one list of rows for each pool that neighbours are [`Wanted`] from.
/// Where scores are known that as many rows reach as are wanted of the first pool, `reached` has them, and nothing below
/// is looked at.
pub(super) fn best_of_all(
    scorer: &impl Scorer,
    wanted: Wanted,
    reached: Option<&[f32]>,
    observer: &dyn Observer,
) -> Result<Vec<Vec<BestOf>>, Error> {
    let rows = scorer.rows();
    let pools = wanted.pools(rows);
    let groups = cut_pools(&pools, ROWS);
    let candidates = no_candidates(scorer, &pools, &groups, reached);

    // Blocks are multiples of ROWS; small inputs get smaller ones so that the work still splits.
    let block = (rows.div_ceil(16 * rayon::current_num_threads())).clamp(1, BLOCK).next_multiple_of(ROWS);
    let mut blocks = cut_pools(&pools, block);
    // The last block meets the most rows: longest work first.
    blocks.reverse();
    let total = rows as u64 * rows as u64 / 2;
    let done = AtomicU64::new(0);
    blocks.into_par_iter().with_max_len(1).try_for_each_init(
        || (scorer.packed(), ScoreTile::new(), Vec::new()),
        |(packed, tile, hits), (column_pool, columns)| {
            scorer.pack(packed, columns.clone());
            let own = groups.partition_point(|(_, rows)| rows.end <= columns.start);
            let own = own..groups.partition_point(|(_, rows)| rows.start < columns.end);
            // What these rows have found in blocks done before need not be beaten again.
            let mut column_best: Vec<Vec<BestOf>> = (0..pools.len())
                .map(|pool| {
                    let found = own.clone().flat_map(|group| {
                        lock(&candidates[group])[pool].iter().map(BestOf::threshold).collect::<Vec<_>>()
                    });
                    found.map(|threshold| BestOf::new(pools[pool].1, threshold)).collect()
                })
                .collect();
            for ((row_pool, group), candidates) in groups[..own.end].iter().zip(&candidates) {
                scorer.score(group.clone(), packed, tile);
                let rows = &mut lock(candidates)[column_pool];
                offer_both(tile, group, &columns, scorer, rows, &mut column_best[*row_pool], hits);
                let pairs = (group.len() * columns.len()) as u64;
                report_progress(
                    observer,
                    Stage::Neighbours,
                    done.fetch_add(pairs, Ordering::Relaxed).min(total),
                    total,
                )?;
            }
            for (pool, best) in column_best.into_iter().enumerate() {
                let mut best = best.into_iter();
                for group in own.clone() {
                    lock(&candidates[group])[pool]
                        .iter_mut()
                        .zip(&mut best)
                        .for_each(|(all, part)| all.absorb(part));
                }
            }
            Ok(())
        },
    )?;
    let mut best: Vec<Vec<BestOf>> = pools.iter().map(|_| Vec::with_capacity(rows)).collect();
    for group in candidates {
        let group = group.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        best.iter_mut().zip(group).for_each(|(all, part)| all.extend(part));
    }
    Ok(best)
}

/// Empty lists for every group of rows and every pool. A group lies in one pool and shares a lock.
fn no_candidates(
    scorer: &impl Scorer,
    pools: &[(Range<usize>, usize)],
    groups: &[(usize, Range<usize>)],
    reached: Option<&[f32]>,
) -> Vec<Mutex<Vec<Vec<BestOf>>>> {
    let of_group = |(_, rows): &(usize, Range<usize>)| {
        let mut best: Vec<Vec<BestOf>> =
            pools.iter().map(|(_, k)| vec![BestOf::new(*k, scorer.floor()); rows.len()]).collect();
        if let Some(reached) = reached {
            let reached = reached[rows.clone()].iter().map(|&score| BestOf::new(pools[0].1, score));
            best[0] = reached.collect();
        }
        Mutex::new(best)
    };
    groups.iter().map(of_group).collect()
}

/// All pools in pieces of at most `size` rows, each with the number of its pool.
fn cut_pools(pools: &[(Range<usize>, usize)], size: usize) -> Vec<(usize, Range<usize>)> {
    let pieces = pools.iter().enumerate();
    pieces.flat_map(|(pool, (all, _))| cut(all, size).map(move |rows| (pool, rows))).collect()
}

/// A range in pieces of at most `size`.
fn cut(range: &Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = range.end;
    range.clone().step_by(size).map(move |start| start..end.min(start + size))
}

/// Offers the pairs (row, column) of a scored tile with row < column to the row's and the column's candidates.
fn offer_both(
    tile: &ScoreTile,
    rows: &Range<usize>,
    columns: &Range<usize>,
    scorer: &impl Scorer,
    row_best: &mut [BestOf],
    column_best: &mut [BestOf],
    hits: &mut Vec<Hit>,
) {
    let row_thresholds: Vec<f32> = row_best.iter().map(BestOf::threshold).collect();
    let column_thresholds: Vec<f32> = column_best.iter().map(BestOf::threshold).collect();
    tile.collect_hits(scorer.sign(), &row_thresholds, &column_thresholds, hits);
    for hit in hits {
        let (row, column) = (rows.start + hit.row as usize, columns.start + hit.packed_row as usize);
        // Columns up to the row itself belong to the other half of the triangle.
        if row < column && hit.score > scorer.floor() {
            row_best[hit.row as usize].consider(hit.score, column as u32);
            column_best[hit.packed_row as usize].consider(hit.score, row as u32);
        }
    }
}

fn lock<T>(candidates: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    candidates.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
