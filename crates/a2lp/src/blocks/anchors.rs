//! Anchors from the items of many blocks.

use super::{Neighbour, SEGMENT, add_up};
use crate::anchors::{Anchor, RowSum, feeds, weight_in_anchor};
use crate::neighbours::{BestOf, Ranked};
use crate::pseudo_labels::PseudoLabels;
use crate::similarity::Similarity;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// What a segment has of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassSum {
    /// The class.
    pub class: u32,
    /// The weighted sum of its rows.
    pub sum: Vec<f64>,
    /// The sum of the weights.
    pub weight: f64,
    /// Its items.
    pub items: u64,
}

/// The sums of all segments so far, for every class.
#[derive(Clone, Debug, PartialEq)]
pub struct AnchorSums(Vec<RowSum>);

impl AnchorSums {
    /// Nothing yet.
    pub fn new(classes: usize, columns: usize) -> Self {
        AnchorSums(vec![RowSum::new(columns); classes])
    }

    /// Adds the next segment: what it has of every class that has any items there.
    pub fn add(&mut self, segment: Vec<ClassSum>) {
        for ClassSum { class, sum, weight, items } in segment {
            self.0[class as usize].add(&RowSum { sum, weight, items: items as usize });
        }
    }
}

/// Which classes have items that feed their anchor, and whether any of those has a weight above 0.
pub fn weigh_items(pseudo: &PseudoLabels) -> Vec<bool> {
    let mut trusted = vec![false; pseudo.classes()];
    for item in 0..pseudo.len() {
        if let Some(class) = feeds(pseudo, item) {
            trusted[class as usize] |= pseudo.confidence()[item] > 0.0;
        }
    }
    trusted
}

/// The sums of a block, segment after segment. `items` are the rows of the block that are target items, in order; `trusted` tells the
/// classes whose entropy weights count.
pub fn anchor_sums(
    pseudo: &PseudoLabels,
    items: &[u32],
    rows: &[f32],
    columns: usize,
    trusted: &[bool],
) -> Vec<Vec<ClassSum>> {
    let block_rows = rows.len() / columns;
    (0..block_rows.div_ceil(SEGMENT))
        .into_par_iter()
        .map(|segment| {
            let bound = |segment: usize| items.partition_point(|&row| (row as usize) < segment * SEGMENT);
            let mut sums: Vec<Option<RowSum>> = vec![None; pseudo.classes()];
            for item in bound(segment)..bound(segment + 1) {
                if let Some(class) = feeds(pseudo, item) {
                    let weight = weight_in_anchor(pseudo, item, trusted[class as usize]);
                    let row = &rows[items[item] as usize * columns..][..columns];
                    sums[class as usize]
                        .get_or_insert_with(|| RowSum::new(columns))
                        .add_row(row, weight, 1.0);
                }
            }
            let present = sums.into_iter().enumerate().filter_map(|(class, sum)| Some((class as u32, sum?)));
            present
                .map(|(class, RowSum { sum, weight, items })| ClassSum {
                    class,
                    sum,
                    weight,
                    items: items as u64,
                })
                .collect()
        })
        .collect()
}

/// The anchors of all classes that have items.
pub fn make_anchors(sums: &AnchorSums, round: usize, unit: bool) -> Vec<Anchor> {
    let anchors = sums.0.iter().enumerate();
    anchors.filter_map(|(class, sum)| sum.anchor(class, round, None, unit)).collect()
}

/// All anchors and their neighbour lists.
#[derive(Clone, Debug)]
pub struct AnchorBlock {
    columns: usize,
    k: usize,
    similarity: Similarity,
    /// The number of the first anchor.
    first: u32,
    vectors: Vec<f32>,
    lists: Vec<Vec<Ranked>>,
}

impl AnchorBlock {
    /// No anchors, after so many rows.
    pub fn new(rows: u32, columns: usize, k: usize, similarity: Similarity) -> Self {
        AnchorBlock { columns, k, similarity, first: rows, vectors: Vec::new(), lists: Vec::new() }
    }

    /// Number of anchors.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// No anchors?
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.vectors.clear();
        self.lists.clear();
    }

    /// Adds anchors, of which the nearest rows are known. They also join the lists of the anchors before them.
    pub fn insert(&mut self, new: &[f32], nearest: Vec<Vec<Neighbour>>) {
        let old = self.len();
        self.vectors.extend_from_slice(new);
        let score = |a: usize, b: usize| {
            let row = |at: usize| &self.vectors[at * self.columns..][..self.columns];
            self.similarity.score(self.similarity.chain().of(row(a), row(b)))
        };
        let floor = self.similarity.floor();
        let count = old + nearest.len();
        let mut lists: Vec<BestOf> = Vec::with_capacity(count);
        for (at, known) in self
            .lists
            .drain(..)
            .chain(nearest.into_iter().map(|list| list.into_iter().map(|n| n.0).collect()))
            .enumerate()
        {
            let mut best = BestOf::new(self.k, floor);
            known.into_iter().for_each(|ranked| best.offer(ranked));
            // New anchors are new to everyone; old ones only to new anchors.
            let others = if at < old { old..count } else { 0..count };
            for other in others.filter(|&other| other != at) {
                let score = score(at, other);
                if score > floor {
                    best.offer(Ranked::new(score, self.first + other as u32));
                }
            }
            lists.push(best);
        }
        self.lists = lists.into_iter().map(BestOf::sorted).collect();
    }

    /// Rows that anchors list: the number of the row, the anchor, and the weight.
    pub fn listed_rows(&self) -> Vec<(u32, u32, f32)> {
        let entries = |(anchor, list): (usize, &Vec<Ranked>)| {
            let rows = list.iter().filter(|ranked| ranked.node() < self.first);
            let entry =
                |ranked: &Ranked| (ranked.node(), anchor as u32, self.similarity.weight(ranked.score()));
            rows.map(entry).filter(|entry| entry.2 > 0.0).collect::<Vec<_>>()
        };
        self.lists.iter().enumerate().flat_map(entries).collect()
    }

    /// A + Aᵀ among the anchors: for each, the others by ascending number, and the weights.
    pub fn between(&self) -> Vec<Vec<(u32, f32)>> {
        let mut rows: Vec<Vec<(u32, f32)>> = vec![Vec::new(); self.len()];
        for (a, list) in self.lists.iter().enumerate() {
            for ranked in list.iter().filter(|ranked| ranked.node() >= self.first) {
                let (b, weight) = (ranked.node() - self.first, self.similarity.weight(ranked.score()));
                if weight > 0.0 {
                    rows[a].push((b, weight));
                    rows[b as usize].push((a as u32, weight));
                }
            }
        }
        rows.iter_mut().for_each(add_up);
        rows
    }

    /// The lists and vectors as integers, to be stored.
    pub fn to_parts(&self) -> (Vec<f32>, Vec<Vec<u64>>) {
        let bits = |list: &Vec<Ranked>| list.iter().map(|ranked| ranked.to_bits()).collect();
        (self.vectors.clone(), self.lists.iter().map(bits).collect())
    }

    /// From those.
    pub fn restore(&mut self, vectors: Vec<f32>, lists: &[Vec<u64>]) {
        self.vectors = vectors;
        self.lists =
            lists.iter().map(|list| list.iter().map(|&bits| Ranked::from_bits(bits)).collect()).collect();
    }
}
