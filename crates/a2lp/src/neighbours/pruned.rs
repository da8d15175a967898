//! The pruned graph, for many rows: rows are grouped, and each row looks only at the groups near it.

use super::grouped::{GroupSearch, GroupedRows, Held, LentRows, WANTED, least_visited};
use super::partition::{Centres, Groups, Pool, probe_sample, usual_groups};
use super::{NeighbourLists, Order, Room, Wanted, exact};
use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::kernels::{PackedBytes, QuantisedRows};
use crate::observer::{Observer, Stage, report_progress};
use crate::similarity::Similarity;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows that look for neighbours together: the more, the fewer times a group is read for its visitors, but every thread wants
/// some blocks. What is found does not depend on it.
fn block_size(rows: usize) -> usize {
    (rows / 64).clamp(512, 4096)
}

/// All rows in memory.
struct InMemory<'a> {
    features: &'a FeatureMatrix,
    order: &'a [u32],
    quantised: QuantisedRows,
    /// The groups of every pool.
    packed: Vec<Vec<PackedBytes>>,
}

impl GroupedRows for InMemory<'_> {
    type Failure = Error;

    fn number(&self, position: usize) -> u32 {
        self.order[position]
    }

    fn rows(&self, _: &mut dyn Iterator<Item = u32>) -> Result<LentRows<'_>, Error> {
        Ok(LentRows::All(self.features))
    }

    fn quantised(&self, _: &Range<usize>) -> Result<(Held<'_, QuantisedRows>, usize), Error> {
        Ok((Held::Borrowed(&self.quantised), 0))
    }

    fn packed(&self, pool: usize, group: usize, _: Range<usize>) -> Result<Held<'_, PackedBytes>, Error> {
        Ok(Held::Borrowed(&self.packed[pool][group]))
    }
}

/// The nearest rows of every row among the groups near it.
pub(super) fn find(
    features: &FeatureMatrix,
    wanted: Wanted,
    similarity: Similarity,
    seed: u64,
    observer: &dyn Observer,
) -> Result<NeighbourLists, Error> {
    let (rows, columns) = (features.rows(), features.columns());
    let begin = || report_progress(observer, Stage::Neighbours, 0, rows as u64);
    begin()?;
    let centres = Centres::find_in(features, similarity, usual_groups(rows), seed);
    begin()?;
    let own = centres.nearest(rows, |row| features.row(row), 1);
    begin()?;
    let groups = Groups::new(&own, centres.count());
    let sample = probe_sample(rows);
    let sampled = features.gathered(&sample.iter().map(|&row| row as u32).collect::<Vec<_>>());
    let bounds: Vec<(Vec<usize>, Vec<usize>)> =
        wanted.pools(rows).iter().map(|(pool, _)| groups.bounds_within(pool)).collect();
    let mut pools = Vec::with_capacity(bounds.len());
    for ((pool, k), (starts, ends)) in wanted.pools(rows).into_iter().zip(&bounds) {
        let truth = exact::find_for(features, &sample, &pool, k, similarity);
        let probes = centres.probes_for((&sampled, &sample), &truth, |row| own[row as usize], WANTED);
        begin()?;
        let least = least_visited(k, columns).min(pool.len());
        pools.push(Pool { starts, ends, k, probes, least });
    }
    drop((own, sampled));

    let order = groups.order;
    let quantised = QuantisedRows::in_order(features, similarity.chain(), &order);
    let pack = |pool: &Pool<'_>| {
        let pack = |group: usize| {
            let mut packed = PackedBytes::new();
            packed.pack(&quantised, pool.group(group));
            packed
        };
        (0..centres.count()).into_par_iter().map(pack).collect()
    };
    let packed: Vec<Vec<PackedBytes>> = pools.iter().map(pack).collect();
    let in_memory = InMemory { features, order: &order, quantised, packed };
    let size = block_size(rows);
    let search =
        GroupSearch { rows: &in_memory, centres: &centres, pools: &pools, columns, similarity, batch: size };
    let done = AtomicU64::new(0);
    let blocks: Vec<NeighbourLists> = (0..rows.div_ceil(size))
        .into_par_iter()
        .with_max_len(1)
        .map_init(Room::new, |room, block| {
            let own = block * size..rows.min((block + 1) * size);
            let lists = search.find(own.clone(), room)?;
            let so_far = done.fetch_add(own.len() as u64, Ordering::Relaxed);
            report_progress(observer, Stage::Neighbours, so_far, rows as u64)?;
            Ok(lists)
        })
        .collect::<Result<_, Error>>()?;
    drop(in_memory);
    Ok(NeighbourLists::from_blocks(&blocks, size, Some(Arc::new(Order::new(order))), wanted.most()))
}
