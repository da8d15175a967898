//! What a run on blocks needs to know of its parameters, and which parameters it cannot follow.

use crate::error::Error;
use crate::parameters::{
    AnchorMode, AnchorSpace, AnchorWeights, CheckedParameters, GraphMethod, LabelWeight, Method, Neighbours,
    Parameters, Solver, SourceNodes, Unknown, Unreached,
};
use crate::propagation::{MAX_REFINEMENTS, REFINED, error_bound, least_settled};
use crate::similarity::Similarity;
use serde::{Deserialize, Serialize};

/// The settings of a run on blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Neighbours of a row, itself not counted.
    pub k: usize,
    /// α
    pub alpha: f64,
    /// Rounds of propagation.
    pub rounds: usize,
    /// The similarity.
    pub similarity: Similarity,
    /// Relative residual at which conjugate gradients stop.
    pub tolerance: f64,
    /// Iterations after which they give up.
    pub max_iterations: usize,
    /// Do items weigh in anchors by their entropy?
    pub entropy_weights: bool,
    /// Do new anchors replace the old ones?
    pub replaces_anchors: bool,
    /// Scale of Y.
    pub label_weight: LabelWeight,
    /// End when a round changes no label?
    pub stop_when_stable: bool,
    /// Items below are marked.
    pub min_confidence: f32,
    /// Seed of the sample that makes the groups.
    pub seed: u64,
}

impl Settings {
    /// The settings of these parameters, or the first that needs all rows in one memory.
    pub fn of(parameters: &CheckedParameters) -> Result<Self, Error> {
        let rule = "a run on shards cannot follow it; label in one memory, or leave it out";
        let refuse = |name, value: &str| Err(Error::Parameter { name, value: value.into(), rule });
        let p = parameters;
        match () {
            () if p.method == Method::Consensus => refuse("method", p.method.as_str()),
            () if !matches!(p.graph_method, GraphMethod::Auto | GraphMethod::Pruned) => {
                refuse("graph-method", p.graph_method.as_str())
            }
            () if p.neighbours == Neighbours::All => refuse("neighbours", "all"),
            () if p.source_nodes != SourceNodes::All => refuse("source-nodes", p.source_nodes.as_str()),
            () if p.unreached != Unreached::Unlabelled => refuse("unreached", p.unreached.as_str()),
            () if p.solver == Solver::Dense => refuse("solver", p.solver.as_str()),
            () if p.anchor_space == AnchorSpace::Raw => refuse("anchor-space", p.anchor_space.as_str()),
            () if p.unknown == Unknown::Flag => refuse("unknown", p.unknown.as_str()),
            () if p.guard => refuse("guard", "true"),
            () => Ok(Settings {
                k: p.others().unwrap_or(0),
                alpha: p.alpha,
                rounds: if p.method == Method::Lp { 1 } else { p.rounds },
                similarity: p.similarity,
                tolerance: p.tolerance,
                max_iterations: p.max_iterations,
                entropy_weights: p.anchor_weights == AnchorWeights::Entropy,
                replaces_anchors: p.anchor_mode == AnchorMode::Replace,
                label_weight: p.label_weight,
                stop_when_stable: p.stop_when_stable,
                min_confidence: p.min_confidence,
                seed: p.seed,
            }),
        }
    }

    /// The same settings as parameters, by which a run in memory gives the same labels.
    pub fn parameters(&self) -> Result<CheckedParameters, Error> {
        let weights = if self.entropy_weights { AnchorWeights::Entropy } else { AnchorWeights::Uniform };
        Parameters::paper()
            .neighbours(self.k)
            .alpha(self.alpha)
            .rounds(self.rounds)
            .similarity(self.similarity)
            .graph_method(GraphMethod::Pruned)
            .tolerance(self.tolerance)
            .max_iterations(self.max_iterations)
            .anchor_weights(weights)
            .anchor_mode(if self.replaces_anchors { AnchorMode::Replace } else { AnchorMode::Add })
            .label_weight(self.label_weight)
            .stop_when_stable(self.stop_when_stable)
            .min_confidence(self.min_confidence)
            .seed(self.seed)
            .unknown(Unknown::Off)
            .check()
    }

    /// Most passes of refinement of a solve.
    pub const REFINEMENTS: usize = MAX_REFINEMENTS;

    /// The residuals that a pass of refinement aims at.
    pub fn refined(residuals: &[f64]) -> Vec<f64> {
        residuals.iter().map(|residual| residual * REFINED).collect()
    }

    /// The largest error that residuals allow, and below which score reached nodes are refined.
    pub fn error(&self, residuals: &[f64], nodes: usize) -> (f64, f64) {
        let bound = error_bound(residuals, self.alpha);
        (bound, least_settled(bound, nodes))
    }
}
