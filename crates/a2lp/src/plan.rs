//! The memory and time of a run, estimated before it starts.

use crate::features::Domains;
use crate::hypothesis::DECIDE_AFTER;
use crate::machine::{Machine, Work};
use crate::method::MethodChoice;
use crate::neighbours::cost;
use crate::parameters::{AnchorMode, CheckedParameters, GraphMethod, Method, Solver, SourceNodes};
use crate::propagation::width;
use crate::reach;
use crate::views::half_of_each;
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

impl Shape {
    /// The size of these domains.
    pub fn of(domains: &Domains) -> Self {
        Shape {
            source_rows: domains.source_rows(),
            target_rows: domains.target_rows(),
            columns: domains.features().columns(),
            classes: domains.source_labels().classes().len(),
        }
    }
}

/// What a run will do and need. Bytes were fitted to what runs of 6,000 to 80,000 rows held, and are within 15 % of it there
/// (`reliability/run r6`); seconds are those of a machine of 2.5 GHz with AVX-512.
/// [`on_this_machine`](Plan::on_this_machine) turns them into seconds of this one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// How labels will come to the target, and why so.
    pub chosen: MethodChoice,
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
    /// The largest of these, and of what measuring reach and quality takes.
    pub peak_bytes: u64,
    /// Seconds for the neighbours, and for the reach of the items.
    pub search_secs: f64,
    /// Seconds for the rounds.
    pub rounds_secs: f64,
    /// What those seconds are for, on one thread.
    #[serde(skip)]
    search_work: Work,
    #[serde(skip)]
    rounds_work: Work,
}

impl CheckedParameters {
    /// What a run on data of this shape will take.
    pub fn plan(&self, shape: Shape) -> Plan {
        let threads = if self.threads > 0 { self.threads } else { rayon::current_num_threads() };
        let (resolved, chosen) = self.resolve(shape, false);
        Plan { chosen, ..resolved.plan_on(shape, threads) }
    }

    /// The plan on this many threads, for a method that is not `auto`.
    pub(crate) fn plan_on(&self, shape: Shape, threads: usize) -> Plan {
        let sources = match self.source_nodes {
            SourceNodes::All => shape.source_rows,
            SourceNodes::Centres => shape.classes.min(shape.source_rows),
        };
        let nodes = sources + shape.target_rows;
        let neighbours = self.others().map(|k| k.min(nodes.saturating_sub(1)));
        let method = neighbours.map(|k| match self.graph_method {
            GraphMethod::Auto => cost::choose(nodes, shape.columns, k),
            chosen => chosen,
        });
        let solver = self.resolved_solver();
        let feature_bytes = (shape.source_rows + shape.target_rows) as u64 * shape.columns as u64 * 4;
        let size = Size { nodes, columns: shape.columns, classes: shape.classes, threads, feature_bytes };
        // Probabilities, and what is kept of every round.
        let labels_bytes =
            shape.target_rows as u64 * (4 * shape.classes as u64 + 32 + 50 * self.rounds as u64);
        let mut cost = match (neighbours, method) {
            (Some(k), Some(method)) => self.cost_of_lists(size, k, method, labels_bytes),
            _ => self.cost_of_full_graph(size, labels_bytes),
        };
        if solver == Solver::Dense {
            cost.rounds_bytes += 3 * 8 * (nodes as u64).pow(2);
            cost.round += Work::full((nodes as f64).powi(3) * 2e-10);
        }
        if self.method == Method::Consensus {
            cost = self.cost_of_views(cost, size, neighbours.unwrap_or(0));
        }
        if self.measures_reach(shape.source_rows + shape.target_rows, shape.columns) {
            cost.add_reach(self, shape, size);
        }
        if self.quality && self.method != Method::Consensus {
            // Another search; the consensus has such a graph.
            let search = self.graph_method.resolve(nodes, shape.columns, half_of_each(20, nodes / 2));
            cost.search += cost::work(search, nodes, shape.columns, 20);
        }
        let mut peak_bytes = cost.search_bytes.max(cost.rounds_bytes).max(cost.quality_bytes);
        if self.guard {
            // The lists without anchors, and other labels.
            peak_bytes += nodes as u64 * 8 * neighbours.unwrap_or(0) as u64 + labels_bytes;
        }
        let plan = Plan {
            chosen: MethodChoice::asked(self),
            nodes,
            neighbours,
            method,
            solver,
            threads,
            feature_bytes,
            search_bytes: cost.search_bytes,
            rounds_bytes: cost.rounds_bytes,
            labels_bytes,
            peak_bytes,
            search_secs: 0.0,
            rounds_secs: 0.0,
            search_work: cost.search,
            rounds_work: cost.round * self.rounds as f64,
        };
        plan.on(Machine::REFERENCE)
    }

    /// One view over neighbour lists.
    fn cost_of_lists(&self, size: Size, k: usize, method: GraphMethod, labels_bytes: u64) -> Cost {
        let Size { nodes, columns, threads, .. } = size;
        let (n, lists) = (nodes as u64, k as u64);
        let search = cost::search_bytes(method, nodes, columns, k, threads);
        let copies = if self.anchor_mode == AnchorMode::Replace { 2 } else { 1 };
        // Lists, their edges, and S.
        let edges_bytes = n * lists * (8 * copies + 15 + 12) + n * 24;
        // Another graph, beside the lists and the labels.
        let quality_bytes = size.base_bytes() + search + n * (12 * lists + 300) + labels_bytes;
        let (nf, edges) = (nodes as f64, nodes as f64 * k as f64);
        let solve = iterations(self.alpha) * size.panels() * (1.5 * edges * 4e-9 + nf * 1e-7);
        Cost {
            search_bytes: size.base_bytes() + search,
            rounds_bytes: self.solver_bytes(size)
                + labels_bytes
                + edges_bytes
                + cost::left_bytes(method, nodes, columns, k),
            quality_bytes: if self.quality { quality_bytes } else { 0 },
            search: cost::work(method, nodes, columns, k),
            round: Work::memory(nf * columns as f64 * 1.2e-9 + edges * 6e-8 + solve),
        }
    }

    /// One view over all pairs of nodes.
    fn cost_of_full_graph(&self, size: Size, labels_bytes: u64) -> Cost {
        let (n, nf) = (size.nodes as u64, size.nodes as f64);
        Cost {
            search_bytes: size.base_bytes(),
            // The weights are not stored if no feature is negative, which the plan cannot know.
            rounds_bytes: self.solver_bytes(size) + labels_bytes + 4 * n * n,
            quality_bytes: 0,
            search: Work::default(),
            round: Work::full(
                nf * nf * (size.columns as f64 * 2e-11 + iterations(self.alpha) * size.panels() * 1e-9),
            ),
        }
    }

    /// What the views of a consensus take, from what one view takes. Their graphs are alike in cost; the third is smaller, but
    /// made anew in every round.
    fn cost_of_views(&self, one: Cost, size: Size, k: usize) -> Cost {
        let (n, lists, df) = (size.nodes as u64, k as u64, size.columns as f64);
        let has_third = self.views > 2;
        let (third, z) = (f64::from(u8::from(has_third)), 128.0 / df);
        // The second view: lists and a matrix of its own. The third: its rows besides, and twice while they are made.
        let second_bytes = n * (36 * lists + 220);
        let third_bytes = n * (2 * 4 * 128.min(size.columns as u64) + 52 * lists + 700);
        // The second hypothesis: lists and scores of its own, and rows of its own in the third view.
        let views = self.views as u64;
        let (second_hypothesis, hypotheses) = match self.hypotheses().len() {
            2 => {
                let third_rows = if has_third { 4 * 128.min(size.columns as u64) + 8 * lists } else { 0 };
                let bytes = n * (views * (8 * lists + 4 * size.classes as u64) + third_rows);
                (bytes, 1.0 + DECIDE_AFTER.min(self.rounds) as f64 / self.rounds as f64)
            }
            _ => (0, 1.0),
        };
        // The centred view takes its neighbours from both domains.
        let first_target = size.nodes / 2;
        let centred = self.graph_method.resolve(size.nodes, size.columns, half_of_each(k, first_target));
        let (centred_work, centred_bytes) = match centred {
            GraphMethod::Exact => (cost::ranking_work(size.nodes, k), cost::ranking_bytes(size.nodes, k)),
            searched => (cost::work(searched, size.nodes, size.columns, k), 0),
        };
        let again = match centred {
            GraphMethod::Pruned => cost::moved_work(size.nodes, 128.min(size.columns), k),
            _ => one.search * z,
        };
        let eigenproblem = Work::full(third * df * df * (size.nodes as f64 * 3e-11 + df * 1e-9));
        Cost {
            search_bytes: one.search_bytes + size.feature_bytes + centred_bytes,
            rounds_bytes: one.rounds_bytes
                + size.feature_bytes
                + second_bytes
                + second_hypothesis
                + if has_third { third_bytes } else { 0 },
            quality_bytes: match one.quality_bytes {
                0 => 0,
                bytes => bytes + size.feature_bytes,
            },
            search: one.search * (1.0 + third * z) + centred_work + eigenproblem,
            // The third view is searched in half of the rounds, where it prunes from the lists of before.
            round: (one.round * (2.5 + third) + again * (third * 0.5)) * hypotheses,
        }
    }

    /// Features, F and what the solver works with.
    fn solver_bytes(&self, size: Size) -> u64 {
        let classes = size.classes as u64;
        let inserting = 100 * u64::from(self.rounds > 1);
        size.base_bytes()
            + size.nodes as u64 * (4 * classes + 4 * 4 * width(size.nodes, size.classes) as u64 + inserting)
    }
}

/// Iterations of conjugate gradients: they grow with the square root of the condition number.
fn iterations(alpha: f64) -> f64 {
    5.0 * ((1.0 + alpha) / (1.0 - alpha).abs().max(1e-3)).sqrt()
}

impl Plan {
    /// The plan with the seconds of this machine, which is measured for that; takes about a tenth of a second.
    pub fn on_this_machine(self) -> Self {
        self.on(Machine::measure())
    }

    fn on(self, machine: Machine) -> Self {
        let secs = |work: Work| work.secs_on(machine) / self.threads as f64;
        Plan { search_secs: secs(self.search_work), rounds_secs: secs(self.rounds_work), ..self }
    }

    /// Seconds in all.
    pub fn secs(&self) -> f64 {
        self.search_secs + self.rounds_secs
    }
}

/// The size of the graph and of what it is made from.
#[derive(Clone, Copy)]
struct Size {
    nodes: usize,
    columns: usize,
    classes: usize,
    threads: usize,
    feature_bytes: u64,
}

impl Size {
    fn base_bytes(&self) -> u64 {
        self.feature_bytes + OVERHEAD
    }

    /// Sixteen classes are solved for at a time.
    fn panels(&self) -> f64 {
        (self.classes as f64 / 16.0).ceil()
    }
}

/// Bytes held at a time, and the work of the search and of one round.
struct Cost {
    search_bytes: u64,
    rounds_bytes: u64,
    quality_bytes: u64,
    search: Work,
    round: Work,
}

impl Cost {
    /// Adds what the reach of the items takes: one more ranking in an exact search among unit rows, else a search of its own in a
    /// copy of the features; and the walks.
    fn add_reach(&mut self, parameters: &CheckedParameters, shape: Shape, size: Size) {
        let rows = shape.source_rows + shape.target_rows;
        let wanted = reach::wanted(shape.source_rows);
        let (k, columns) = (wanted.most(), shape.columns);
        let method = parameters.graph_method.resolve(rows, columns, wanted);
        // The features and lists of the views are there while reach is searched for and measured.
        let views = if parameters.method == Method::Consensus { 2 } else { 1 };
        let others = parameters.others().unwrap_or(0).min(rows);
        let held = OVERHEAD + views * (size.feature_bytes + size.nodes as u64 * (8 * others as u64 + 12));
        if method == GraphMethod::Exact && parameters.searches_unit_rows() {
            self.search_bytes += cost::ranking_bytes(rows, k);
            self.search += cost::ranking_work(rows, k);
        } else {
            let search = cost::search_bytes_of_each(method, rows, columns, k, size.threads);
            self.search_bytes = self.search_bytes.max(held + size.feature_bytes + search);
            self.search += cost::work(method, rows, columns, k);
            let left = cost::left_bytes(method, rows, columns, k);
            self.rounds_bytes += left;
            self.quality_bytes += if self.quality_bytes > 0 { left } else { 0 };
        }
        let walking = rows as u64 * (WALK_BYTES + 12 * shape.classes as u64);
        self.search_bytes = self.search_bytes.max(held + walking);
        let edges = (rows * k / 2) as f64;
        let walks = reach::ROUNDS as f64 + size.panels();
        let walk = 1.5 * edges * 4e-9 + rows as f64 * 1e-7;
        self.search += Work::memory(iterations(reach::ALPHA) * walks * walk);
    }
}

/// Bytes per row while reach is measured: its lists, the graphs within the domains, votes, and the solver's vectors.
const WALK_BYTES: u64 = 900;

/// The program itself, and small things.
const OVERHEAD: u64 = 13 << 20;
