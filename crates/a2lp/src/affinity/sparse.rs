//! The k-nearest-neighbour graph as a compressed sparse matrix, in blocks of rows.

use crate::features::{ROWS_PER_TASK, SEGMENT};
use crate::kernels::{Loops, prefetch, vectorised};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Rows in compressed form, columns ascending; values are sᵢⱼ. Rows and columns are positions.
pub(super) struct SparseGraph {
    /// The rows of the nodes that were searched for, and in the last block those of the anchors, which may be long and are summed
    /// up in segments.
    blocks: Vec<Block>,
    layout: Layout,
}

/// Consecutive rows: row r of the block has the entries `starts[r]..starts[r + 1]`.
pub(super) struct Block {
    starts: Vec<usize>,
    entries: Vec<(u32, f32)>,
}

impl Block {
    pub(super) fn with_capacity(rows: usize, entries: usize) -> Self {
        let mut starts = Vec::with_capacity(rows + 1);
        starts.push(0);
        Block { starts, entries: Vec::with_capacity(entries) }
    }

    /// Adds an entry to the row that was begun; columns come in ascending order, and weights in the same column are added up.
    pub(super) fn add(&mut self, column: u32, weight: f32) {
        let begun = self.starts.last().copied().unwrap_or(0);
        match self.entries[begun..].last_mut() {
            Some(last) if last.0 == column => last.1 += weight,
            _ => self.entries.push((column, weight)),
        }
    }

    /// Ends a row, and returns its entries.
    pub(super) fn end_row(&mut self) -> &[(u32, f32)] {
        let begun = self.starts.last().copied().unwrap_or(0);
        self.starts.push(self.entries.len());
        &self.entries[begun..]
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.entries.shrink_to_fit();
    }

    /// Multiplies every entry by the factors of its row and its column; `first` is the position of the first row.
    pub(super) fn multiply(&mut self, first: usize, factors: &[f64]) {
        for (row, bounds) in self.starts.windows(2).enumerate() {
            let own = factors[first + row];
            for (column, value) in &mut self.entries[bounds[0]..bounds[1]] {
                *value = (f64::from(*value) * (own * factors[*column as usize])) as f32;
            }
        }
    }

    fn row(&self, row: usize) -> &[(u32, f32)] {
        &self.entries[self.starts[row]..self.starts[row + 1]]
    }
}

/// How the nodes that were searched for are cut into blocks of 2^shift rows: enough blocks to share the work out, few enough to
/// send entries from each to each. Anchors come after them.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    searched: usize,
    shift: u32,
}

impl Layout {
    pub(super) fn new(searched: usize) -> Self {
        Layout { searched, shift: searched.div_ceil(128).max(64).next_power_of_two().ilog2() }
    }

    /// Blocks of nodes that were searched for.
    pub(super) fn blocks(self) -> usize {
        self.searched.div_ceil(1 << self.shift)
    }

    pub(super) fn rows(self, block: usize) -> Range<usize> {
        self.first(block)..self.searched.min((block + 1) << self.shift)
    }

    /// The first row of a block, or of the anchors.
    pub(super) fn first(self, block: usize) -> usize {
        self.searched.min(block << self.shift)
    }

    pub(super) fn block_of(self, position: usize) -> usize {
        if position < self.searched { position >> self.shift } else { self.blocks() }
    }
}

/// The entries of a row that lie in one segment, one segment after the other.
pub(crate) fn segments(row: &[(u32, f32)], searched: usize) -> impl Iterator<Item = &[(u32, f32)]> {
    let segment = move |column: u32| match column as usize {
        column if column < searched => column / SEGMENT,
        _ => usize::MAX,
    };
    row.chunk_by(move |a, b| segment(a.0) == segment(b.0))
}

/// The sum of some weights.
pub(crate) fn degree(entries: &[(u32, f32)]) -> f64 {
    entries.iter().fold(0.0, |sum, entry| sum + f64::from(entry.1))
}

impl SparseGraph {
    pub(super) fn new(blocks: Vec<Block>, layout: Layout) -> Self {
        SparseGraph { blocks, layout }
    }

    pub(super) fn entries(&self) -> usize {
        self.blocks.iter().map(|block| block.entries.len()).sum()
    }

    /// Columns and values sᵢⱼ of a row.
    pub(super) fn row(&self, node: usize) -> &[(u32, f32)] {
        let block = self.layout.block_of(node);
        self.blocks[block].row(node - self.layout.first(block))
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
        let flags: Vec<AtomicBool> = reached.iter().map(|&reached| reached.into()).collect();
        let is_reached = |node: usize| flags[node].load(Relaxed);
        let mut waiting: Vec<usize> = (0..flags.len()).filter(|&node| !reached[node]).collect();
        // Most nodes are a few edges away from a label, so a few passes over those that wait find nearly all. The end is the same
        // in whatever order threads look.
        let mut found = Vec::new();
        for _ in 0..PASSES {
            let look = |node: &usize| {
                let finds = self.row(*node).iter().any(|&(neighbour, _)| is_reached(neighbour as usize));
                flags[*node].fetch_or(finds, Relaxed);
                finds
            };
            (found, waiting) = waiting.into_par_iter().with_min_len(ROWS_PER_TASK).partition(look);
            if found.is_empty() || waiting.is_empty() {
                break;
            }
        }
        reached.iter_mut().zip(&flags).for_each(|(reached, flag)| *reached = flag.load(Relaxed));
        // What still waits can only be next to a node of the last pass, or to one that is found from there.
        let mut left = waiting.len();
        while let Some(node) = found.pop().filter(|_| left > 0) {
            for &(neighbour, _) in self.row(node) {
                if !std::mem::replace(&mut reached[neighbour as usize], true) {
                    found.push(neighbour as usize);
                    left -= 1;
                }
            }
        }
    }
}

/// Passes over all nodes that wait to be reached, before those last found are followed one by one.
const PASSES: usize = 6;

/// Some rows of S·X.
struct RowsTimes<'a, const W: usize> {
    graph: &'a SparseGraph,
    range: Range<usize>,
    x: &'a [[f32; W]],
    out: &'a mut [[f32; W]],
}

/// Rows from the one that is summed up to the one whose neighbours are asked for.
const AHEAD: usize = 2;

impl<const W: usize> Loops for RowsTimes<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let last = self.range.end;
        for (position, out) in self.range.zip(self.out) {
            let row = self.graph.row(position);
            if position + AHEAD < last {
                self.graph
                    .row(position + AHEAD)
                    .iter()
                    .for_each(|&(next, _)| prefetch(&self.x[next as usize]));
            }
            if position < self.graph.layout.searched {
                *out = times(row, self.x);
                continue;
            }
            *out = [0.0; W];
            for segment in segments(row, self.graph.layout.searched) {
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
