//! The graph of a block: A + Aᵀ once, and S for the neighbours that anchors have left in every round.

use super::{BlockLists, SEGMENT};
use crate::affinity::degree;
use crate::similarity::Similarity;

/// No rank: the edge does not go in this direction.
pub const NO_RANK: u16 = u16::MAX;

/// An edge on its way to the row it points at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SentEdge {
    /// Position of the row that is listed.
    pub to: u32,
    /// Position of the row that lists it.
    pub from: u32,
    /// Its weight ε.
    pub weight: f32,
    /// Its place in the list, from 0.
    pub rank: u16,
}

/// An edge of a row to another: there as long as either list still has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// Position of the other row.
    pub column: u32,
    /// Its weight ε in one direction.
    pub weight: f32,
    /// Place of the other in the row's list, or [`NO_RANK`].
    pub rank: u16,
    /// Place of the row in the other's list, or [`NO_RANK`].
    pub rank_back: u16,
}

/// d^-½ of a row sum; 0 for an isolated node.
pub fn inverse_root(degree: f64) -> f64 {
    crate::affinity::inverse_root(degree)
}

/// Sorts edges by the node they lead to, and adds up the weights of those that lead to the same.
pub fn add_up(links: &mut Vec<(u32, f32)>) {
    links.sort_unstable_by_key(|link| link.0);
    links.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0.0 };
        same
    });
}

/// The edges of lists, by the row they point at. `first` is the position of the first list; `position` tells those of numbers.
pub fn sent_edges(
    lists: &BlockLists,
    first: usize,
    position: impl Fn(u32) -> usize,
    similarity: Similarity,
) -> Vec<SentEdge> {
    let mut edges = Vec::new();
    for row in 0..lists.rows() {
        for (rank, neighbour) in lists.of(row).enumerate() {
            let weight = similarity.weight(neighbour.score());
            if weight > 0.0 {
                edges.push(SentEdge {
                    to: position(neighbour.node()) as u32,
                    from: (first + row) as u32,
                    weight,
                    rank: rank as u16,
                });
            }
        }
    }
    edges.sort_unstable_by_key(|edge| (edge.to, edge.from));
    edges
}

/// The edges of the rows of a block in both directions: where each row's edges end, and the edges by ascending column. `own` are
/// the edges that the block's lists send; `incoming` those that point into it, from everywhere.
pub fn join_edges(
    first: usize,
    rows: usize,
    own: &[SentEdge],
    incoming: &[SentEdge],
) -> (Vec<u32>, Vec<Edge>) {
    let out = own.iter().map(|edge| {
        let listed = Edge { column: edge.to, weight: edge.weight, rank: edge.rank, rank_back: NO_RANK };
        (edge.from as usize - first, listed)
    });
    let back = incoming.iter().map(|edge| {
        let lists = Edge { column: edge.from, weight: edge.weight, rank: NO_RANK, rank_back: edge.rank };
        (edge.to as usize - first, lists)
    });
    let mut all: Vec<(usize, Edge)> = out.chain(back).collect();
    all.sort_unstable_by_key(|(row, edge)| (*row, edge.column, edge.rank));
    let mut edges: Vec<Edge> = Vec::with_capacity(all.len());
    let mut ends = vec![0u32; rows];
    let mut last = usize::MAX;
    for (row, edge) in all {
        match edges.last_mut() {
            // Of a pair that lists each other, the listed edge comes first: its rank is lower than none.
            Some(before) if last == row && before.column == edge.column => before.rank_back = edge.rank_back,
            _ => edges.push(edge),
        }
        last = row;
        ends[row] = edges.len() as u32;
    }
    for row in 1..rows {
        ends[row] = ends[row].max(ends[row - 1]);
    }
    (ends, edges)
}

/// S for the rows of a block. Columns are counted as the caller counts them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// Where the entries of each row end.
    pub ends: Vec<u32>,
    /// Column and sᵢⱼ, by ascending position.
    pub entries: Vec<(u32, f32)>,
}

impl Matrix {
    /// A + Aᵀ of the edges that are left, by ascending position, anchors last, and the row sums. `kept` tells how many neighbours the
    /// list of the row at a position still has; anchors are columns from `first_anchor` on.
    pub fn weights(
        ends: &[u32],
        edges: &[Edge],
        first: usize,
        kept: impl Fn(u32) -> u16,
        links: &[Vec<(u32, f32)>],
        first_anchor: u32,
    ) -> (Matrix, Vec<f64>) {
        let most = edges.len() + links.iter().map(Vec::len).sum::<usize>();
        let mut matrix = Matrix { ends: Vec::with_capacity(ends.len()), entries: Vec::with_capacity(most) };
        let mut degrees = Vec::with_capacity(ends.len());
        let mut start = 0;
        for (row, &end) in ends.iter().enumerate() {
            let before = matrix.entries.len();
            let own = kept((first + row) as u32);
            for edge in &edges[start..end as usize] {
                let listed = if edge.rank < own { edge.weight } else { 0.0 };
                let back = edge.rank_back != NO_RANK && edge.rank_back < kept(edge.column);
                let weight = listed + if back { edge.weight } else { 0.0 };
                if weight > 0.0 {
                    matrix.entries.push((edge.column, weight));
                }
            }
            start = end as usize;
            let anchors = links.get(row).into_iter().flatten();
            matrix.entries.extend(anchors.map(|&(anchor, weight)| (first_anchor + anchor, weight)));
            degrees.push(degree(&matrix.entries[before..]));
            matrix.ends.push(matrix.entries.len() as u32);
        }
        matrix.entries.shrink_to_fit();
        (matrix, degrees)
    }

    /// The entries of a row.
    pub fn row(&self, row: usize) -> &[(u32, f32)] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        &self.entries[start..self.ends[row] as usize]
    }

    /// Divides by the roots of the row sums, and puts other numbers in the place of positions. `scale` is d^-½ by position.
    pub fn normalise(&mut self, first: usize, scale: impl Fn(u32) -> f64, column: impl Fn(u32) -> u32) {
        let mut start = 0;
        for (row, &end) in self.ends.iter().enumerate() {
            let own = scale((first + row) as u32);
            for (position, value) in &mut self.entries[start..end as usize] {
                *value = (f64::from(*value) * (own * scale(*position))) as f32;
                *position = column(*position);
            }
            start = end as usize;
        }
    }

    /// Row sums of the anchors over this block: for every segment of it the sum of the weights of each anchor.
    pub fn anchor_degrees(links: &[Vec<(u32, f32)>], anchors: usize) -> Vec<Vec<f64>> {
        links
            .chunks(SEGMENT)
            .map(|segment| {
                let mut sums = vec![0f64; anchors];
                for &(anchor, weight) in segment.iter().flatten() {
                    sums[anchor as usize] += f64::from(weight);
                }
                sums
            })
            .collect()
    }
}
