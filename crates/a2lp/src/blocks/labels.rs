//! The label matrix Y, and labels read from F.

use crate::parameters::LabelWeight;
use crate::propagation::SoftLabels;
use crate::pseudo_labels::PseudoLabels;

/// The entries of Y: what a labelled node of each class has, and the norms of its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelEntries {
    /// The entry of a node of each class.
    pub values: Vec<f32>,
    /// ‖Y_c‖₂
    pub norms: Vec<f64>,
}

impl LabelEntries {
    /// From the number of labelled nodes of each class.
    pub fn new(counts: &[usize], weight: LabelWeight) -> Self {
        let values: Vec<f32> = counts.iter().map(|&count| weight.entry(count)).collect();
        let norm = |(&count, &value): (&usize, &f32)| {
            (0..count).fold(0f64, |sum, _| sum + f64::from(value).powi(2)).sqrt()
        };
        LabelEntries { norms: counts.iter().zip(&values).map(norm).collect(), values }
    }
}

/// Labels from rows of F. Scores up to `error` cannot be told from 0; `candidates` are the classes with a labelled node.
pub fn read_labels(f: Vec<f32>, error: f32, reached: &[bool], candidates: &[bool]) -> PseudoLabels {
    let soft = SoftLabels::with_error(candidates.len(), f, error);
    PseudoLabels::read(&soft, 0..reached.len(), reached, candidates)
}

/// Is any reached row of F so small that it may be an error of the solver?
pub fn any_unsettled(f: &[f32], classes: usize, reached: &[bool], least: f64) -> bool {
    crate::propagation::any_unsettled(f, classes, reached, least)
}

/// Marks items below this confidence.
pub fn mark_low_confidence(labels: &mut PseudoLabels, least: f32) {
    labels.mark_low_confidence(least);
}

/// Bytes of an item in [`label_records`].
pub fn label_record_bytes(classes: usize) -> usize {
    16 + 4 * classes
}

/// All that labels say, a record of the same size for each item.
pub fn label_records(labels: &PseudoLabels) -> Vec<u8> {
    labels.to_records()
}

/// From such records.
pub fn labels_from_records(records: &[u8], classes: usize) -> PseudoLabels {
    PseudoLabels::from_records(records, classes)
}
