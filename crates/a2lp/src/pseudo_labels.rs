//! From scores to answers: label, probabilities, confidence, margin and status of every target item.

use crate::labels::ClassId;
use crate::propagation::SoftLabels;
use serde::{Deserialize, Serialize};

/// What can be said of a target item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It has a label.
    Labelled,
    /// It has a label, but its confidence is below the minimum asked for.
    LowConfidence,
    /// A path leads to a label, but so faintly that the scores are within the solver's error.
    Weak,
    /// No path leads to any label.
    Unreached,
}

impl Status {
    /// The word used in files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Labelled => "labelled",
            Status::LowConfidence => "low-confidence",
            Status::Weak => "weak",
            Status::Unreached => "unreached",
        }
    }
}

/// Labels of the target items and how far to trust them.
#[derive(Clone, Debug, PartialEq)]
pub struct PseudoLabels {
    classes: usize,
    labels: Vec<Option<ClassId>>,
    probabilities: Vec<f32>,
    confidence: Vec<f32>,
    margin: Vec<f32>,
    status: Vec<Status>,
}

impl PseudoLabels {
    /// Reads the target rows of F. `candidates` are the classes with a labelled node: K of eq. 8.
    pub(crate) fn read(
        soft: &SoftLabels,
        first_target: usize,
        targets: usize,
        reached: &[bool],
        candidates: &[bool],
    ) -> Self {
        let classes = candidates.len();
        let k = candidates.iter().filter(|&&c| c).count();
        let mut read = PseudoLabels {
            classes,
            labels: Vec::with_capacity(targets),
            probabilities: Vec::with_capacity(targets * classes),
            confidence: Vec::with_capacity(targets),
            margin: Vec::with_capacity(targets),
            status: Vec::with_capacity(targets),
        };
        for (node, &reached) in (first_target..).zip(&reached[first_target..][..targets]) {
            let row = soft.row(node);
            let best = best_class(row, candidates);
            // Conjugate gradients may leave entries like -1e-9.
            let clipped = |c: usize| if candidates[c] { f64::from(row[c].max(0.0)) } else { 0.0 };
            let sum: f64 = (0..classes).map(clipped).sum();
            let start = read.probabilities.len();
            if reached && sum > 0.0 {
                read.probabilities.extend((0..classes).map(|c| (clipped(c) / sum) as f32));
            } else {
                read.probabilities.extend(candidates.iter().map(|&c| if c { 1.0 / k as f32 } else { 0.0 }));
            }
            let p = &read.probabilities[start..];
            let largest = best.map_or(0.0, |c| row[c as usize]);
            let status = match () {
                () if !reached => Status::Unreached,
                () if sum <= 0.0 || largest <= soft.error() => Status::Weak,
                () => Status::Labelled,
            };
            let trusted = status == Status::Labelled;
            read.confidence.push(if trusted { entropy_weight(p, k) } else { 0.0 });
            read.margin.push(if trusted { margin(p) } else { 0.0 });
            read.labels.push(if status == Status::Unreached { None } else { best });
            read.status.push(status);
        }
        read
    }

    /// Labels of items whose class probabilities are known from elsewhere, for example from a classifier.
    pub fn from_probabilities(classes: usize, probabilities: Vec<f32>) -> Self {
        let rows = || probabilities.chunks_exact(classes.max(1));
        let every = vec![true; classes];
        PseudoLabels {
            classes,
            labels: rows().map(|p| best_class(p, &every)).collect(),
            confidence: rows().map(|p| entropy_weight(p, classes)).collect(),
            margin: rows().map(margin).collect(),
            status: rows().map(|_| Status::Labelled).collect(),
            probabilities,
        }
    }

    /// Marks labelled items below `least` as [`Status::LowConfidence`].
    pub(crate) fn mark_low_confidence(&mut self, least: f32) {
        for (status, &confidence) in self.status.iter_mut().zip(&self.confidence) {
            if *status == Status::Labelled && confidence < least {
                *status = Status::LowConfidence;
            }
        }
    }

    /// Gives an item without a label one; status and confidence stay.
    pub(crate) fn fill(&mut self, item: usize, class: ClassId) {
        debug_assert!(self.labels[item].is_none());
        self.labels[item] = Some(class);
    }

    /// Puts other labels in place; status and confidence stay.
    pub(crate) fn assume(&mut self, labels: &[Option<ClassId>]) {
        self.labels.copy_from_slice(labels);
    }

    /// Number of target items.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// No items?
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Class of each item; `None` where no label reaches.
    pub fn labels(&self) -> &[Option<ClassId>] {
        &self.labels
    }

    /// Probability of each class for one item; they sum to 1.
    pub fn probabilities(&self, item: usize) -> &[f32] {
        &self.probabilities[item * self.classes..][..self.classes]
    }

    /// The entropy weight w of eq. 8, between 0 and 1. Not a calibrated probability.
    pub fn confidence(&self) -> &[f32] {
        &self.confidence
    }

    /// First minus second probability.
    pub fn margin(&self) -> &[f32] {
        &self.margin
    }

    /// What can be said of each item.
    pub fn status(&self) -> &[Status] {
        &self.status
    }

    /// Items with this status.
    pub fn count(&self, status: Status) -> usize {
        self.status.iter().filter(|&&s| s == status).count()
    }

    /// Items per predicted class.
    pub fn class_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes];
        for label in self.labels.iter().flatten() {
            counts[*label as usize] += 1;
        }
        counts
    }

    /// Items whose label differs from `other`'s.
    pub fn changed_from(&self, other: &[Option<ClassId>]) -> usize {
        self.labels.iter().zip(other).filter(|(a, b)| a != b).count()
    }
}

/// argmax_j F_ij, ties to the lower class; `None` when no class stands out at all.
fn best_class(row: &[f32], candidates: &[bool]) -> Option<ClassId> {
    let mut best: Option<usize> = None;
    let mut all_zero = true;
    for c in (0..row.len()).filter(|&c| candidates[c]) {
        all_zero &= row[c] == 0.0;
        if best.is_none_or(|b| row[c] > row[b]) {
            best = Some(c);
        }
    }
    best.filter(|_| !all_zero).map(|c| c as ClassId)
}

/// w = 1 − H(p)/ln K (eq. 8), with 0·ln 0 = 0; with a single class there is nothing to doubt.
pub(crate) fn entropy_weight(p: &[f32], k: usize) -> f32 {
    if k < 2 {
        return 1.0;
    }
    let entropy: f64 = p.iter().filter(|&&p| p > 0.0).map(|&p| -f64::from(p) * f64::from(p).ln()).sum();
    (1.0 - entropy / (k as f64).ln()).clamp(0.0, 1.0) as f32
}

fn margin(p: &[f32]) -> f32 {
    let (mut first, mut second) = (0f32, 0f32);
    for &p in p {
        if p > first {
            (first, second) = (p, first);
        } else if p > second {
            second = p;
        }
    }
    first - second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_weight_runs_from_uniform_to_certain() {
        assert_eq!(entropy_weight(&[0.25; 4], 4), 0.0);
        assert_eq!(entropy_weight(&[0.0, 1.0, 0.0], 3), 1.0);
        // H(0.9, 0.1) / ln 2 = 0.468996
        assert!((entropy_weight(&[0.9, 0.1], 2) - 0.531004).abs() < 1e-6);
        assert_eq!(entropy_weight(&[1.0], 1), 1.0);
    }

    #[test]
    fn an_empty_row_has_no_class_rather_than_class_zero() {
        assert_eq!(best_class(&[0.0, 0.0], &[true, true]), None);
        assert_eq!(best_class(&[0.2, 0.2], &[true, true]), Some(0));
        assert_eq!(best_class(&[0.9, 0.2], &[false, true]), Some(1));
        assert_eq!(best_class(&[-0.9, -0.2], &[true, true]), Some(1));
    }

    #[test]
    fn margin_is_first_minus_second() {
        assert!((margin(&[0.1, 0.6, 0.3]) - 0.3).abs() < 1e-7);
        assert_eq!(margin(&[1.0]), 1.0);
    }
}
