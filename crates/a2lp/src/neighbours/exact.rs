//! The exact k-nearest-neighbour graph: every pair is scored once, in blocks over the upper triangle, and
//! offered to both of its rows. Nothing of size n × n is held.

use super::{BestOf, NeighbourLists};
use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::kernels::{Hit, PackedRows, ScoreTile};
use crate::observer::{Observer, Stage, tell};
use crate::parameters::Similarity;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows scored against one packed block at a time; their candidates share a lock.
const ROWS: usize = 144;

/// Most rows in a packed block: enough that reading the other rows costs little next to scoring them.
const BLOCK: usize = 8 * ROWS;

/// Finds the `k` nearest other rows of every row.
pub(crate) fn find_neighbours(
    features: &FeatureMatrix,
    k: usize,
    similarity: Similarity,
    observer: &dyn Observer,
) -> Result<NeighbourLists, Error> {
    let rows = features.rows();
    if u32::try_from(rows).is_err() {
        return Err(Error::TooManyRows(rows));
    }
    let candidates: Vec<Mutex<Vec<BestOf>>> = (0..rows)
        .step_by(ROWS)
        .map(|start| Mutex::new(vec![BestOf::new(k, similarity.floor()); ROWS.min(rows - start)]))
        .collect();

    // Blocks are multiples of ROWS; small inputs get smaller ones so that the work still splits.
    let block = (rows.div_ceil(16 * rayon::current_num_threads())).clamp(1, BLOCK).next_multiple_of(ROWS);
    let total = rows as u64 * rows as u64 / 2;
    let done = AtomicU64::new(0);
    // The last block meets the most rows: longest work first.
    (0..rows.div_ceil(block)).into_par_iter().rev().with_max_len(1).try_for_each_init(
        || (PackedRows::new(), ScoreTile::new(), Vec::new()),
        |(packed, tile, hits), b| {
            let columns = b * block..rows.min((b + 1) * block);
            packed.pack(features.block(columns.clone()), features.columns());
            // What these rows have found in blocks done before need not be beaten again.
            let mut column_best: Vec<BestOf> = columns
                .clone()
                .map(|column| BestOf::new(k, lock(&candidates[column / ROWS])[column % ROWS].threshold()))
                .collect();
            for (chunk, start) in (0..columns.end).step_by(ROWS).enumerate() {
                let range = start..columns.end.min(start + ROWS);
                tile.score(similarity.chain(), features.block(range.clone()), packed);
                offer_both(tile, &range, &columns, similarity, &candidates[chunk], &mut column_best, hits);
                let pairs = (range.len() * columns.len()) as u64;
                tell(
                    observer,
                    Stage::Neighbours,
                    done.fetch_add(pairs, Ordering::Relaxed).min(total),
                    total,
                )?;
            }
            for (best, column) in column_best.into_iter().zip(columns) {
                let mut rows = lock(&candidates[column / ROWS]);
                best.sorted().into_iter().for_each(|r| rows[column % ROWS].offer(r));
            }
            Ok(())
        },
    )?;

    let mut lists = NeighbourLists::with_capacity(rows, k);
    for group in candidates {
        let group = group.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        for list in group.into_par_iter().map(BestOf::sorted).collect::<Vec<_>>() {
            lists.push(&list, k);
        }
    }
    Ok(lists)
}

/// Offers the pairs (row, column) of a scored tile with row < column to the row's and the column's candidates.
fn offer_both(
    tile: &ScoreTile,
    rows: &Range<usize>,
    columns: &Range<usize>,
    similarity: Similarity,
    row_candidates: &Mutex<Vec<BestOf>>,
    column_best: &mut [BestOf],
    hits: &mut Vec<Hit>,
) {
    let column_thresholds: Vec<f32> = column_best.iter().map(BestOf::threshold).collect();
    let mut row_candidates = lock(row_candidates);
    let row_thresholds: Vec<f32> = row_candidates.iter().map(BestOf::threshold).collect();
    tile.collect_hits(similarity.score(1.0), &row_thresholds, &column_thresholds, hits);
    for hit in hits {
        let (row, column) = (rows.start + hit.row as usize, columns.start + hit.packed_row as usize);
        // Columns up to the row itself belong to the other half of the triangle.
        if row < column && hit.score > similarity.floor() {
            row_candidates[hit.row as usize].consider(hit.score, column as u32);
            column_best[hit.packed_row as usize].consider(hit.score, row as u32);
        }
    }
}

fn lock(candidates: &Mutex<Vec<BestOf>>) -> std::sync::MutexGuard<'_, Vec<BestOf>> {
    candidates.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
