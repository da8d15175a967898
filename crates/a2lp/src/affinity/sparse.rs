//! The k-nearest-neighbour graph as a compressed sparse matrix.

use super::{Affinity, Edges};
use crate::error::Error;
use crate::features::ROWS_PER_TASK;
use crate::neighbours::NeighbourLists;
use crate::parameters::Similarity;
use rayon::prelude::*;
use std::ops::Range;

/// Rows in compressed form, columns ascending; values are sᵢⱼ.
pub(super) struct SparseGraph {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

/// A + Aᵀ of the lists, normalised. A mutual pair weighs 2ε, a one-way pair ε.
pub(crate) fn symmetrise(lists: &NeighbourLists, similarity: Similarity) -> Result<Affinity<'static>, Error> {
    let nodes = lists.nodes();
    let transposed = Transposed::new(lists);

    let lengths: Vec<usize> = (0..nodes)
        .into_par_iter()
        .map_init(Vec::new, |row, i| {
            merge(lists, &transposed, i, similarity, row);
            row.len()
        })
        .collect();
    let starts: Vec<usize> = std::iter::once(0)
        .chain(lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        }))
        .collect();

    let mut columns = vec![0u32; starts[nodes]];
    let mut values = vec![0f32; starts[nodes]];
    let mut degrees = vec![0f64; nodes];
    for_rows(&starts, &mut columns, &mut values)
        .into_par_iter()
        .zip(degrees.par_chunks_mut(ROWS_PER_TASK))
        .for_each_init(Vec::new, |row, ((first, columns, values), degrees)| {
            let mut at = 0;
            for (i, degree) in (first..).zip(degrees) {
                merge(lists, &transposed, i, similarity, row);
                for &(j, weight) in row.iter() {
                    (columns[at], values[at]) = (j, weight);
                    *degree += f64::from(weight);
                    at += 1;
                }
            }
        });
    drop(transposed);
    if let Some(node) = degrees.iter().position(|d| !d.is_finite()) {
        return Err(Error::WeightOverflow(node));
    }

    for_rows(&starts, &mut columns, &mut values).into_par_iter().for_each(|(first, columns, values)| {
        let mut at = 0;
        for i in first..nodes.min(first + ROWS_PER_TASK) {
            for _ in starts[i]..starts[i + 1] {
                values[at] =
                    (f64::from(values[at]) / (degrees[i] * degrees[columns[at] as usize]).sqrt()) as f32;
                at += 1;
            }
        }
    });
    Ok(Affinity::new(Edges::Sparse(SparseGraph { starts, columns, values }), degrees))
}

/// One task's rows: the first of them, their columns, their values.
type Rows<'a> = (usize, &'a mut [u32], &'a mut [f32]);

/// Cuts the arrays into the pieces that belong to [`ROWS_PER_TASK`] rows each.
fn for_rows<'a>(starts: &[usize], mut columns: &'a mut [u32], mut values: &'a mut [f32]) -> Vec<Rows<'a>> {
    let nodes = starts.len() - 1;
    let mut tasks = Vec::with_capacity(nodes.div_ceil(ROWS_PER_TASK));
    for first in (0..nodes).step_by(ROWS_PER_TASK) {
        let entries = starts[nodes.min(first + ROWS_PER_TASK)] - starts[first];
        let (c, rest_c) = columns.split_at_mut(entries);
        let (v, rest_v) = values.split_at_mut(entries);
        (columns, values) = (rest_c, rest_v);
        tasks.push((first, c, v));
    }
    tasks
}

/// For every node, who lists it, in ascending order.
struct Transposed {
    starts: Vec<usize>,
    entries: Vec<(u32, f32)>,
}

impl Transposed {
    fn new(lists: &NeighbourLists) -> Self {
        let nodes = lists.nodes();
        let mut starts = vec![0usize; nodes + 1];
        for i in 0..nodes {
            for neighbour in lists.of(i) {
                starts[neighbour.node() as usize + 1] += 1;
            }
        }
        for i in 0..nodes {
            starts[i + 1] += starts[i];
        }
        let mut entries = vec![(0u32, 0f32); starts[nodes]];
        let mut next = starts.clone();
        for i in 0..nodes {
            for neighbour in lists.of(i) {
                let slot = &mut next[neighbour.node() as usize];
                entries[*slot] = (i as u32, neighbour.score());
                *slot += 1;
            }
        }
        Transposed { starts, entries }
    }

    fn of(&self, node: usize) -> &[(u32, f32)] {
        &self.entries[self.starts[node]..self.starts[node + 1]]
    }
}

/// Row `node` of A + Aᵀ, columns ascending, zero weights left out.
fn merge(
    lists: &NeighbourLists,
    transposed: &Transposed,
    node: usize,
    similarity: Similarity,
    row: &mut Vec<(u32, f32)>,
) {
    row.clear();
    row.extend(lists.of(node).iter().map(|r| (r.node(), r.score())));
    row.extend_from_slice(transposed.of(node));
    row.sort_unstable_by_key(|&(j, _)| j);
    let mut kept = 0;
    for at in 0..row.len() {
        let (j, score) = row[at];
        let weight = similarity.weight(score);
        if kept > 0 && row[kept - 1].0 == j {
            row[kept - 1].1 += weight;
        } else if weight > 0.0 {
            row[kept] = (j, weight);
            kept += 1;
        }
    }
    row.truncate(kept);
}

impl SparseGraph {
    pub(super) fn entries(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn row(&self, node: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        let range = self.starts[node]..self.starts[node + 1];
        self.columns[range.clone()].iter().copied().zip(self.values[range].iter().copied())
    }

    /// Rows of S·X: `W` columns at once, entries in order.
    pub(super) fn multiply_rows<const W: usize>(&self, range: Range<usize>, x: &[f32], out: &mut [f32]) {
        for (i, out) in range.zip(out.chunks_exact_mut(W)) {
            let mut acc = [0f32; W];
            for (j, s) in self.row(i) {
                let x = &x[j as usize * W..][..W];
                for c in 0..W {
                    acc[c] += s * x[c];
                }
            }
            out.copy_from_slice(&acc);
        }
    }
}
