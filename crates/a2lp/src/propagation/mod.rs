//! Label propagation: F* = (I − αS)⁻¹ Y (eq. 7), by conjugate gradients or a dense factorisation.
//! Hands on [`SoftLabels`].

mod cg;
mod dense;
pub(crate) mod loops;
#[cfg(test)]
mod tests;

pub(crate) use cg::width;

use crate::affinity::Affinity;
use crate::error::Error;
use crate::labels::ClassId;
use crate::parameters::{CheckedParameters, LabelWeight, Solver};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Propagated scores F: one row per node, one column per class, and how exact they are.
#[derive(Clone, Debug)]
pub struct SoftLabels {
    classes: usize,
    values: Vec<f32>,
    /// Bound on the error of any score, from the residual of the last solve.
    error: f32,
}

impl SoftLabels {
    /// No nodes yet: the start of a run.
    pub(crate) fn new(classes: usize) -> Self {
        SoftLabels { classes, values: Vec::new(), error: 0.0 }
    }

    /// Scores that come from elsewhere than a solve, row after row.
    pub(crate) fn given(classes: usize, values: Vec<f32>) -> Self {
        Self::with_error(classes, values, 0.0)
    }

    /// Scores of a solve that was made elsewhere.
    pub(crate) fn with_error(classes: usize, values: Vec<f32>, error: f32) -> Self {
        SoftLabels { classes, values, error }
    }

    /// Scores of one node.
    pub fn row(&self, node: usize) -> &[f32] {
        &self.values[node * self.classes..][..self.classes]
    }

    /// Scores of one node, to be changed.
    pub(crate) fn row_mut(&mut self, node: usize) -> &mut [f32] {
        &mut self.values[node * self.classes..][..self.classes]
    }

    /// Makes room for more classes, of which no node has a score.
    pub(crate) fn widen(&mut self, classes: usize) {
        self.values = widened(&self.values, self.classes, classes);
        self.classes = classes;
    }

    /// Number of classes.
    pub(crate) fn classes(&self) -> usize {
        self.classes
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.values.len().checked_div(self.classes).unwrap_or(0)
    }

    /// Scores at or below this are indistinguishable from 0.
    pub fn error(&self) -> f32 {
        self.error
    }
}

/// Rows of more classes than before; the new ones are 0.
pub(crate) fn widened(values: &[f32], before: usize, classes: usize) -> Vec<f32> {
    let mut wide = vec![0.0; values.len() / before.max(1) * classes];
    let rows = wide.chunks_exact_mut(classes).zip(values.chunks_exact(before.max(1)));
    rows.for_each(|(to, from)| to[..before].copy_from_slice(from));
    wide
}

/// The label matrix Y: at most one entry per row, so only that is kept.
pub(crate) struct LabelMatrix<'a> {
    labels: &'a [Option<ClassId>],
    /// The entry of a node labelled with this class.
    weights: Vec<f32>,
    masses: Masses<'a>,
    norms: Vec<f64>,
}

/// What labelled nodes weigh: source rows 1, target items whose class a person has named, and anchors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Masses<'a> {
    /// The nodes that are target items; anchors come after them.
    pub(crate) targets: Range<usize>,
    /// The weight of a labelled one.
    pub(crate) known: f32,
    /// The weights of the anchors.
    pub(crate) anchors: &'a [f32],
}

impl Masses<'_> {
    fn of(&self, node: usize) -> f32 {
        if self.targets.contains(&node) {
            return self.known;
        }
        let anchor = node.checked_sub(self.targets.end).and_then(|anchor| self.anchors.get(anchor));
        anchor.copied().unwrap_or(1.0)
    }
}

impl<'a> LabelMatrix<'a> {
    pub(crate) fn new(labels: &'a [Option<ClassId>], classes: usize, weight: LabelWeight) -> Self {
        Self::with_masses(labels, Masses::default(), classes, weight)
    }

    pub(crate) fn with_masses(
        labels: &'a [Option<ClassId>],
        masses: Masses<'a>,
        classes: usize,
        weight: LabelWeight,
    ) -> Self {
        let mut counts = vec![0usize; classes];
        for class in labels.iter().flatten() {
            counts[*class as usize] += 1;
        }
        let weights = counts.iter().map(|&count| weight.entry(count)).collect();
        let mut matrix = LabelMatrix { labels, weights, masses, norms: vec![0.0; classes] };
        let mut squares = vec![0f64; classes];
        for (class, value) in (0..labels.len()).filter_map(|node| matrix.entry(node)) {
            squares[class] += f64::from(value).powi(2);
        }
        matrix.norms = squares.into_iter().map(f64::sqrt).collect();
        matrix
    }

    /// The class of a labelled node and its entry there; the others of its row are 0.
    fn entry(&self, node: usize) -> Option<(usize, f32)> {
        let class = self.labels[node]? as usize;
        Some((class, self.weights[class] * self.masses.of(node)))
    }
}

impl LabelMatrix<'_> {
    /// Writes the entries of a node in these classes into `out`, which is 0.
    fn write(&self, node: usize, classes: &Range<usize>, out: &mut [f32]) {
        if let Some((class, value)) = self.entry(node).filter(|entry| classes.contains(&entry.0)) {
            out[class - classes.start] = value;
        }
    }

    /// The entry of a source row of this class.
    pub(crate) fn weight(&self, class: usize) -> f32 {
        self.weights[class]
    }

    /// ‖Y_c‖₂
    fn norm(&self, class: usize) -> f64 {
        self.norms[class]
    }
}

/// When conjugate gradients stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The relative residual that is small enough.
    pub(crate) tolerance: f64,
    /// Iterations after which they give up.
    pub(crate) max_iterations: usize,
}

impl From<&CheckedParameters> for Limits {
    fn from(parameters: &CheckedParameters) -> Self {
        Limits { tolerance: parameters.tolerance, max_iterations: parameters.max_iterations }
    }
}

/// Solves (I − αS)X = Y in place: `values` holds Y, an entry for every node and class, node after node, and then X.
pub(crate) fn smooth(
    affinity: &Affinity<'_>,
    classes: usize,
    alpha: f64,
    limits: Limits,
    go_on: GoOn<'_>,
    values: &mut [f32],
) -> Result<Solve, Error> {
    let mut squares = vec![0f64; classes];
    for row in values.chunks_exact(classes.max(1)) {
        squares.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value).powi(2));
    }
    let norms: Vec<f64> = squares.into_iter().map(f64::sqrt).collect();
    let target: Vec<f64> = norms.iter().map(|norm| limits.tolerance * norm).collect();
    let outcome = cg::solve(affinity, None, alpha, &target, limits.max_iterations, go_on, values)?;
    Ok(Solve::new(&outcome, |class| norms[class]))
}

/// How a solve went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Solve {
    /// Iterations of conjugate gradients, refinement included; 0 for the dense solver.
    pub iterations: usize,
    /// Largest relative residual ‖r_c‖/‖Y_c‖ over the classes at the end of the first pass.
    pub residual: f64,
    /// Did every class reach the tolerance?
    pub converged: bool,
    /// Extra passes for nodes whose scores were close to the solver's error.
    pub refinements: usize,
}

impl Solve {
    /// Nothing was solved, because the answer was known.
    pub(crate) const KNOWN: Solve = Solve { iterations: 0, residual: 0.0, converged: true, refinements: 0 };

    fn new(outcome: &cg::Outcome, norm: impl Fn(usize) -> f64) -> Solve {
        let relative = |(class, &residual)| if norm(class) > 0.0 { residual / norm(class) } else { 0.0 };
        let residual = outcome.residuals.iter().enumerate().map(relative).fold(0.0, f64::max);
        Solve { iterations: outcome.iterations, residual, converged: outcome.converged, refinements: 0 }
    }

    /// Several solves as one: the worst of each, iterations added up.
    pub(crate) fn together(solves: &[Solve]) -> Solve {
        Solve {
            iterations: solves.iter().map(|solve| solve.iterations).sum(),
            residual: solves.iter().map(|solve| solve.residual).fold(0.0, f64::max),
            converged: solves.iter().all(|solve| solve.converged),
            refinements: solves.iter().map(|solve| solve.refinements).sum(),
        }
    }
}

/// Asked before every iteration; an error ends the solve.
pub(crate) type GoOn<'a> = &'a (dyn Fn() -> Result<(), Error> + Sync);

/// Most passes of refinement: each gains about as many digits as the tolerance has.
pub(crate) const MAX_REFINEMENTS: usize = 2;

/// The residual that a pass of refinement aims at, as a share of the one before.
pub(crate) const REFINED: f64 = 1e-6;

/// A row this many times the typical error is taken as it is.
const SETTLED: f64 = 1e4;

/// Solves (I − αS)F = Y (eq. 11) in place: `soft` holds the start (the last round's solution) and then F.
pub(crate) fn propagate(
    affinity: &Affinity<'_>,
    labels: &LabelMatrix<'_>,
    reached: &[bool],
    parameters: &CheckedParameters,
    go_on: GoOn<'_>,
    soft: &mut SoftLabels,
) -> Result<Solve, Error> {
    let (nodes, classes) = (affinity.nodes(), soft.classes);
    // Nodes that are new start from their own label.
    let known = soft.nodes();
    soft.values.resize(nodes * classes, 0.0);
    for node in known..nodes {
        if let Some((class, weight)) = labels.entry(node) {
            soft.values[node * classes + class] = weight;
        }
    }
    if parameters.resolved_solver() == Solver::Dense {
        soft.error = dense::solve(affinity, labels, parameters.alpha, &mut soft.values)?;
        return Ok(Solve::KNOWN);
    }

    let limit = parameters.max_iterations;
    let target: Vec<f64> = (0..classes).map(|c| parameters.tolerance * labels.norm(c)).collect();
    let first = cg::solve(affinity, Some(labels), parameters.alpha, &target, limit, go_on, &mut soft.values)?;
    let mut solve = Solve::new(&first, |class| labels.norm(class));

    let bound = |residuals: &[f64]| error_bound(residuals, parameters.alpha);
    soft.error = bound(&first.residuals) as f32;
    let mut residuals = first.residuals;
    // Far from every labelled node F is tiny, and a residual that is small as a whole need not be small there.
    while solve.converged
        && solve.refinements < MAX_REFINEMENTS
        && any_unsettled(&soft.values, classes, reached, least_settled(bound(&residuals), nodes))
    {
        let target: Vec<f64> = residuals.iter().map(|r| r * REFINED).collect();
        let again =
            cg::solve(affinity, Some(labels), parameters.alpha, &target, limit, go_on, &mut soft.values)?;
        solve.iterations += again.iterations;
        solve.refinements += 1;
        soft.error = bound(&again.residuals) as f32;
        residuals = again.residuals;
        if !again.converged {
            break;
        }
    }
    Ok(solve)
}

/// The largest error that these residuals allow: ‖e‖₂ ≤ ‖r‖₂ / (1 − α), as no eigenvalue of S exceeds 1.
pub(crate) fn error_bound(residuals: &[f64], alpha: f64) -> f64 {
    residuals.iter().copied().fold(0.0, f64::max) / (1.0 - alpha)
}

/// Reached rows below this are refined.
pub(crate) fn least_settled(bound: f64, nodes: usize) -> f64 {
    SETTLED * bound / (nodes as f64).sqrt()
}

/// Is any reached row of F below this?
pub(crate) fn any_unsettled(values: &[f32], classes: usize, reached: &[bool], least: f64) -> bool {
    let mut rows = values.chunks_exact(classes.max(1)).zip(reached);
    rows.any(|(row, &reached)| reached && f64::from(row.iter().copied().fold(0.0, f32::max)) < least)
}
