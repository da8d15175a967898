//! Neighbour lists of a block of rows.

use crate::features::ROWS_PER_TASK;
use crate::kernels::{PackedRows, ScoreTile};
use crate::neighbours::{BestOf, NeighbourLists, Ranked, take_in};
use crate::similarity::Similarity;
use rayon::prelude::*;

/// A neighbour: its score and its number. Ordered by score, of equal scores the lower number is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbour(pub(super) Ranked);

impl Neighbour {
    /// The number of the node.
    pub fn node(self) -> u32 {
        self.0.node()
    }

    /// The score by which it was ranked.
    pub fn score(self) -> f32 {
        self.0.score()
    }

    /// The weight ε of the edge to it.
    pub fn weight(self, similarity: Similarity) -> f32 {
        similarity.weight(self.0.score())
    }

    /// As one integer, to be stored.
    pub fn to_bits(self) -> u64 {
        self.0.to_bits()
    }

    /// From that integer.
    pub fn from_bits(bits: u64) -> Self {
        Neighbour(Ranked::from_bits(bits))
    }
}

/// The nearest nodes of every row of a block, nearest first.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockLists {
    pub(super) lists: NeighbourLists,
    k: usize,
}

impl BlockLists {
    pub(super) fn new(lists: NeighbourLists, k: usize) -> Self {
        BlockLists { lists, k }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.lists.nodes()
    }

    /// The neighbours of a row.
    pub fn of(&self, row: usize) -> impl ExactSizeIterator<Item = Neighbour> + '_ {
        self.lists.of(row).iter().map(|&ranked| Neighbour(ranked))
    }

    /// Neighbours of a row that are rows, not anchors: those are the first so many of what the search found.
    pub fn kept(&self, row: usize, rows_in_all: u32) -> usize {
        self.lists.of(row).iter().filter(|ranked| ranked.node() < rows_in_all).count()
    }

    /// The lists as integers: the length of each, and the neighbours of all.
    pub fn to_parts(&self) -> (Vec<u32>, Vec<u64>) {
        let rows = || (0..self.rows()).map(|row| self.lists.of(row));
        let lengths = rows().map(|list| list.len() as u32).collect();
        (lengths, rows().flatten().map(|ranked| ranked.to_bits()).collect())
    }

    /// From those integers, with room for `k` neighbours each. `None` if they do not fit together.
    pub fn from_parts(lengths: &[u32], neighbours: &[u64], k: usize) -> Option<Self> {
        let mut lists = NeighbourLists::with_capacity(lengths.len(), k);
        let mut rest = neighbours;
        let mut list: Vec<Ranked> = Vec::with_capacity(k);
        for &length in lengths {
            let (own, tail) = rest.split_at_checked(length as usize)?;
            rest = tail;
            list.clear();
            list.extend(own.iter().map(|&bits| Ranked::from_bits(bits)));
            if list.len() > k || list.windows(2).any(|pair| pair[0] <= pair[1]) {
                return None;
            }
            lists.push(&list, k);
        }
        rest.is_empty().then_some(BlockLists { lists, k })
    }

    /// Takes new anchors in where they are nearer than what the lists have. `rows` are the features of the block, `numbers` theirs;
    /// the anchors are numbered from `first_anchor` on. Returns the rows of the block that are nearest to each anchor.
    pub fn insert_anchors(
        &mut self,
        rows: &[f32],
        numbers: &[u32],
        anchors: &[f32],
        columns: usize,
        first_anchor: u32,
        similarity: Similarity,
    ) -> Vec<Vec<Neighbour>> {
        let count = anchors.len() / columns;
        let mut packed = PackedRows::new();
        packed.pack(anchors, columns);
        let k = self.k;
        let found: Vec<Vec<BestOf>> = self
            .lists
            .lists_mut()
            .par_chunks_mut(ROWS_PER_TASK)
            .enumerate()
            .map_init(ScoreTile::new, |tile, (task, lists)| {
                let mut nearest = vec![BestOf::new(k, similarity.floor()); count];
                let start = task * ROWS_PER_TASK;
                let rows = &rows[start * columns..(start + lists.len()) * columns];
                tile.score(similarity.chain(), rows, &packed);
                let number = |row: usize| numbers[start + row];
                take_in(tile, number, lists, first_anchor as usize, similarity, &mut nearest);
                nearest
            })
            .collect();
        let mut nearest = vec![BestOf::new(k, similarity.floor()); count];
        for best in found {
            nearest.iter_mut().zip(best).for_each(|(all, part)| all.absorb(part));
        }
        nearest.into_iter().map(|best| best.sorted().into_iter().map(Neighbour).collect()).collect()
    }
}
