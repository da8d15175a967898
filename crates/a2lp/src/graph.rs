//! The neighbour graph on its own, for whoever wants to keep it, look at it, or bring one along.

use crate::affinity::symmetrise;
use crate::diagnostics::{Warning, missed_neighbours};
use crate::error::{Domain, Error};
use crate::features::FeatureMatrix;
use crate::neighbours::{GraphReport, NeighbourLists, Ranked, Wanted, find_neighbours};
use crate::observer::Observer;
use crate::parameters::CheckedParameters;
use crate::similarity::Similarity;
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

    /// The same graph with at most the `k` most similar neighbours of each row; of equal ones the first.
    pub fn nearest(&self, k: usize) -> NeighbourGraph {
        let mut nearest = NeighbourGraph { starts: vec![0], columns: Vec::new(), weights: Vec::new() };
        for node in 0..self.nodes() {
            let mut row: Vec<(u32, f32)> = self.row(node).collect();
            row.sort_by(|a, b| b.1.total_cmp(&a.1));
            row.truncate(k);
            row.sort_unstable_by_key(|entry| entry.0);
            nearest.columns.extend(row.iter().map(|entry| entry.0));
            nearest.weights.extend(row.iter().map(|entry| entry.1));
            nearest.starts.push(nearest.columns.len());
        }
        nearest
    }

    /// Makes sure that this is a graph over `nodes` nodes with usable weights.
    fn check(&self, nodes: usize) -> Result<(), Error> {
        let wrong = |message: String| Err(Error::Graph(message));
        if self.nodes() != nodes {
            return wrong(format!("{} rows for {nodes} nodes (source rows, then target rows)", self.nodes()));
        }
        let ends = (self.starts[0], self.starts[nodes]);
        if ends != (0, self.columns.len()) || self.weights.len() != self.columns.len() {
            return wrong("row starts, columns and weights disagree about the number of entries".into());
        }
        let mut seen = vec![usize::MAX; nodes];
        for node in 0..nodes {
            if self.starts[node] > self.starts[node + 1] {
                return wrong(format!("the start of row {} lies behind its end", node));
            }
            for (column, weight) in self.row(node) {
                match seen.get_mut(column as usize) {
                    None => return wrong(format!("row {node} names column {column}, beyond the last")),
                    Some(last) if *last == node => {
                        return wrong(format!("row {node} names column {column} twice"));
                    }
                    Some(last) => *last = node,
                }
                if !(weight.is_finite() && weight >= 0.0) {
                    return wrong(format!(
                        "row {node}, column {column}: weight {weight}; weights are finite and not negative"
                    ));
                }
            }
        }
        Ok(())
    }

    fn row(&self, node: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        let range = self.starts[node]..self.starts[node + 1];
        self.columns[range.clone()].iter().copied().zip(self.weights[range].iter().copied())
    }

    /// The same weight in both directions everywhere?
    fn is_symmetric(&self) -> bool {
        // Every entry (i, j) is looked up as (j, i); rows are sorted once.
        let sorted: Vec<Vec<(u32, u32)>> = (0..self.nodes())
            .map(|node| {
                let mut row: Vec<(u32, u32)> = self.row(node).map(|(j, w)| (j, w.to_bits())).collect();
                row.sort_unstable();
                row
            })
            .collect();
        sorted.iter().enumerate().all(|(i, row)| {
            row.iter().all(|&(j, weight)| sorted[j as usize].binary_search(&(i as u32, weight)).is_ok())
        })
    }

    /// The graph as neighbour lists. Directed rows become lists as long as they are; of a symmetric matrix each pair
    /// is kept once, so that A + Aᵀ gives it back, and its lists are closed to newcomers.
    pub(crate) fn into_lists(self, nodes: usize, similarity: Similarity) -> Result<NeighbourLists, Error> {
        self.check(nodes)?;
        let symmetric = self.is_symmetric();
        let mut lists = NeighbourLists::with_capacity(nodes, self.columns.len().div_ceil(nodes.max(1)));
        let mut list: Vec<Ranked> = Vec::new();
        for node in 0..nodes {
            // A node is no neighbour of its own, whatever a file says.
            let others = self.row(node).filter(|&(j, weight)| j as usize != node && weight > 0.0);
            let kept = others.filter(|&(j, _)| !symmetric || j as usize > node);
            list.clear();
            list.extend(kept.map(|(j, weight)| Ranked::new(similarity.score_of_weight(weight), j)));
            list.sort_unstable_by(|a, b| b.cmp(a));
            lists.push(&list, list.len());
        }
        if symmetric {
            lists.close();
        }
        Ok(lists)
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

impl FoundGraph {
    /// Something about the search that the user should look at.
    pub fn warning(&self) -> Option<Warning> {
        missed_neighbours(&self.report)
    }
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
        if similarity.scales_rows() {
            features.normalise_rows();
        }
        let k = parameters.others().unwrap_or(usize::MAX).min(features.rows() - 1);
        let (lists, report) = find_neighbours(
            &features,
            Wanted::Nearest(k),
            similarity,
            parameters.graph_method,
            parameters.seed,
            observer,
        )?;
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
