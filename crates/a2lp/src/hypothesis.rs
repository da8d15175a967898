//! What a consensus assumes about the classes of the target: the source's mix, or its own.

use crate::labels::ClassId;
use crate::neighbours::NeighbourLists;
use crate::parameters::{CheckedParameters, Method, Mix};
use crate::pseudo_labels::PseudoLabels;
use serde::{Deserialize, Serialize};

/// The class mix that the labels of a run assume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AssumedMix {
    /// The class shares of the source.
    Same,
    /// The target's own.
    Own,
}

/// An assumption about the class mix of the target, and what follows from it.
#[derive(Debug, PartialEq)]
pub(crate) struct Hypothesis {
    pub(crate) mix: AssumedMix,
    /// τ: how strongly class sizes are corrected towards the source's.
    pub(crate) prior_strength: f64,
    /// Share of the smoothed probabilities in the result.
    pub(crate) smoothing: f64,
    /// Anchors with fewer items than this share of what the source's mix predicts are drawn to the source; 0: none are.
    pub(crate) shrinkage: f64,
    /// Do anchors of classes that are rarer than in the source weigh less?
    pub(crate) scales_mass: bool,
}

const SAME: Hypothesis = Hypothesis {
    mix: AssumedMix::Same,
    prior_strength: 0.5,
    smoothing: 0.5,
    shrinkage: 0.0,
    scales_mass: false,
};

const OWN: Hypothesis = Hypothesis {
    mix: AssumedMix::Own,
    prior_strength: 0.0,
    smoothing: 1.0,
    shrinkage: 0.5,
    scales_mass: true,
};

/// Rounds after which one hypothesis goes on.
pub(crate) const DECIDE_AFTER: usize = 3;
/// The target's own mix must fit better than the source's by more than this.
const MARGIN: f64 = 0.02;
/// A class with fewer items than this share of what the source's mix predicts is probably absent.
const ABSENT: f64 = 0.05;

impl CheckedParameters {
    /// The hypotheses of a run; none for methods without a vote.
    pub(crate) fn hypotheses(&self) -> &'static [Hypothesis] {
        const BOTH: [Hypothesis; 2] = [SAME, OWN];
        match (self.method, self.mix) {
            (Method::Consensus, Mix::Auto) => &BOTH,
            (Method::Consensus, Mix::Same) => &BOTH[..1],
            (Method::Consensus, Mix::Own) => &BOTH[1..],
            _ => &[],
        }
    }
}

/// (g − h)/(1 − h): g the share of target neighbours with equal labels, h what chance would give. `None` if all items have
/// one class, or no item has a neighbour.
pub(crate) fn coherence(lists: &NeighbourLists, first_target: usize, labels: &PseudoLabels) -> Option<f64> {
    let label = |node: usize| labels.labels()[node - first_target];
    let (mut equal, mut all) = (0usize, 0usize);
    for node in first_target..lists.nodes() {
        let neighbours = lists.of(node).iter().map(|ranked| ranked.node() as usize);
        for neighbour in neighbours.filter(|&neighbour| neighbour >= first_target) {
            all += 1;
            equal += usize::from(label(node).is_some() && label(node) == label(neighbour));
        }
    }
    let counts = labels.class_counts();
    let labelled = counts.iter().sum::<usize>().max(1) as f64;
    let chance: f64 = counts.iter().map(|&n| (n as f64 / labelled).powi(2)).sum();
    (chance < 1.0 && all > 0).then(|| (equal as f64 / all as f64 - chance) / (1.0 - chance))
}

/// Label-free fit of a labelling to a graph: mean confidence, how much more often target neighbours have equal labels than
/// chance predicts, and how often source neighbours have the same label. `lists` are of both domains, without anchors.
pub(crate) fn fit(lists: &NeighbourLists, source: &[ClassId], labels: &PseudoLabels) -> f64 {
    let (mut same, mut all) = (0usize, 0usize);
    for (node, label) in (source.len()..).zip(labels.labels()) {
        let neighbours = lists.of(node).iter();
        for class in neighbours.filter_map(|ranked| source.get(ranked.node() as usize)) {
            all += 1;
            same += usize::from(*label == Some(*class));
        }
    }
    let same = if all > 0 { same as f64 / all as f64 } else { 1.0 };
    labels.mean_confidence() + coherence(lists, source.len(), labels).unwrap_or(1.0) + same
}

/// The class mix of a consensus: the hypothesis that was chosen, and the class shares it found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixChoice {
    /// The hypothesis that the labels assume.
    pub chosen: AssumedMix,
    /// How well the labels fit that assume the source's mix; `None` if it was not tried.
    pub fit_same: Option<f64>,
    /// How well the labels fit that assume the target's own mix; `None` if it was not tried.
    pub fit_own: Option<f64>,
}

impl MixChoice {
    /// Chooses by the fits of the hypotheses that ran.
    pub(crate) fn new(fit_same: Option<f64>, fit_own: Option<f64>) -> Self {
        let chosen = match (fit_same, fit_own) {
            (Some(same), Some(own)) if own - same > MARGIN => AssumedMix::Own,
            (None, Some(_)) => AssumedMix::Own,
            _ => AssumedMix::Same,
        };
        MixChoice { chosen, fit_same, fit_own }
    }
}

/// A class can only be missed if the source's mix predicts as many items as this: chance alone leaves it empty in 1 of 20 draws.
const MISSED: f64 = 3.0;

/// Which classes of the source the target seems to hold, from the number of items of each: those with at least a twentieth of the
/// items that the source's mix predicts, and those with too few predicted to be missed.
pub(crate) fn present(source_counts: &[usize], target_counts: &[usize]) -> Vec<bool> {
    let (source, target): (usize, usize) = (source_counts.iter().sum(), target_counts.iter().sum());
    let expected = |count: usize| count as f64 / source.max(1) as f64 * target as f64;
    source_counts
        .iter()
        .zip(target_counts)
        .map(|(&in_source, &items)| {
            expected(in_source) < MISSED || items > 0 && items as f64 >= ABSENT * expected(in_source)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_is_chosen_only_by_a_margin() {
        assert_eq!(MixChoice::new(Some(2.0), Some(2.01)).chosen, AssumedMix::Same);
        assert_eq!(MixChoice::new(Some(2.0), Some(2.03)).chosen, AssumedMix::Own);
        assert_eq!(MixChoice::new(None, Some(0.1)).chosen, AssumedMix::Own);
        assert_eq!(MixChoice::new(Some(0.1), None).chosen, AssumedMix::Same);
    }

    #[test]
    fn a_class_with_a_twentieth_of_its_items_is_there() {
        assert_eq!(present(&[50, 50, 1], &[95, 5, 0]), [true, true, true]);
        assert_eq!(present(&[50, 50, 5], &[98, 2, 0]), [true, false, false]);
        assert_eq!(present(&[1, 1], &[0, 1]), [true, true]);
    }
}
