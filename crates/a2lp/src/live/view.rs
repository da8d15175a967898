//! One view of a finished run: its graph, F as the run left it, and F as corrections have made it.

use super::{STEP, rounded};
use crate::affinity::Affinity;
use crate::error::Error;
use crate::known::KnownLabels;
use crate::labels::ClassId;
use crate::parameters::CheckedParameters;
use crate::propagation::{LabelMatrix, Limits, SoftLabels, Solve, smooth};
use crate::pseudo_labels::PseudoLabels;
use crate::views::Nodes;
use rayon::prelude::*;
use std::ops::Range;

/// What corrections add to one column of Y, as multiples of a person's weight.
pub(super) struct Column {
    class: usize,
    /// Items, with 1 if they are known to be of the class now, and −1 if they were in the run.
    entries: Vec<(usize, f32)>,
}

impl Column {
    pub(super) fn new(class: ClassId, known_to_run: &KnownLabels, known: &KnownLabels) -> Self {
        let of = |labels: &KnownLabels, other: &KnownLabels, sign: f32| -> Vec<(usize, f32)> {
            let new = |&(item, label): &(usize, ClassId)| label == class && other.get(item) != Some(class);
            labels.iter().filter(new).map(|(item, _)| (item, sign)).collect()
        };
        let mut entries = of(known, known_to_run, 1.0);
        entries.extend(of(known_to_run, known, -1.0));
        Column { class: class as usize, entries }
    }
}

pub(super) struct LiveView {
    pub(super) affinity: Affinity<'static>,
    pub(super) targets: Range<usize>,
    pub(super) labels: Vec<Option<ClassId>>,
    /// What a person's label weighs in each class.
    weights: Vec<f32>,
    of_run: SoftLabels,
    /// The step of the scores of each node.
    steps: Vec<f32>,
    pub(super) now: SoftLabels,
    reached_in_run: Vec<bool>,
    reached: Vec<bool>,
}

/// The error of a run over all pairs.
pub(super) fn needs_nearest() -> Error {
    Error::Graph("a run over all pairs cannot be corrected; use nearest neighbours".into())
}

impl LiveView {
    pub(super) fn new(
        nodes: Nodes,
        soft: SoftLabels,
        classes: usize,
        parameters: &CheckedParameters,
    ) -> Result<Self, Error> {
        let affinity = nodes.own_affinity()?.ok_or_else(needs_nearest)?;
        if parameters.alpha >= 1.0 {
            let rule = "a run that is to be corrected needs an alpha below 1";
            return Err(Error::Parameter { name: "alpha", value: parameters.alpha.to_string(), rule });
        }
        let masses = nodes.masses(parameters.known_weight);
        let matrix = LabelMatrix::with_masses(&nodes.labels, masses, classes, parameters.label_weight);
        let weights = (0..classes).map(|class| matrix.weight(class) * parameters.known_weight).collect();
        let reached = affinity.reached(&nodes.labels);
        Ok(LiveView {
            affinity,
            targets: nodes.targets(),
            labels: nodes.labels,
            weights,
            steps: (0..soft.nodes()).map(|node| STEP * soft.row(node).iter().sum::<f32>()).collect(),
            now: soft.clone(),
            of_run: soft,
            reached_in_run: reached.clone(),
            reached,
        })
    }

    pub(super) fn items(&self) -> usize {
        self.targets.len()
    }

    /// Makes room for another class.
    pub(super) fn widen(&mut self, classes: usize) {
        // No labelled node of the class, so no class size to weigh by.
        let known = self.weights.iter().copied().fold(0.0, f32::max);
        self.weights.resize(classes, known);
        self.of_run.widen(classes);
        self.now.widen(classes);
    }

    /// Solves for what these columns add to F. Marks the items whose row of F changes.
    pub(super) fn solve(
        &mut self,
        columns: &[Column],
        alpha: f64,
        limits: Limits,
        touched: &mut [bool],
    ) -> Result<Solve, Error> {
        let width = columns.len();
        let mut added = vec![0f32; self.affinity.nodes() * width];
        let mut errors = Vec::with_capacity(width);
        for (at, column) in columns.iter().enumerate() {
            let weight = self.weights[column.class];
            for &(item, sign) in &column.entries {
                added[(self.targets.start + item) * width + at] = sign * weight;
            }
            let norm = f64::from(weight) * (column.entries.len() as f64).sqrt();
            // ‖e‖₂ ≤ ‖r‖₂ / (1 − α), as no eigenvalue of S exceeds 1: what is below cannot be told from 0.
            errors.push((limits.tolerance * norm / (1.0 - alpha)) as f32);
        }
        if width == 0 {
            return Ok(Solve::KNOWN);
        }
        let solve = smooth(&self.affinity, width, alpha, limits, &|| Ok(()), &mut added)?;
        for (node, added) in added.chunks_exact(width).enumerate() {
            let item = node.checked_sub(self.targets.start).filter(|&item| item < touched.len());
            for ((column, &value), &error) in columns.iter().zip(added).zip(&errors) {
                let value = if value.abs() > error { value } else { 0.0 };
                let new = self.of_run.row(node)[column.class] + rounded(value, self.steps[node]);
                let old = &mut self.now.row_mut(node)[column.class];
                if *old != new {
                    *old = new;
                    if let Some(item) = item {
                        touched[item] = true;
                    }
                }
            }
        }
        Ok(solve)
    }

    /// Finds which nodes labels reach, if a person named items that none reached before. Marks the items where that changes.
    pub(super) fn reach(&mut self, known: &KnownLabels, touched: &mut [bool]) {
        let first = self.targets.start;
        let reached = match known.iter().any(|(item, _)| !self.reached_in_run[first + item]) {
            true => {
                let mut labels = self.labels.clone();
                known.mark(&mut labels, first);
                self.affinity.reached(&labels)
            }
            false => self.reached_in_run.clone(),
        };
        for (item, touched) in touched.iter_mut().enumerate() {
            *touched |= reached[first + item] != self.reached[first + item];
        }
        self.reached = reached;
    }

    /// What the view says of some items.
    pub(super) fn read(&self, items: &[usize], candidates: &[bool]) -> PseudoLabels {
        let nodes = items.par_iter().map(|item| self.targets.start + item);
        PseudoLabels::read(&self.now, nodes, &self.reached, candidates)
    }
}
