//! The pruned graph, for many rows: rows are grouped, and each row looks only at the groups near it, in six bits
//! first and then in full, as the screened search does with everything.

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
const BLOCK: usize = 512;

/// Share of the groups that each row looks at: the farther neighbours of a long list lie in more groups.
fn probed(k: usize) -> f64 {
    (0.085 + 0.0003 * k as f64).min(1.0)
}

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
    let probes = ((groups as f64 * probed(k)).ceil() as usize).clamp(1, groups);
    tell(observer, Stage::Neighbours, 0, rows as u64)?;
    let partition = Partition::new(features, similarity, groups, probes, seed);
    let quantised = QuantisedRows::in_order(features, similarity, &partition.order);

    let packed: Vec<PackedBytes> = (0..partition.groups())
        .into_par_iter()
        .map(|group| {
            let mut packed = PackedBytes::new();
            packed.pack(&quantised, partition.group(group));
            packed
        })
        .collect();

    let done = AtomicU64::new(0);
    let blocks: Vec<Vec<Vec<Ranked>>> = (0..rows.div_ceil(BLOCK))
        .into_par_iter()
        .with_max_len(1)
        .map_init(
            || (ScoreTile::new(), Vec::new(), Vec::new()),
            |(tile, hits, scores), block| {
                let own = block * BLOCK..rows.min((block + 1) * BLOCK);
                let mut best = vec![BestOf::new(candidates(k), f32::NEG_INFINITY); own.len()];
                for (group, visitors) in partition.visits(own.clone()) {
                    let members = partition.group(group);
                    tile.look(&quantised, visitors.iter().copied(), &packed[group]);
                    let thresholds: Vec<f32> =
                        visitors.iter().map(|at| best[at - own.start].threshold()).collect();
                    // Members look for themselves in their own block.
                    let nobody = vec![f32::INFINITY; members.len()];
                    tile.collect_hits(1.0, &thresholds, &nobody, hits);
                    for hit in hits.iter() {
                        let (visitor, member) =
                            (visitors[hit.row as usize], members.start + hit.packed_row as usize);
                        if visitor != member {
                            best[visitor - own.start].consider(hit.score, partition.order[member]);
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
