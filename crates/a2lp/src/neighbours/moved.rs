//! Neighbours of rows whose features have moved: those listed before, and the neighbours of those, are likely to be near now.
//!
//! Six bits propose among them and full scores choose, as in the other searches. That costs a few hundred comparisons a row,
//! whatever the number of rows. A sample of rows tells whether it was enough; if not, the caller searches from nothing. A second
//! pass over what the first has found would add next to nothing.

use super::screened::{candidates, choose};
use super::{BestOf, NeighbourLists, Numbering, Ranked, Room, exact};
use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::kernels::QuantisedRows;
use crate::observer::{Observer, Stage, report_progress};
use crate::similarity::Similarity;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Share of the neighbours that must be found: less than a search from nothing finds, because the view that asks is one of three
/// and moves again soon.
const ENOUGH: f64 = 0.985;

/// Rows on which that is decided.
const SAMPLE: usize = 192;

/// Rows that look for neighbours together.
const BLOCK: usize = 512;

/// The `k` nearest other rows of every row, or `None` if too many of them cannot be found from the lists of `before`.
pub(super) fn find(
    features: &FeatureMatrix,
    k: usize,
    similarity: Similarity,
    before: &NeighbourLists,
    observer: &dyn Observer,
) -> Result<Option<NeighbourLists>, Error> {
    let rows = features.rows();
    let begin = || report_progress(observer, Stage::Neighbours, 0, rows as u64);
    begin()?;
    let sample: Vec<usize> =
        (0..SAMPLE.min(rows)).map(|at| (2 * at + 1) * rows / (2 * SAMPLE.min(rows))).collect();
    let truth = exact::find_for(features, &sample, &(0..rows), k, similarity);
    begin()?;
    let numbering = Numbering::new(before.order());
    let order: Vec<u32> = (0..rows).map(|position| numbering.node_at(position) as u32).collect();
    let search = Moved {
        features,
        k,
        similarity,
        quantised: QuantisedRows::in_order(features, similarity.chain(), &order),
        numbering,
    };
    let lists = search.pass(before, observer)?;
    Ok((lists.share_of(&sample, &truth) >= ENOUGH).then_some(lists))
}

struct Moved<'a> {
    features: &'a FeatureMatrix,
    k: usize,
    similarity: Similarity,
    /// The rows in six bits, by position.
    quantised: QuantisedRows,
    numbering: Numbering,
}

/// Who lists whom, by position: rows of the same length, filled up with [`NOBODY`].
struct Known {
    most: usize,
    positions: Vec<u32>,
}

/// No position.
const NOBODY: u32 = u32::MAX;

impl Known {
    fn of(&self, position: usize) -> impl Iterator<Item = usize> {
        let own = &self.positions[position * self.most..][..self.most];
        own.iter().take_while(|&&other| other != NOBODY).map(|&other| other as usize)
    }
}

impl Moved<'_> {
    /// The neighbours in the lists.
    fn listed(&self, lists: &NeighbourLists) -> Known {
        let mut positions = vec![NOBODY; self.features.rows() * self.k];
        positions.par_chunks_exact_mut(self.k).enumerate().with_min_len(BLOCK).for_each(|(position, own)| {
            let list = lists.of(self.numbering.node_at(position));
            for (slot, neighbour) in own.iter_mut().zip(list) {
                *slot = self.numbering.position_of(neighbour.node() as usize) as u32;
            }
        });
        Known { most: self.k, positions }
    }

    /// For every row, up to k rows that list it: the first by position.
    fn listed_by(&self, listed: &Known) -> Known {
        let rows = self.features.rows();
        let mut positions = vec![NOBODY; rows * self.k];
        // Every piece looks through all lists for its own rows.
        let piece = rows.div_ceil(4 * rayon::current_num_threads()).max(BLOCK);
        positions.par_chunks_mut(piece * self.k).enumerate().for_each(|(at, own)| {
            let first = at * piece;
            let mut counts = vec![0usize; own.len() / self.k];
            for (position, list) in listed.positions.chunks_exact(self.k).enumerate() {
                for &other in list {
                    let row = (other as usize).wrapping_sub(first);
                    if row < counts.len() && counts[row] < self.k {
                        own[row * self.k + counts[row]] = position as u32;
                        counts[row] += 1;
                    }
                }
            }
        });
        Known { most: self.k, positions }
    }

    /// The best among the rows of `lists`, the rows that list them, and what those list.
    fn pass(&self, lists: &NeighbourLists, observer: &dyn Observer) -> Result<NeighbourLists, Error> {
        let rows = self.features.rows();
        let listed = self.listed(lists);
        let listed_by = self.listed_by(&listed);
        let done = AtomicU64::new(0);
        let blocks: Vec<NeighbourLists> = (0..rows.div_ceil(BLOCK))
            .into_par_iter()
            .with_max_len(1)
            .map_init(
                || (vec![NOBODY; rows], Vec::new(), Room::new()),
                |(met_by, met, room), block| {
                    let own = block * BLOCK..rows.min((block + 1) * BLOCK);
                    let so_far = done.fetch_add(own.len() as u64, Ordering::Relaxed);
                    report_progress(observer, Stage::Neighbours, so_far, rows as u64)?;
                    let mut found = NeighbourLists::with_capacity(own.len(), self.k);
                    for position in own {
                        met.clear();
                        met_by[position] = position as u32;
                        let mut meet = |other: usize| {
                            if std::mem::replace(&mut met_by[other], position as u32) != position as u32 {
                                met.push(other as u32);
                            }
                        };
                        for near in listed.of(position).chain(listed_by.of(position)) {
                            meet(near);
                            listed.of(near).for_each(&mut meet);
                        }
                        found.push(&self.nearest(position, met, room), self.k);
                    }
                    Ok(found)
                },
            )
            .collect::<Result<_, Error>>()?;
        Ok(NeighbourLists::from_blocks(&blocks, BLOCK, lists.order().cloned(), self.k))
    }

    /// The nearest of what the row at a position has met.
    fn nearest(&self, position: usize, met: &[u32], room: &mut Room) -> Vec<Ranked> {
        let Room { values, scores, .. } = room;
        let number = |position: &u32| self.numbering.node_at(*position as usize) as u32;
        let others = |number: u32| self.features.row(number as usize);
        let row = self.features.row(self.numbering.node_at(position));
        self.quantised.scores_of(position, met, values);
        let mut proposed = BestOf::new(candidates(self.k, self.features.columns()), f32::NEG_INFINITY);
        met.iter().zip(&*values).for_each(|(other, &score)| proposed.consider(score, number(other)));
        let chosen = choose(row, others, proposed, self.k, self.similarity, scores);
        if !chosen.doubtful {
            return chosen.best;
        }
        // Nearly equal rows, which six bits cannot order.
        self.similarity.chain().of_each(row, met.iter().map(|other| others(number(other))), scores);
        let mut best = BestOf::new(self.k, self.similarity.floor());
        for (other, &accumulated) in met.iter().zip(&*scores) {
            let score = self.similarity.score(accumulated);
            if score > self.similarity.floor() {
                best.consider(score, number(other));
            }
        }
        best.sorted()
    }
}
