//! The graph as a matrix: A + Aᵀ (eq. 6) and its normalised form S = D^-½ A D^-½ (eq. 7).
//! Hands on an operator that multiplies by S.

mod edges;
mod full;
mod sparse;

pub(crate) use edges::{BaseEdges, symmetrise};
pub(crate) use full::full_graph;
pub(crate) use sparse::{degree, times};

use crate::labels::ClassId;
use crate::neighbours::Numbering;
use full::FullGraph;
use sparse::SparseGraph;
use std::ops::Range;

/// A symmetric, non-negative affinity matrix with zero diagonal, ready to be multiplied by its normalised form.
///
/// Inside, nodes stand at positions, in an order that keeps neighbours close; outside, they have their numbers.
pub struct Affinity<'v> {
    edges: Edges<'v>,
    numbering: Numbering,
    /// dᵢᵢ, the row sums, by position.
    degrees: Vec<f64>,
    /// dᵢᵢ^-½; 0 for an isolated node, whose row of S is then 0.
    scale: Vec<f32>,
}

/// d^-½; 0 for an isolated node.
pub(crate) fn inverse_root(degree: f64) -> f64 {
    if degree > 0.0 { degree.sqrt().recip() } else { 0.0 }
}

enum Edges<'v> {
    Sparse(SparseGraph),
    Full(FullGraph<'v>),
}

/// What has to be worked out once per multiplication, before rows can be asked for.
pub(crate) enum Prepared {
    Nothing,
    /// Vᵀ D^-½ X, for a full graph that is not stored.
    Products(Vec<f64>),
}

impl<'v> Affinity<'v> {
    fn new(edges: Edges<'v>, numbering: Numbering, degrees: Vec<f64>) -> Self {
        let scale = degrees.iter().map(|&degree| inverse_root(degree) as f32).collect();
        Affinity { edges, numbering, degrees, scale }
    }

    /// Where nodes stand in the vectors that are multiplied.
    pub(crate) fn numbering(&self) -> &Numbering {
        &self.numbering
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.degrees.len()
    }

    /// dᵢᵢ, the sum of row i of A.
    pub fn degree(&self, node: usize) -> f64 {
        self.degrees[self.numbering.position_of(node)]
    }

    /// Number of stored entries of A; 0 when the full graph is not stored.
    pub fn entries(&self) -> usize {
        match &self.edges {
            Edges::Sparse(graph) => graph.entries(),
            Edges::Full(graph) => graph.entries(),
        }
    }

    /// Writes the neighbours of `node` in ascending order and their weights aᵢⱼ into `row`.
    pub fn row(&self, node: usize, row: &mut Vec<(u32, f32)>) {
        row.clear();
        match &self.edges {
            Edges::Sparse(graph) => {
                let position = self.numbering.position_of(node);
                row.extend(graph.row(position).iter().map(|&(j, s)| {
                    // The stored value is sᵢⱼ; A is needed for diagnostics only.
                    let weight = f64::from(s) * (self.degrees[position] * self.degrees[j as usize]).sqrt();
                    (self.numbering.node_at(j as usize) as u32, weight as f32)
                }));
                if !self.numbering.is_plain() {
                    row.sort_unstable_by_key(|entry| entry.0);
                }
            }
            Edges::Full(graph) => graph.row(node, row),
        }
    }

    /// Writes the neighbours of `node` into `neighbours`, in no particular order.
    pub fn neighbours(&self, node: usize, neighbours: &mut Vec<u32>) {
        neighbours.clear();
        let mut made = Vec::new();
        let row = self.normalised_row(self.numbering.position_of(node), &mut made);
        neighbours.extend(row.iter().map(|&(position, _)| self.numbering.node_at(position as usize) as u32));
    }

    /// The neighbours and weights sᵢⱼ of the node at a position, as positions. A row that is not stored is written into `made`.
    pub(crate) fn normalised_row<'r>(
        &'r self,
        position: usize,
        made: &'r mut Vec<(u32, f32)>,
    ) -> &'r [(u32, f32)] {
        match &self.edges {
            Edges::Sparse(graph) => graph.row(position),
            Edges::Full(graph) => {
                graph.row(position, made);
                for (other, value) in made.iter_mut() {
                    let roots = (self.degrees[position] * self.degrees[*other as usize]).sqrt();
                    *value = if roots > 0.0 { (f64::from(*value) / roots) as f32 } else { 0.0 };
                }
                made
            }
        }
    }

    /// First half of S·X for X with `W` columns and a row for each position.
    pub(crate) fn prepare<const W: usize>(&self, x: &[[f32; W]]) -> Prepared {
        match &self.edges {
            Edges::Sparse(_) => Prepared::Nothing,
            Edges::Full(graph) => graph.prepare(&self.scale, x),
        }
    }

    /// Second half of S·X: the rows of these positions.
    pub(crate) fn multiply_rows<const W: usize>(
        &self,
        prepared: &Prepared,
        range: Range<usize>,
        x: &[[f32; W]],
        out: &mut [[f32; W]],
    ) {
        match &self.edges {
            Edges::Sparse(graph) => graph.multiply_rows(range, x, out),
            Edges::Full(graph) => graph.multiply_rows(&self.scale, prepared, range, x, out),
        }
    }

    /// Calls `add(i, j, sᵢⱼ)` for every entry of S.
    pub(crate) fn for_each_normalised(&self, mut add: impl FnMut(usize, usize, f64)) {
        let mut row = Vec::new();
        for i in 0..self.nodes() {
            self.row(i, &mut row);
            for &(j, weight) in &row {
                let (di, dj) = (self.degree(i), self.degree(j as usize));
                if di > 0.0 && dj > 0.0 {
                    add(i, j as usize, f64::from(weight) / (di * dj).sqrt());
                }
            }
        }
    }

    /// Which nodes a path joins to a labelled node. Labelled nodes reach themselves.
    pub(crate) fn reached(&self, labels: &[Option<ClassId>]) -> Vec<bool> {
        let mut reached: Vec<bool> =
            (0..labels.len()).map(|position| labels[self.numbering.node_at(position)].is_some()).collect();
        match &self.edges {
            Edges::Sparse(graph) => graph.spread(&mut reached),
            Edges::Full(graph) => graph.spread(&mut reached),
        }
        if self.numbering.is_plain() {
            return reached;
        }
        (0..labels.len()).map(|node| reached[self.numbering.position_of(node)]).collect()
    }
}
