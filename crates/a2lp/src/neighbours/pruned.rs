//! The pruned graph, for many rows: rows are grouped, and each row looks only at the groups near it, in six bits
//! first and then in full, as the screened search does with everything.

use super::partition::{Centres, Partition, Visits, usual_groups};
use super::screened::{Chosen, candidates, choose};
use super::{BestOf, NeighbourLists};
use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::kernels::{PackedBytes, PackedRows, QuantisedRows, ScoreTile};
use crate::observer::{Observer, Stage, report_progress};
use crate::similarity::Similarity;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows that look for neighbours together.
const BLOCK: usize = 512;

/// A row looks at this many times more rows than it proposes, at least.
const LEAST: usize = 4;

/// Share of the neighbours to be found, as far as a sample of rows can tell. A little more than 0.99, which then also
/// holds on other rows.
const WANTED: f64 = 0.994;

/// The `k` nearest rows of every row among the groups near it.
pub(super) fn find(
    features: &FeatureMatrix,
    k: usize,
    similarity: Similarity,
    seed: u64,
    observer: &dyn Observer,
) -> Result<NeighbourLists, Error> {
    let rows = features.rows();
    let proposals = candidates(k, features.columns());
    let begin = || report_progress(observer, Stage::Neighbours, 0, rows as u64);
    begin()?;
    let centres = Centres::find(features, similarity, usual_groups(rows), seed);
    begin()?;
    let probes = centres.probes_for(k, WANTED);
    begin()?;
    let partition = Partition::new(centres);
    let quantised = QuantisedRows::in_order(features, similarity.chain(), &partition.order);

    let packed: Vec<PackedBytes> = (0..partition.groups())
        .into_par_iter()
        .map(|group| {
            let mut packed = PackedBytes::new();
            packed.pack(&quantised, partition.group(group));
            packed
        })
        .collect();
    let done = AtomicU64::new(0);
    let blocks: Vec<NeighbourLists> = (0..rows.div_ceil(BLOCK))
        .into_par_iter()
        .with_max_len(1)
        .map_init(
            || (ScoreTile::new(), Vec::new(), Vec::new(), Vec::new()),
            |(tile, values, hits, scores), block| {
                let own = block * BLOCK..rows.min((block + 1) * BLOCK);
                let mut best = vec![BestOf::new(proposals, f32::NEG_INFINITY); own.len()];
                let visits = partition.visits(own.clone(), probes, LEAST * proposals, tile, values);
                for (group, visitors) in visits.iter() {
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
                let choose = |(position, best): (usize, BestOf)| {
                    choose(features, partition.order[position] as usize, best, k, similarity, scores)
                };
                let mut chosen: Vec<Chosen> = own.clone().zip(best).map(choose).collect();
                let doubtful: Vec<bool> = chosen.iter().map(|chosen| chosen.doubtful).collect();
                if doubtful.contains(&true) {
                    let second = look_again(features, &partition, &own, &visits, &doubtful, k, similarity);
                    chosen.iter_mut().zip(second).filter(|(chosen, _)| chosen.doubtful).for_each(
                        |(chosen, second)| {
                            chosen.best = second.sorted();
                        },
                    );
                }
                let mut lists = NeighbourLists::with_capacity(own.len(), k);
                chosen.iter().for_each(|chosen| lists.push(&chosen.best, k));
                let so_far = done.fetch_add(own.len() as u64, Ordering::Relaxed);
                report_progress(observer, Stage::Neighbours, so_far, rows as u64)?;
                Ok(lists)
            },
        )
        .collect::<Result<_, Error>>()?;
    Ok(in_row_order(&blocks, &partition.order, k))
}

/// The lists of all rows, from blocks in the order of the partition.
fn in_row_order(blocks: &[NeighbourLists], order: &[u32], k: usize) -> NeighbourLists {
    let mut positions = vec![0u32; order.len()];
    order.iter().zip(0..).for_each(|(&row, position)| positions[row as usize] = position);
    let mut lists = NeighbourLists::with_capacity(order.len(), k);
    for &position in &positions {
        lists.push(blocks[position as usize / BLOCK].of(position as usize % BLOCK), k);
    }
    lists
}

/// Scores in full what the doubtful rows among `own` have looked at: nearly equal rows, which six bits cannot order.
fn look_again(
    features: &FeatureMatrix,
    partition: &Partition<'_>,
    own: &Range<usize>,
    visits: &Visits,
    doubtful: &[bool],
    k: usize,
    similarity: Similarity,
) -> Vec<BestOf> {
    let mut best = vec![BestOf::new(k, similarity.floor()); own.len()];
    let (mut packed, mut tile) = (PackedRows::new(), ScoreTile::new());
    let row = |at: usize| features.row(partition.order[at] as usize);
    let (mut own_values, mut member_values) = (Vec::new(), Vec::new());
    for (group, visitors) in visits.iter() {
        let visitors: Vec<usize> = visitors.iter().copied().filter(|at| doubtful[at - own.start]).collect();
        if visitors.is_empty() {
            continue;
        }
        let members = partition.group(group);
        own_values.clear();
        visitors.iter().for_each(|&at| own_values.extend_from_slice(row(at)));
        packed.pack(&own_values, features.columns());
        member_values.clear();
        members.clone().for_each(|at| member_values.extend_from_slice(row(at)));
        tile.score(similarity.chain(), &member_values, &packed);
        for (at, first, scores) in tile.segments() {
            for (&visitor, &accumulated) in visitors[first..].iter().zip(scores) {
                let score = similarity.score(accumulated);
                if visitor != members.start + at && score > similarity.floor() {
                    best[visitor - own.start].consider(score, partition.order[members.start + at]);
                }
            }
        }
    }
    best
}
