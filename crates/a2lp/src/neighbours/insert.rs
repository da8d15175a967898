//! Adding nodes to a finished graph. New nodes can only push old neighbours out, so it is enough to score
//! the new rows against all rows: the lists then equal a rebuilt graph bit for bit.

use super::{BestOf, ListMut, NeighbourLists, Ranked};
use crate::features::{FeatureMatrix, ROWS_PER_TASK};
use crate::kernels::{PackedRows, ScoreTile};
use crate::similarity::Similarity;
use rayon::prelude::*;

/// Inserts the rows of `anchors` from `first_new` on. Nodes are the rows of `base`, then of `anchors`;
/// `lists` covers all of them but the new ones, and afterwards all.
pub(crate) fn insert_nodes(
    lists: &mut NeighbourLists,
    base: &FeatureMatrix,
    anchors: &FeatureMatrix,
    first_new: usize,
    k: usize,
    similarity: Similarity,
) {
    let first_node = base.rows() + first_new;
    lists.searched = Some(base.rows());
    let mut packed = PackedRows::new();
    packed.pack(anchors.block(first_new..anchors.rows()), anchors.columns());

    // Old nodes take the new ones in; each task also collects the old nodes nearest to each new one.
    let found: Vec<Vec<BestOf>> = lists
        .lists_mut()
        .par_chunks_mut(ROWS_PER_TASK)
        .enumerate()
        .map_init(ScoreTile::new, |tile, (task, lists)| {
            let mut nearest = vec![BestOf::new(k, similarity.floor()); anchors.rows() - first_new];
            let start = task * ROWS_PER_TASK;
            let (in_base, in_anchors) =
                lists.split_at_mut(base.rows().saturating_sub(start).min(lists.len()));
            for (matrix, node, row, lists) in [
                (base, start, start, in_base),
                (anchors, start.max(base.rows()), start.max(base.rows()) - base.rows(), in_anchors),
            ] {
                if !lists.is_empty() {
                    tile.score(similarity.chain(), matrix.block(row..row + lists.len()), &packed);
                    take_in(tile, |row| (node + row) as u32, lists, first_node, similarity, &mut nearest);
                }
            }
            nearest
        })
        .collect();

    let mut nearest = vec![BestOf::new(k, similarity.floor()); anchors.rows() - first_new];
    for best in found {
        for (all, best) in nearest.iter_mut().zip(best) {
            best.sorted().into_iter().for_each(|r| all.offer(r));
        }
    }
    // The new nodes among themselves.
    for (new, nearest) in nearest.iter_mut().enumerate() {
        for other in (first_new..anchors.rows()).filter(|&other| other != first_new + new) {
            let accumulated = similarity.chain().of(anchors.row(first_new + new), anchors.row(other));
            let score = similarity.score(accumulated);
            if score > similarity.floor() {
                nearest.offer(Ranked::new(score, (base.rows() + other) as u32));
            }
        }
    }
    for nearest in nearest {
        lists.push(&nearest.sorted(), k);
    }
}

/// Offers the new nodes of a scored tile to the lists of its rows, and the rows to the new nodes. `number` tells the rows' numbers.
pub(crate) fn take_in(
    tile: &ScoreTile,
    number: impl Fn(usize) -> u32,
    lists: &mut [ListMut<'_>],
    first_new: usize,
    similarity: Similarity,
    nearest: &mut [BestOf],
) {
    for (row, first, scores) in tile.segments() {
        for (at, &accumulated) in (first..).zip(scores) {
            let score = similarity.score(accumulated);
            if score > similarity.floor() {
                lists[row].offer(Ranked::new(score, (first_new + at) as u32));
                nearest[at].consider(score, number(row));
            }
        }
    }
}
