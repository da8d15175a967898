//! The k most similar nodes of every node. Hands on [`NeighbourLists`].
//!
//! A list is ordered by score, ties by lower index, and the score of a pair is always the fixed-order chain
//! of [`kernels`](crate::kernels): whichever search proposes a neighbour, the lists come out the same.

mod centring;
pub(crate) mod cost;
mod exact;
mod grouped;
mod insert;
mod moved;
mod nndescent;
mod order;
mod partition;
mod pruned;
mod ranked;
mod screened;
mod search;

pub(crate) use centring::Centring;
pub(crate) use exact::look_at_all;
pub(crate) use grouped::{GroupSearch, GroupedRows, Held, LentRows, WANTED, least_visited};
pub(crate) use insert::{insert_nodes, take_in};
pub(crate) use order::{Numbering, Order};
pub(crate) use partition::{Centres, Groups, Pool, centre_sample, probe_sample, usual_groups};
pub(crate) use ranked::{BestOf, Ranked};

#[cfg(test)]
mod tests;

use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::kernels::{Hit, ScoreTile};
use crate::observer::Observer;
use crate::parameters::{CheckedParameters, GraphMethod};
use crate::similarity::Similarity;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// How the neighbours were found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphReport {
    /// The search that was used; never `Auto`.
    pub method: GraphMethod,
    /// Share of the true neighbours that were found, on a sample of rows; 1 by definition for an exact search.
    pub recall: f64,
    /// Rows in that sample.
    pub sampled_rows: usize,
    /// Share of rows whose lists are proved to be exact.
    pub certified: f64,
}

impl GraphReport {
    const EXACT: GraphReport =
        GraphReport { method: GraphMethod::Exact, recall: 1.0, sampled_rows: 0, certified: 1.0 };
}

/// The search and the share of neighbours it missed, for people.
impl fmt::Display for GraphReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} search", self.method.as_str())?;
        if self.method != GraphMethod::Exact {
            write!(f, " (recall {:.4} on {} sampled rows", self.recall, self.sampled_rows)?;
            if self.method == GraphMethod::Screened {
                write!(f, ", {:.0} % of the rows proved exact", 100.0 * self.certified)?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

/// Whom a row is to have for neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wanted {
    /// The nearest of all other rows.
    Nearest(usize),
    /// A number of the rows before `first_target`, and a number of the rows from there on.
    OfEach { first_target: usize, source: usize, target: usize },
}

impl Wanted {
    /// Most neighbours of a row.
    pub(crate) fn most(self) -> usize {
        match self {
            Wanted::Nearest(k) => k,
            Wanted::OfEach { source, target, .. } => source + target,
        }
    }

    /// The rows that neighbours are taken from, and how many from each pool.
    fn pools(self, rows: usize) -> Vec<(Range<usize>, usize)> {
        match self {
            Wanted::Nearest(k) => vec![(0..rows, k)],
            Wanted::OfEach { first_target, source, target } => {
                vec![(0..first_target, source), (first_target..rows, target)]
            }
        }
    }
}

/// Buffers of one worker.
pub(crate) struct Room {
    tile: ScoreTile,
    hits: Vec<Hit>,
    /// Rows, one after the other.
    values: Vec<f32>,
    scores: Vec<f32>,
}

impl Room {
    pub(crate) fn new() -> Self {
        Room { tile: ScoreTile::new(), hits: Vec::new(), values: Vec::new(), scores: Vec::new() }
    }
}

/// Rows on which an inexact search is compared with the truth.
pub(crate) const SAMPLE: usize = 128;

/// Finds the neighbours of rows whose features have changed since the lists `before` were made.
pub(crate) fn find_again(
    features: &FeatureMatrix,
    wanted: Wanted,
    similarity: Similarity,
    before: &NeighbourLists,
    parameters: &CheckedParameters,
    observer: &dyn Observer,
) -> Result<(NeighbourLists, GraphReport), Error> {
    match parameters.graph_method.resolve(features.rows(), features.columns(), wanted) {
        GraphMethod::Exact => {
            let lists = exact::find(features, wanted, similarity, Some(before), observer)?;
            Ok((lists, GraphReport::EXACT))
        }
        method => {
            if let (GraphMethod::Pruned, Wanted::Nearest(k)) = (method, wanted)
                && let Some(lists) = moved::find(features, k, similarity, before, observer)?
            {
                let (recall, sampled_rows) = sample_recall(features, &lists, wanted, similarity);
                return Ok((lists, GraphReport { method, recall, sampled_rows, certified: 0.0 }));
            }
            find_neighbours(features, wanted, similarity, method, parameters.seed, observer)
        }
    }
}

/// Several lists of neighbours from one pass over all pairs: of the rows themselves, or as if they had been centred.
pub(crate) fn find_together(
    features: &FeatureMatrix,
    wanted: &[(Wanted, Option<&Centring>)],
    similarity: Similarity,
    observer: &dyn Observer,
) -> Result<Vec<(NeighbourLists, GraphReport)>, Error> {
    check_rows(features)?;
    let lists = exact::find_together(features, wanted, similarity, observer)?;
    Ok(lists.into_iter().map(|lists| (lists, GraphReport::EXACT)).collect())
}

/// Finds the nearest other rows of every row. NN-Descent cannot look for some of each domain; the screened search then stands in.
pub(crate) fn find_neighbours(
    features: &FeatureMatrix,
    wanted: Wanted,
    similarity: Similarity,
    method: GraphMethod,
    seed: u64,
    observer: &dyn Observer,
) -> Result<(NeighbourLists, GraphReport), Error> {
    check_rows(features)?;
    let method = method.resolve(features.rows(), features.columns(), wanted);
    let (lists, certified) = match (method, wanted) {
        (GraphMethod::Pruned, _) => (pruned::find(features, wanted, similarity, seed, observer)?, 0.0),
        (GraphMethod::Nndescent, Wanted::Nearest(k)) => {
            (nndescent::find(features, k, similarity, seed, observer)?, 0.0)
        }
        (GraphMethod::Exact, _) => {
            return Ok((exact::find(features, wanted, similarity, None, observer)?, GraphReport::EXACT));
        }
        _ => screened::find(features, wanted, similarity, observer)?,
    };
    let (recall, sampled_rows) = sample_recall(features, &lists, wanted, similarity);
    Ok((lists, GraphReport { method, recall, sampled_rows, certified }))
}

/// Neighbours are numbered with 32 bits.
fn check_rows(features: &FeatureMatrix) -> Result<(), Error> {
    match u32::try_from(features.rows()) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::TooManyRows(features.rows())),
    }
}

impl GraphMethod {
    /// The search that will be made.
    pub(crate) fn resolve(self, rows: usize, columns: usize, wanted: Wanted) -> GraphMethod {
        let method = match self {
            GraphMethod::Auto => cost::choose(rows, columns, wanted.most()),
            chosen => chosen,
        };
        match (method, wanted) {
            (GraphMethod::Nndescent, Wanted::OfEach { .. }) => GraphMethod::Screened,
            _ => method,
        }
    }
}

/// Share of the true neighbours in the lists of evenly spaced rows, and the number of those rows.
fn sample_recall(
    features: &FeatureMatrix,
    lists: &NeighbourLists,
    wanted: Wanted,
    similarity: Similarity,
) -> (f64, usize) {
    let rows = features.rows();
    let sample: Vec<usize> = (0..SAMPLE.min(rows)).map(|at| at * rows / SAMPLE.min(rows)).collect();
    let mut truth: Vec<Vec<Ranked>> = vec![Vec::new(); sample.len()];
    for (pool, k) in wanted.pools(rows) {
        let nearest = exact::find_for(features, &sample, &pool, k, similarity);
        truth.iter_mut().zip(nearest).for_each(|(truth, nearest)| truth.extend(nearest));
    }
    (lists.share_of(&sample, &truth), sample.len())
}

/// Up to k neighbours of each node, nearest first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NeighbourLists {
    /// Slots of node i: `starts[i]..starts[i + 1]`.
    starts: Vec<usize>,
    /// How many of them are taken.
    lengths: Vec<u32>,
    slots: Vec<Ranked>,
    /// The number of first lists that take no further neighbours.
    closed: usize,
    /// An order of the searched rows in which neighbours stand close together, if the search knows one.
    order: Option<Arc<Order>>,
    /// Nodes that the search knew; nodes after them were inserted. `None` as long as none was.
    searched: Option<usize>,
}

impl NeighbourLists {
    pub(crate) fn new() -> Self {
        NeighbourLists {
            starts: vec![0],
            lengths: Vec::new(),
            slots: Vec::new(),
            closed: 0,
            order: None,
            searched: None,
        }
    }

    /// Lists there are now take no further neighbours.
    pub(crate) fn close(&mut self) {
        self.closed = self.nodes();
    }

    pub(crate) fn with_capacity(nodes: usize, k: usize) -> Self {
        let mut lists = Self::new();
        lists.starts.reserve_exact(nodes);
        lists.lengths.reserve_exact(nodes);
        lists.slots.reserve_exact(nodes * k);
        lists
    }

    /// One list after the other, each with room for `k`; each is freed once it is copied.
    fn from_lists(sorted: Vec<Vec<Ranked>>, k: usize) -> Self {
        let mut lists = Self::with_capacity(sorted.len(), k);
        sorted.into_iter().for_each(|list| lists.push(&list, k));
        lists
    }

    /// The lists of all rows, from blocks of so many in this order.
    fn from_blocks(blocks: &[NeighbourLists], size: usize, order: Option<Arc<Order>>, k: usize) -> Self {
        let rows = blocks.iter().map(Self::nodes).sum();
        let mut lists = Self::with_capacity(rows, k);
        let numbering = Numbering::new(order.as_ref());
        for row in 0..rows {
            let position = numbering.position_of(row);
            lists.push(blocks[position / size].of(position % size), k);
        }
        lists.order = order;
        lists
    }

    /// Share of the true neighbours of some rows that are listed.
    fn share_of(&self, rows: &[usize], truth: &[Vec<Ranked>]) -> f64 {
        let listed = |(&row, truth): (&usize, &Vec<Ranked>)| {
            truth.iter().filter(|neighbour| self.of(row).contains(neighbour)).count()
        };
        let found: usize = rows.iter().zip(truth).map(listed).sum();
        let all: usize = truth.iter().map(Vec::len).sum();
        if all > 0 { found as f64 / all as f64 } else { 1.0 }
    }

    /// The lists of several pools as one, for the same nodes.
    fn joined(mut pools: Vec<NeighbourLists>) -> Self {
        if pools.len() == 1 {
            return pools.swap_remove(0);
        }
        let nodes = pools.first().map_or(0, Self::nodes);
        let k = pools.iter().map(|pool| pool.slots.len().checked_div(nodes).unwrap_or(0)).sum();
        let mut lists = Self::with_capacity(nodes, k);
        let mut list = Vec::with_capacity(k);
        for node in 0..nodes {
            list.clear();
            pools.iter().for_each(|pool| list.extend_from_slice(pool.of(node)));
            list.sort_unstable_by(|a, b| b.cmp(a));
            lists.push(&list, k);
        }
        lists
    }

    /// The lists of every pool, joined.
    fn from_pools(mut pools: Vec<Vec<Vec<Ranked>>>, k: usize) -> Self {
        let mut lists = pools.swap_remove(0);
        for pool in pools {
            lists.par_iter_mut().zip(pool).for_each(|(list, more)| {
                list.extend(more);
                list.sort_unstable_by(|a, b| b.cmp(a));
            });
        }
        Self::from_lists(lists, k)
    }

    pub(crate) fn nodes(&self) -> usize {
        self.lengths.len()
    }

    /// Nodes that are no inserted ones.
    pub(crate) fn searched(&self) -> usize {
        self.searched.unwrap_or(self.nodes())
    }

    /// The order that the search found; nodes inserted later follow as they are numbered.
    pub(crate) fn order(&self) -> Option<&Arc<Order>> {
        self.order.as_ref()
    }

    /// Neighbours of a node, nearest first.
    pub(crate) fn of(&self, node: usize) -> &[Ranked] {
        &self.slots[self.starts[node]..][..self.lengths[node] as usize]
    }

    /// The lists of these nodes with their neighbours among each other only, at most so many, numbered from the first of them.
    pub(crate) fn within(&self, nodes: Range<usize>, most: usize) -> Self {
        let inside = |node: usize| {
            self.of(node).iter().filter(|ranked| nodes.contains(&(ranked.node() as usize))).take(most)
        };
        let k = nodes.clone().map(|node| inside(node).count()).max().unwrap_or(0);
        let mut within = Self::with_capacity(nodes.len(), k);
        let mut list = Vec::with_capacity(k);
        for node in nodes.clone() {
            let inside = inside(node);
            list.clear();
            list.extend(inside.map(|ranked| Ranked::new(ranked.score(), ranked.node() - nodes.start as u32)));
            within.push(&list, k);
        }
        within.order = self.order.as_ref().map(|order| Arc::new(order.within(nodes)));
        within
    }

    /// Adds a node with room for `k` neighbours; `list` is sorted, best first.
    pub(crate) fn push(&mut self, list: &[Ranked], k: usize) {
        debug_assert!(list.len() <= k && list.windows(2).all(|pair| pair[0] > pair[1]));
        self.slots.extend_from_slice(list);
        self.slots.resize(self.starts[self.nodes()] + k, Ranked::NOTHING);
        self.starts.push(self.slots.len());
        self.lengths.push(list.len() as u32);
    }

    /// Every list as something [`offer`](ListMut::offer) can be called on, in node order.
    pub(crate) fn lists_mut(&mut self) -> Vec<ListMut<'_>> {
        let mut rest = &mut self.slots[..];
        let mut lists = Vec::with_capacity(self.lengths.len());
        for (node, (bounds, length)) in self.starts.windows(2).zip(&mut self.lengths).enumerate() {
            let (slots, tail) = rest.split_at_mut(bounds[1] - bounds[0]);
            rest = tail;
            lists.push(ListMut { slots, length, closed: node < self.closed });
        }
        lists
    }
}

/// One node's list, open for better neighbours.
pub(crate) struct ListMut<'a> {
    slots: &'a mut [Ranked],
    length: &'a mut u32,
    closed: bool,
}

impl ListMut<'_> {
    /// Takes `candidate` in if it is nearer than the last one, which then drops out of a full list.
    pub(crate) fn offer(&mut self, candidate: Ranked) {
        let length = *self.length as usize;
        let full = length == self.slots.len();
        if self.closed || full && self.slots.last().is_none_or(|worst| *worst >= candidate) {
            return;
        }
        let at = self.slots[..length].partition_point(|kept| *kept > candidate);
        let end = if full { length } else { length + 1 };
        self.slots.copy_within(at..end - 1, at + 1);
        self.slots[at] = candidate;
        *self.length = end as u32;
    }
}
