//! All pairs, each scored once: blocks over the upper triangle, every pair offered to both of its rows. Nothing of
//! size n × n is held. Which pairs are best does not depend on the order they are met in, so neither block sizes
//! nor threads show in the result.

use super::BestOf;
use crate::error::Error;
use crate::kernels::{Hit, ScoreTile};
use crate::observer::{Observer, Stage, tell};
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

/// The best `k` other rows of every row, not yet sorted.
pub(super) fn best_of_all(
    scorer: &impl Scorer,
    k: usize,
    observer: &dyn Observer,
) -> Result<Vec<BestOf>, Error> {
    let rows = scorer.rows();
    let candidates: Vec<Mutex<Vec<BestOf>>> = (0..rows)
        .step_by(ROWS)
        .map(|start| Mutex::new(vec![BestOf::new(k, scorer.floor()); ROWS.min(rows - start)]))
        .collect();

    // Blocks are multiples of ROWS; small inputs get smaller ones so that the work still splits.
    let block = (rows.div_ceil(16 * rayon::current_num_threads())).clamp(1, BLOCK).next_multiple_of(ROWS);
    let total = rows as u64 * rows as u64 / 2;
    let done = AtomicU64::new(0);
    // The last block meets the most rows: longest work first.
    (0..rows.div_ceil(block)).into_par_iter().rev().with_max_len(1).try_for_each_init(
        || (scorer.packed(), ScoreTile::new(), Vec::new()),
        |(packed, tile, hits), b| {
            let columns = b * block..rows.min((b + 1) * block);
            scorer.pack(packed, columns.clone());
            // What these rows have found in blocks done before need not be beaten again.
            let mut column_best: Vec<BestOf> = columns
                .clone()
                .map(|column| BestOf::new(k, lock(&candidates[column / ROWS])[column % ROWS].threshold()))
                .collect();
            for (chunk, start) in (0..columns.end).step_by(ROWS).enumerate() {
                let range = start..columns.end.min(start + ROWS);
                scorer.score(range.clone(), packed, tile);
                offer_both(tile, &range, &columns, scorer, &candidates[chunk], &mut column_best, hits);
                let pairs = (range.len() * columns.len()) as u64;
                tell(
                    observer,
                    Stage::Neighbours,
                    done.fetch_add(pairs, Ordering::Relaxed).min(total),
                    total,
                )?;
            }
            for (best, column) in column_best.into_iter().zip(columns) {
                lock(&candidates[column / ROWS])[column % ROWS].absorb(best);
            }
            Ok(())
        },
    )?;
    let unlock =
        |group: Mutex<Vec<BestOf>>| group.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    Ok(candidates.into_iter().flat_map(unlock).collect())
}

/// Offers the pairs (row, column) of a scored tile with row < column to the row's and the column's candidates.
fn offer_both(
    tile: &ScoreTile,
    rows: &Range<usize>,
    columns: &Range<usize>,
    scorer: &impl Scorer,
    row_candidates: &Mutex<Vec<BestOf>>,
    column_best: &mut [BestOf],
    hits: &mut Vec<Hit>,
) {
    let column_thresholds: Vec<f32> = column_best.iter().map(BestOf::threshold).collect();
    let mut row_candidates = lock(row_candidates);
    let row_thresholds: Vec<f32> = row_candidates.iter().map(BestOf::threshold).collect();
    tile.collect_hits(scorer.sign(), &row_thresholds, &column_thresholds, hits);
    for hit in hits {
        let (row, column) = (rows.start + hit.row as usize, columns.start + hit.packed_row as usize);
        // Columns up to the row itself belong to the other half of the triangle.
        if row < column && hit.score > scorer.floor() {
            row_candidates[hit.row as usize].consider(hit.score, column as u32);
            column_best[hit.packed_row as usize].consider(hit.score, row as u32);
        }
    }
}

fn lock(candidates: &Mutex<Vec<BestOf>>) -> std::sync::MutexGuard<'_, Vec<BestOf>> {
    candidates.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
