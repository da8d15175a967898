//! The result of a run: labels, and the figures of every round.

use crate::anchors::Anchor;
use crate::hypothesis::{MixChoice, present};
use crate::known::KnownLabels;
use crate::labels::{ClassId, Classes};
use crate::method::MethodChoice;
use crate::neighbours::GraphReport;
use crate::parameters::Method;
use crate::propagation::Solve;
use crate::pseudo_labels::PseudoLabels;
use crate::quality::Quality;
use crate::reach::Reach;
use crate::views::ViewName;
use serde::{Deserialize, Serialize};

/// The figures of one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Round {
    /// From 1.
    pub round: usize,
    /// Nodes of the graph, anchors included.
    pub nodes: usize,
    /// Anchors in the graph.
    pub anchors: usize,
    /// Target items whose label differs from the round before (0 in the first).
    pub changed: usize,
    /// Target items that no label reaches.
    pub unreached: usize,
    /// Target items whose scores are within the solver's error.
    pub weak: usize,
    /// Mean confidence over the target.
    pub mean_confidence: f64,
    /// Target items per predicted class.
    pub class_counts: Vec<usize>,
    /// Share of the target items to which all views give the same label; only if several views vote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<f64>,
    /// How the solve went; with several views the worst of them, iterations added up.
    pub solve: Solve,
    /// Seconds spent adding anchors and forming the matrix.
    pub graph_secs: f64,
    /// Seconds spent solving.
    pub solve_secs: f64,
}

/// The labels of one view of a consensus, before the vote.
#[derive(Clone, Debug)]
pub struct Opinion {
    /// The view.
    pub name: ViewName,
    /// The first round in which it voted.
    pub first_round: usize,
    /// Its labels in every round from that one on.
    pub labels_by_round: Vec<Vec<Option<ClassId>>>,
}

/// The verdict of the guard, which compares the method with plain label propagation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guard {
    /// The method asked for.
    pub method: Method,
    /// The quality score of its labels.
    pub score: f64,
    /// The quality score of plain label propagation.
    pub lp_score: f64,
    /// The labels come from plain label propagation.
    pub fell_back: bool,
}

impl Guard {
    /// How much better plain label propagation must score to be taken instead.
    const MARGIN: f64 = 0.01;

    pub(crate) fn judge(method: Method, score: f64, lp_score: f64) -> Self {
        Guard { method, score, lp_score, fell_back: score < lp_score - Self::MARGIN }
    }
}

/// Everything a run returns.
#[derive(Clone, Debug)]
#[must_use]
pub struct Labelling {
    /// How the labels came to the target, and why so.
    pub method: MethodChoice,
    /// The class list.
    pub classes: Classes,
    /// Source rows per class.
    pub source_counts: Vec<usize>,
    /// Labels, probabilities and confidence of the target items.
    pub pseudo_labels: PseudoLabels,
    /// Every anchor that was added to the graph, in order of creation.
    pub anchors: Vec<Anchor>,
    /// The figures of every round.
    pub rounds: Vec<Round>,
    /// Labels after each round; the first round is plain label propagation.
    pub labels_by_round: Vec<Vec<Option<ClassId>>>,
    /// Target items per class by plain label propagation over the features as given: no anchors, no vote.
    pub propagated_counts: Vec<usize>,
    /// The labels of each view of a consensus; empty for the other methods.
    pub views: Vec<Opinion>,
    /// The class mix that a consensus assumes; `None` for the other methods.
    pub mix: Option<MixChoice>,
    /// Which items match nothing in the source, unless that was not to be looked for.
    pub reach: Option<Reach>,
    /// Seconds spent measuring reach, once its neighbours were found.
    pub reach_secs: f64,
    /// The labels that were taken from unknown items, if such items were to be flagged: the classes they look most like.
    pub nearest_labels: Option<Vec<Option<ClassId>>>,
    /// What a person said of target items; the labels never contradict it.
    pub known: KnownLabels,
    /// The quality of the labels, if it was asked for and could be measured.
    pub quality: Option<Quality>,
    /// The verdict of the guard, if it was asked for and quality could be measured.
    pub guard: Option<Guard>,
    /// How neighbours were found (with several views, in the worst of them); `None` for the full graph and for a given graph.
    pub graph: Option<GraphReport>,
    /// Seconds spent finding neighbours.
    pub neighbours_secs: f64,
}

impl Labelling {
    /// Did the solver reach its tolerance in every round?
    pub fn converged(&self) -> bool {
        self.rounds.iter().all(|r| r.solve.converged)
    }

    /// Classes of the source that the target probably lacks: they got fewer than a twentieth of the items that the source's class
    /// mix predicts, and it predicts at least three.
    pub fn absent_classes(&self) -> Vec<ClassId> {
        let present = present(&self.source_counts, &self.pseudo_labels.class_counts());
        let absent = |class: &usize| self.source_counts[*class] > 0 && !present[*class];
        (0..present.len()).filter(absent).map(|class| class as ClassId).collect()
    }

    /// Does this item match nothing in the source? Not if a person named its class, nor if its class is one that only people have
    /// named: then it matches an item that was shown.
    pub(crate) fn is_unknown(&self, item: usize) -> bool {
        let named = || {
            let label = self.pseudo_labels.labels()[item];
            label.is_some_and(|class| self.source_counts[class as usize] == 0)
        };
        let below = self.reach.as_ref().is_some_and(|reach| reach.is_unknown(item));
        below && self.known.get(item).is_none() && !named()
    }

    /// How many views of a consensus gave each target item its label; `None` for the other methods.
    pub fn votes(&self) -> Option<Vec<usize>> {
        let last = self.last_opinions();
        // The label that was taken from an unknown item had votes too.
        let taken = |item: usize| self.nearest_labels.as_ref().and_then(|labels| labels[item]);
        let votes = |(item, label): (usize, &Option<ClassId>)| {
            let label = label.or_else(|| taken(item));
            last.iter().filter(|labels| label.is_some() && labels[item] == label).count()
        };
        (!last.is_empty()).then(|| self.pseudo_labels.labels().iter().enumerate().map(votes).collect())
    }

    /// Target items to which the views of a consensus gave different labels in the last round.
    pub fn disagreements(&self) -> Vec<usize> {
        let last = self.last_opinions();
        let Some((first, others)) = last.split_first() else { return Vec::new() };
        (0..first.len()).filter(|&item| others.iter().any(|labels| labels[item] != first[item])).collect()
    }

    fn last_opinions(&self) -> Vec<&Vec<Option<ClassId>>> {
        self.views.iter().filter_map(|view| view.labels_by_round.last()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_falls_back_only_for_clearly_better_labels() {
        let fell_back = |score, lp_score| Guard::judge(Method::A2lp, score, lp_score).fell_back;
        assert!(fell_back(0.80, 0.82));
        assert!(!fell_back(0.80, 0.805));
        assert!(!fell_back(0.80, 0.70));
    }
}
