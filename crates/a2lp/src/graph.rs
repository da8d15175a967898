//! The neighbour graph on its own, for whoever wants to keep it, look at it, or bring one along.

use crate::affinity::symmetrise;
use crate::error::{Domain, Error};
use crate::features::FeatureMatrix;
use crate::neighbours::{GraphReport, find_neighbours};
use crate::observer::Observer;
use crate::parameters::{CheckedParameters, Similarity};
use std::time::Instant;

/// A graph in compressed rows: the neighbours of node i are `columns[starts[i]..starts[i + 1]]`, ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct NeighbourGraph {
    /// Where each row starts; one more than there are nodes.
    pub starts: Vec<usize>,
    /// Neighbours.
    pub columns: Vec<u32>,
    /// Their similarities ε.
    pub weights: Vec<f32>,
}

impl NeighbourGraph {
    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }
}

/// A graph and how it was found.
#[derive(Clone, Debug)]
pub struct FoundGraph {
    /// The graph.
    pub graph: NeighbourGraph,
    /// The search that was used and what it missed.
    pub report: GraphReport,
    /// Seconds spent searching.
    pub secs: f64,
}

/// The k nearest neighbours of every row and their similarities; with `symmetric`, A + Aᵀ instead.
pub fn neighbour_graph(
    mut features: FeatureMatrix,
    parameters: &CheckedParameters,
    symmetric: bool,
    observer: &dyn Observer,
) -> Result<FoundGraph, Error> {
    if features.rows() == 0 || features.columns() == 0 {
        return Err(Error::Empty(Domain::Source));
    }
    if let Some((row, column, value)) = features.first_non_finite() {
        return Err(Error::NotFinite { domain: Domain::Source, row, column, value });
    }
    parameters.pool()?.install(|| {
        let started = Instant::now();
        let similarity = parameters.similarity;
        if similarity == Similarity::Cosine {
            features.normalise_rows();
        }
        let k = parameters.others().unwrap_or(usize::MAX).min(features.rows() - 1);
        let (lists, report) = find_neighbours(&features, k, similarity, parameters.graph_method, observer)?;
        let secs = started.elapsed().as_secs_f64();

        let mut graph = NeighbourGraph { starts: vec![0], columns: Vec::new(), weights: Vec::new() };
        let mut row: Vec<(u32, f32)> = Vec::new();
        let affinity = if symmetric { Some(symmetrise(&lists, similarity)?) } else { None };
        for node in 0..lists.nodes() {
            match &affinity {
                Some(affinity) => affinity.row(node, &mut row),
                None => {
                    row.clear();
                    row.extend(lists.of(node).iter().map(|r| (r.node(), similarity.weight(r.score()))));
                    row.retain(|entry| entry.1 > 0.0);
                    row.sort_unstable_by_key(|entry| entry.0);
                }
            }
            graph.columns.extend(row.iter().map(|entry| entry.0));
            graph.weights.extend(row.iter().map(|entry| entry.1));
            graph.starts.push(graph.columns.len());
        }
        Ok(FoundGraph { graph, report, secs })
    })
}
