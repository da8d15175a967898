//! The pruned graph, for many rows: rows are grouped, and each block of similar rows looks only at the groups near
//! it, in six bits first and then in full, as the screened search does with everything.

use super::partition::Partition;
use super::screened::{candidates, choose};
use super::{BestOf, NeighbourLists, Ranked};
use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::kernels::{PackedBytes, QuantisedRows, ScoreTile};
use crate::observer::{Observer, Stage, tell};
use crate::parameters::Similarity;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows that look for neighbours together.
const BLOCK: usize = 128;

/// Rows of a group looked at in one go.
const LOOK: usize = 576;

/// Share of the groups that each row has among its near ones. A block looks at those near to any of its rows.
const PROBED: f64 = 0.08;

/// Groups for so many rows: large enough that scoring the rows against the centres costs little.
fn groups(rows: usize) -> usize {
    ((rows as f64).sqrt() * 1.1) as usize
}

/// The `k` nearest rows of every row among the groups near it.
pub(super) fn find(
    features: &FeatureMatrix,
    k: usize,
    similarity: Similarity,
    seed: u64,
    observer: &dyn Observer,
) -> Result<NeighbourLists, Error> {
    let rows = features.rows();
    let groups = groups(rows).clamp(1, rows);
    let probes = ((groups as f64 * PROBED).ceil() as usize).clamp(1, groups);
    tell(observer, Stage::Neighbours, 0, rows as u64)?;
    let partition = Partition::new(features, similarity, groups, probes, seed);
    let quantised = QuantisedRows::in_order(features, similarity, &partition.order);

    let done = AtomicU64::new(0);
    let blocks: Vec<Vec<Vec<Ranked>>> = (0..rows.div_ceil(BLOCK))
        .into_par_iter()
        .with_max_len(1)
        .map_init(
            || (PackedBytes::new(), ScoreTile::new(), Vec::new(), Vec::new()),
            |(packed, tile, hits, scores), block| {
                let own = block * BLOCK..rows.min((block + 1) * BLOCK);
                packed.pack(&quantised, own.clone());
                let mut best = vec![BestOf::new(candidates(k), f32::NEG_INFINITY); own.len()];
                for group in partition.groups_near(own.clone()) {
                    for start in partition.group(group).step_by(LOOK) {
                        let looked = start..partition.group(group).end.min(start + LOOK);
                        tile.look(&quantised, looked.clone(), packed);
                        let thresholds: Vec<f32> = best.iter().map(BestOf::threshold).collect();
                        let nobody = vec![f32::INFINITY; looked.len()];
                        tile.collect_hits(1.0, &nobody, &thresholds, hits);
                        for hit in hits.iter() {
                            let (position, own_position) =
                                (looked.start + hit.row as usize, own.start + hit.packed_row as usize);
                            if position != own_position {
                                best[hit.packed_row as usize].consider(hit.score, partition.order[position]);
                            }
                        }
                    }
                }
                let lists = own
                    .clone()
                    .zip(best)
                    .map(|(position, best)| {
                        choose(
                            features,
                            partition.order[position] as usize,
                            &best.sorted(),
                            k,
                            similarity,
                            scores,
                        )
                    })
                    .collect();
                let so_far = done.fetch_add(own.len() as u64, Ordering::Relaxed);
                tell(observer, Stage::Neighbours, so_far, rows as u64)?;
                Ok(lists)
            },
        )
        .collect::<Result<_, Error>>()?;

    let mut positions = vec![0u32; rows];
    partition.order.iter().zip(0..).for_each(|(&row, position)| positions[row as usize] = position);
    let mut lists = NeighbourLists::with_capacity(rows, k);
    for &position in &positions {
        lists.push(&blocks[position as usize / BLOCK][position as usize % BLOCK], k);
    }
    Ok(lists)
}
