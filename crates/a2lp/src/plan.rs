//! What a run will take, told before it begins.

use crate::neighbours::cost;
use crate::parameters::{AnchorMode, CheckedParameters, GraphMethod, Method, Solver, SourceNodes};
use serde::Serialize;

/// The size of a problem; no features are needed to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// Rows of the source.
    pub source_rows: usize,
    /// Rows of the target.
    pub target_rows: usize,
    /// Features per row.
    pub columns: usize,
    /// Classes.
    pub classes: usize,
}

/// What a run will do and need. Bytes were fitted to what runs of 6,000 to 80,000 rows held, and are within 15 % of it there
/// (`reliability/run r6`); seconds are a guess from the machine on which the benchmarks were run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Nodes of the graph before anchors are added.
    pub nodes: usize,
    /// Neighbours of each node, itself not counted; `None` for the full graph.
    pub neighbours: Option<usize>,
    /// The search that will be used; `None` for the full graph.
    pub method: Option<GraphMethod>,
    /// The solver that will be used.
    pub solver: Solver,
    /// Worker threads.
    pub threads: usize,
    /// Bytes of the features.
    pub feature_bytes: u64,
    /// Most bytes held while neighbours are searched for.
    pub search_bytes: u64,
    /// Most bytes held during the rounds.
    pub rounds_bytes: u64,
    /// Bytes of the labels, and of what is kept of every round.
    pub labels_bytes: u64,
    /// The largest of these, and of what measuring the quality takes.
    pub peak_bytes: u64,
    /// Seconds for the neighbours.
    pub search_secs: f64,
    /// Seconds for the rounds.
    pub rounds_secs: f64,
}

impl CheckedParameters {
    /// What a run on data of this shape will take.
    pub fn plan(&self, shape: Shape) -> Plan {
        let threads = if self.threads > 0 { self.threads } else { rayon::current_num_threads() };
        let sources = match self.source_nodes {
            SourceNodes::All => shape.source_rows,
            SourceNodes::Centres => shape.classes.min(shape.source_rows),
        };
        let nodes = sources + shape.target_rows;
        let columns = shape.columns;
        let feature_bytes = (shape.source_rows + shape.target_rows) as u64 * columns as u64 * 4;
        let neighbours = self.others().map(|k| k.min(nodes.saturating_sub(1)));
        let method = neighbours.map(|k| match self.graph_method {
            GraphMethod::Auto => cost::choose(nodes, columns, k),
            chosen => chosen,
        });
        let (n, classes) = (nodes as u64, shape.classes as u64);
        let solver = self.resolved_solver();
        let base = feature_bytes + OVERHEAD;
        let mut search_bytes = base;
        // F and what the solver works with; probabilities, and what is kept of every round.
        let again = u64::from(self.rounds > 1);
        let labels_bytes = shape.target_rows as u64 * (4 * classes + 32 + 50 * self.rounds as u64);
        let mut rounds_bytes = base
            + n * (4 * classes + 4 * 4 * classes.next_multiple_of(4).min(16) + 100 * again)
            + labels_bytes;
        let mut quality_bytes = 0;
        let (search_secs, mut rounds_secs);
        let (nf, df) = (nodes as f64, columns as f64);
        // Iterations grow with the square root of the condition number.
        let iterations = 5.0 * ((1.0 + self.alpha) / (1.0 - self.alpha).abs().max(1e-3)).sqrt();
        let panels = (classes as f64 / 16.0).ceil();
        match (neighbours, method) {
            (Some(k), Some(method)) => {
                search_bytes += cost::search_bytes(method, nodes, columns, k, threads);
                search_secs = cost::thread_secs(method, nodes, columns, k);
                let copies = if self.anchor_mode == AnchorMode::Replace { 2 } else { 1 };
                // Lists, edges on their way, and A + Aᵀ.
                rounds_bytes += n * k as u64 * (8 * copies + 12 + 16) + n * 24;
                rounds_bytes += cost::left_bytes(method, nodes, columns, k);
                if self.quality {
                    // Another graph, beside the lists and the labels.
                    let search = cost::search_bytes(method, nodes, columns, k, threads);
                    quality_bytes = base + search + n * (12 * k as u64 + 300) + labels_bytes;
                }
                let edges = nf * k as f64;
                let solve = iterations * panels * (1.5 * edges * 4e-9 + nf * 1e-7);
                rounds_secs = nf * df * 1.2e-9 + edges * 6e-8 + solve;
            }
            _ => {
                search_secs = 0.0;
                // The weights are not stored when features are not negative, but who knows that they are not.
                rounds_bytes += 4 * n * n;
                rounds_secs = nf * nf * (df * 2e-11 + iterations * panels * 1e-9);
            }
        }
        if solver == Solver::Dense {
            rounds_bytes += 3 * 8 * n * n;
            rounds_secs += nf * nf * nf * 2e-10;
        }
        let (search_secs, rounds_secs) = match self.method {
            Method::Consensus => {
                // The views' graphs are alike in cost; the third is smaller, but made anew in every round.
                let z = 128.0 / df;
                let third = if self.views > 2 { 1.0 } else { 0.0 };
                let k = neighbours.unwrap_or(0) as u64;
                (search_bytes, rounds_bytes) = (search_bytes + feature_bytes, rounds_bytes + feature_bytes);
                // The second view: lists and a matrix of its own. The third: its rows besides, and twice while they are made.
                rounds_bytes += n * (36 * k + 220);
                if self.views > 2 {
                    rounds_bytes += n * (2 * 4 * 128.min(columns as u64) + 52 * k + 700);
                }
                quality_bytes += feature_bytes * u64::from(quality_bytes > 0);
                let eigen = third * df * df * (nf * 3e-11 + df * 1e-9);
                (
                    search_secs * (2.0 + third * z) + eigen,
                    rounds_secs * (2.0 + third) + third * search_secs * z,
                )
            }
            _ => (search_secs, rounds_secs),
        };
        let mut peak_bytes = search_bytes.max(rounds_bytes).max(quality_bytes);
        if self.guard {
            // The features again, beside what the first run leaves behind.
            peak_bytes += feature_bytes + labels_bytes;
        }
        Plan {
            nodes,
            neighbours,
            method,
            solver,
            threads,
            feature_bytes,
            search_bytes,
            rounds_bytes,
            labels_bytes,
            peak_bytes,
            search_secs: search_secs / threads as f64,
            rounds_secs: self.rounds as f64 * rounds_secs / threads as f64,
        }
    }
}

/// The program itself, and small things.
const OVERHEAD: u64 = 13 << 20;
