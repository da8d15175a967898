//! The k-nearest-neighbour graph as a compressed sparse matrix, in blocks of rows.

use super::{Affinity, Edges, inverse_root};
use crate::error::Error;
use crate::features::SEGMENT;
use crate::kernels::{Loops, vectorised};
use crate::neighbours::{NeighbourLists, Numbering, Ranked};
use crate::similarity::Similarity;
use rayon::prelude::*;
use std::ops::Range;

/// Rows in compressed form, columns ascending; values are sᵢⱼ. Rows and columns are positions.
pub(super) struct SparseGraph {
    blocks: Vec<Block>,
    layout: Layout,
    /// Nodes that were searched for; the rows of those after them, which may be long, are summed up in segments.
    searched: usize,
}

/// Consecutive rows: row r of the block has the entries `starts[r]..starts[r + 1]`.
struct Block {
    starts: Vec<usize>,
    entries: Vec<(u32, f32)>,
}

impl Block {
    fn row(&self, row: usize) -> &[(u32, f32)] {
        &self.entries[self.starts[row]..self.starts[row + 1]]
    }
}

/// How nodes are cut into blocks of 2^shift rows: enough blocks to share the work out, few enough to send entries from
/// each to each.
#[derive(Clone, Copy)]
struct Layout {
    nodes: usize,
    shift: u32,
}

impl Layout {
    fn new(nodes: usize) -> Self {
        Layout { nodes, shift: nodes.div_ceil(128).max(64).next_power_of_two().ilog2() }
    }

    fn blocks(self) -> usize {
        self.nodes.div_ceil(1 << self.shift)
    }

    fn rows(self, block: usize) -> Range<usize> {
        block << self.shift..self.nodes.min((block + 1) << self.shift)
    }

    fn block_of(self, node: usize) -> usize {
        node >> self.shift
    }
}

/// A directed edge on its way to the node it points at.
#[derive(Clone, Copy)]
struct Edge {
    from: u32,
    to: u32,
    weight: f32,
}

/// A + Aᵀ of the lists, normalised. A mutual pair weighs 2ε, a one-way pair ε.
pub(crate) fn symmetrise(lists: &NeighbourLists, similarity: Similarity) -> Result<Affinity<'static>, Error> {
    let layout = Layout::new(lists.nodes());
    let directed = Directed { lists, similarity, numbering: Numbering::new(lists.order()) };
    let (mut blocks, degrees): (Vec<Block>, Vec<Vec<f64>>) = directed
        .edges_by_target(layout)
        .into_par_iter()
        .enumerate()
        .map(|(block, incoming)| directed.merge(layout.rows(block), incoming))
        .unzip();
    let degrees = degrees.concat();
    if let Some(position) = degrees.iter().position(|d| !d.is_finite()) {
        return Err(Error::WeightOverflow(directed.numbering.node_at(position)));
    }

    let scale: Vec<f64> = degrees.iter().map(|&degree| inverse_root(degree)).collect();
    blocks.par_iter_mut().enumerate().for_each(|(block, Block { starts, entries })| {
        for (node, row) in layout.rows(block).zip(starts.windows(2)) {
            for (column, value) in &mut entries[row[0]..row[1]] {
                *value = (f64::from(*value) * (scale[node] * scale[*column as usize])) as f32;
            }
        }
    });
    let graph = SparseGraph { blocks, layout, searched: lists.searched() };
    Ok(Affinity::new(Edges::Sparse(graph), directed.numbering, degrees))
}

/// The entries of a row that lie in one segment, one segment after the other.
pub(crate) fn segments(row: &[(u32, f32)], searched: usize) -> impl Iterator<Item = &[(u32, f32)]> {
    let segment = move |column: u32| match column as usize {
        column if column < searched => column / SEGMENT,
        _ => usize::MAX,
    };
    row.chunk_by(move |a, b| segment(a.0) == segment(b.0))
}

/// The edges of neighbour lists, each from the node that lists the other.
struct Directed<'a> {
    lists: &'a NeighbourLists,
    similarity: Similarity,
    numbering: Numbering,
}

impl Directed<'_> {
    /// The neighbours of the node at a position.
    fn of(&self, position: usize) -> &[Ranked] {
        self.lists.of(self.numbering.node_at(position))
    }

    fn position(&self, neighbour: &Ranked) -> usize {
        self.numbering.position_of(neighbour.node() as usize)
    }

    /// The edges that point into each block, as one pile from every block they come from; all in ascending order of origin.
    fn edges_by_target(&self, layout: Layout) -> Vec<Vec<Vec<Edge>>> {
        let sent: Vec<Vec<Vec<Edge>>> = (0..layout.blocks())
            .into_par_iter()
            .map(|block| {
                let mut sizes = vec![0; layout.blocks()];
                for position in layout.rows(block) {
                    self.of(position).iter().for_each(|r| sizes[layout.block_of(self.position(r))] += 1);
                }
                let mut piles: Vec<Vec<Edge>> = sizes.into_iter().map(Vec::with_capacity).collect();
                for position in layout.rows(block) {
                    for neighbour in self.of(position) {
                        let weight = self.similarity.weight(neighbour.score());
                        let to = self.position(neighbour);
                        if weight > 0.0 {
                            let edge = Edge { from: position as u32, to: to as u32, weight };
                            piles[layout.block_of(to)].push(edge);
                        }
                    }
                }
                piles
            })
            .collect();
        let mut received: Vec<Vec<Vec<Edge>>> = vec![Vec::new(); layout.blocks()];
        for piles in sent {
            received.iter_mut().zip(piles).for_each(|(received, pile)| received.push(pile));
        }
        received
    }

    /// The rows of A + Aᵀ and their sums: what the nodes list and who lists them.
    fn merge(&self, rows: Range<usize>, incoming: Vec<Vec<Edge>>) -> (Block, Vec<f64>) {
        // Incoming edges by node; they come in ascending order of origin and stay so.
        let mut ends = vec![0usize; rows.len() + 1];
        incoming.iter().flatten().for_each(|edge| ends[edge.to as usize - rows.start + 1] += 1);
        for row in 0..rows.len() {
            ends[row + 1] += ends[row];
        }
        let mut listed_by = vec![(0u32, 0f32); ends[rows.len()]];
        let mut next = ends.clone();
        for edge in incoming.into_iter().flatten() {
            let slot = &mut next[edge.to as usize - rows.start];
            listed_by[*slot] = (edge.from, edge.weight);
            *slot += 1;
        }

        let outgoing: usize = rows.clone().map(|position| self.of(position).len()).sum();
        let mut entries: Vec<(u32, f32)> = Vec::with_capacity(listed_by.len() + outgoing);
        let mut starts = Vec::with_capacity(rows.len() + 1);
        let mut degrees = Vec::with_capacity(rows.len());
        let mut listed: Vec<(u32, f32)> = Vec::new();
        starts.push(0);
        for (row, position) in rows.enumerate() {
            listed.clear();
            let weigh = |r: &Ranked| (self.position(r) as u32, self.similarity.weight(r.score()));
            listed.extend(self.of(position).iter().map(weigh));
            listed.retain(|entry| entry.1 > 0.0);
            listed.sort_unstable_by_key(|entry| entry.0);
            let mut listed_by = listed_by[ends[row]..ends[row + 1]].iter().copied().peekable();
            let start = entries.len();
            let mut add = |entry| entries.push(entry);
            for &(column, weight) in &listed {
                while let Some(other) = listed_by.next_if(|other| other.0 < column) {
                    add(other);
                }
                let back = listed_by.next_if(|other| other.0 == column).map_or(0.0, |other| other.1);
                add((column, weight + back));
            }
            listed_by.for_each(&mut add);
            degrees.push(match position < self.lists.searched() {
                true => degree(&entries[start..]),
                false => segments(&entries[start..], self.lists.searched()).map(degree).sum(),
            });
            starts.push(entries.len());
        }
        (Block { starts, entries }, degrees)
    }
}

/// The sum of some weights.
pub(crate) fn degree(entries: &[(u32, f32)]) -> f64 {
    entries.iter().fold(0.0, |sum, entry| sum + f64::from(entry.1))
}

impl SparseGraph {
    pub(super) fn entries(&self) -> usize {
        self.blocks.iter().map(|block| block.entries.len()).sum()
    }

    /// Columns and values sᵢⱼ of a row.
    pub(super) fn row(&self, node: usize) -> &[(u32, f32)] {
        let block = self.layout.block_of(node);
        self.blocks[block].row(node - self.layout.rows(block).start)
    }

    /// Rows of S·X: `W` columns at once.
    pub(super) fn multiply_rows<const W: usize>(
        &self,
        range: Range<usize>,
        x: &[[f32; W]],
        out: &mut [[f32; W]],
    ) {
        vectorised(RowsTimes { graph: self, range, x, out });
    }

    /// Spreads `reached` along the edges until nothing changes.
    pub(super) fn spread(&self, reached: &mut [bool]) {
        let mut waiting = reached.iter().filter(|&&reached| !reached).count();
        let mut queue: Vec<usize> = (0..reached.len()).filter(|&node| reached[node]).collect();
        while let Some(node) = queue.pop().filter(|_| waiting > 0) {
            for &(neighbour, _) in self.row(node) {
                if !std::mem::replace(&mut reached[neighbour as usize], true) {
                    queue.push(neighbour as usize);
                    waiting -= 1;
                }
            }
        }
    }
}

/// Some rows of S·X.
struct RowsTimes<'a, const W: usize> {
    graph: &'a SparseGraph,
    range: Range<usize>,
    x: &'a [[f32; W]],
    out: &'a mut [[f32; W]],
}

impl<const W: usize> Loops for RowsTimes<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (position, out) in self.range.zip(self.out) {
            let row = self.graph.row(position);
            if position < self.graph.searched {
                *out = times(row, self.x);
                continue;
            }
            *out = [0.0; W];
            for segment in segments(row, self.graph.searched) {
                let part = times(segment, self.x);
                out.iter_mut().zip(part).for_each(|(out, part)| *out += part);
            }
        }
    }
}

/// Σⱼ sᵢⱼ·xⱼ over some entries of a row.
#[inline(always)]
pub(crate) fn times<const W: usize>(entries: &[(u32, f32)], x: &[[f32; W]]) -> [f32; W] {
    // Two sums, so that one addition need not wait for the other.
    let (pairs, last) = entries.as_chunks::<2>();
    let (mut even, mut odd) = ([0f32; W], [0f32; W]);
    for &[(a, s_a), (b, s_b)] in pairs {
        let (x_a, x_b) = (&x[a as usize], &x[b as usize]);
        for c in 0..W {
            even[c] += s_a * x_a[c];
            odd[c] += s_b * x_b[c];
        }
    }
    if let &[(a, s_a)] = last {
        for c in 0..W {
            even[c] += s_a * x[a as usize][c];
        }
    }
    std::array::from_fn(|c| even[c] + odd[c])
}
