//! Anchors: one virtual labelled item per class, the weighted mean of the target items predicted as it (eq. 9).

use crate::features::{FeatureMatrix, SEGMENT, normalise};
use crate::labels::ClassId;
use crate::neighbours::Numbering;
use crate::pseudo_labels::{PseudoLabels, Status};
use rayon::prelude::*;

/// A virtual labelled item.
#[derive(Clone, Debug, PartialEq)]
pub struct Anchor {
    /// Its class.
    pub class: ClassId,
    /// The round after which it was made, from 1.
    pub round: usize,
    /// Target items averaged in it.
    pub items: usize,
    /// Its feature vector in the graph.
    pub vector: Vec<f32>,
    /// Its weight as a labelled node, where a source row has 1.
    pub mass: f32,
}

/// How target rows are averaged.
pub(crate) struct Averaging<'a> {
    /// Rows of the graph; target items start at `first_target`.
    pub(crate) features: &'a FeatureMatrix,
    pub(crate) first_target: usize,
    /// The order in which rows are added up.
    pub(crate) numbering: Numbering,
    /// Lengths the rows had before scaling, to average the raw rows (eq. 9 to the letter).
    pub(crate) norms: Option<&'a [f64]>,
    /// Scale the anchor to unit length?
    pub(crate) unit: bool,
    /// Use the entropy weights, or all alike?
    pub(crate) entropy_weights: bool,
    /// Draw anchors of few items towards the source?
    pub(crate) shrinkage: Option<Shrinkage<'a>>,
}

/// Anchors of few or uncertain items are drawn towards the mean of their class in the source.
pub(crate) struct Shrinkage<'a> {
    /// A row per class.
    pub(crate) means: &'a FeatureMatrix,
    /// For every class, the sum of weights at which an anchor lies half-way between its items and that mean.
    pub(crate) half_way: Vec<f64>,
}

/// A weighted sum of rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowSum {
    pub(crate) sum: Vec<f64>,
    /// The sum of the weights, by which eq. 9 divides.
    pub(crate) weight: f64,
    pub(crate) items: usize,
}

impl RowSum {
    pub(crate) fn new(columns: usize) -> Self {
        RowSum { sum: vec![0.0; columns], weight: 0.0, items: 0 }
    }

    /// Adds a row that had this length before it was scaled: lengths belong to the rows, not to the weights.
    pub(crate) fn add_row(&mut self, row: &[f32], weight: f64, length: f64) {
        let factor = length * weight;
        self.sum.iter_mut().zip(row).for_each(|(sum, &value)| *sum += factor * f64::from(value));
        self.weight += weight;
        self.items += 1;
    }

    /// Adds the sum of another segment.
    pub(crate) fn add(&mut self, segment: &RowSum) {
        self.sum.iter_mut().zip(&segment.sum).for_each(|(sum, part)| *sum += part);
        self.weight += segment.weight;
        self.items += segment.items;
    }

    /// The weighted mean.
    fn mean(&self) -> Vec<f32> {
        self.sum.iter().map(|sum| (sum / self.weight) as f32).collect()
    }

    /// The anchor of a class, if any item is in it.
    pub(crate) fn anchor(
        &self,
        class: usize,
        round: usize,
        shrinkage: Option<&Shrinkage<'_>>,
        unit: bool,
    ) -> Option<Anchor> {
        if self.items == 0 {
            return None;
        }
        let mut vector = self.mean();
        if let Some(shrinkage) = shrinkage {
            let own = self.weight / (self.weight + shrinkage.half_way[class]);
            let mean = shrinkage.means.row(class);
            vector.iter_mut().zip(mean).for_each(|(value, &mean)| {
                *value = (own * f64::from(*value) + (1.0 - own) * f64::from(mean)) as f32;
            });
        }
        if unit {
            normalise(&mut vector);
        }
        Some(Anchor { class: class as ClassId, round, items: self.items, vector, mass: 1.0 })
    }
}

/// The class whose anchor an item feeds. Unreached and weak items feed none.
pub(crate) fn feeds(pseudo: &PseudoLabels, item: usize) -> Option<ClassId> {
    match pseudo.status()[item] {
        Status::Weak | Status::Unreached => None,
        _ => pseudo.labels()[item],
    }
}

/// The weight of an item in its anchor: its entropy weight, if those of its class are to be trusted.
pub(crate) fn weight_in_anchor(pseudo: &PseudoLabels, item: usize, trusted: bool) -> f64 {
    if trusted { f64::from(pseudo.confidence()[item]) } else { 1.0 }
}

/// Makes the anchors of one round. A class that no item was predicted as gets none; a class whose items all have weight 0 falls
/// back to the plain mean.
pub(crate) fn place_anchors(pseudo: &PseudoLabels, round: usize, averaging: &Averaging<'_>) -> Vec<Anchor> {
    let Averaging { features, first_target, numbering, norms, .. } = averaging;
    // Positions and items of every class.
    let mut members: Vec<Vec<(usize, usize)>> = vec![Vec::new(); pseudo.classes()];
    for position in 0..features.rows() {
        let item = numbering.node_at(position).checked_sub(*first_target).filter(|&item| item < pseudo.len());
        if let Some(item) = item
            && let Some(class) = feeds(pseudo, item)
        {
            members[class as usize].push((position, item));
        }
    }
    let anchor = |(class, items): (usize, Vec<(usize, usize)>)| {
        let trusted =
            averaging.entropy_weights && items.iter().any(|&(_, item)| pseudo.confidence()[item] > 0.0);
        let mut all = RowSum::new(features.columns());
        for segment in items.chunk_by(|a, b| a.0 / SEGMENT == b.0 / SEGMENT) {
            let mut sum = RowSum::new(features.columns());
            for &(_, item) in segment {
                let row = first_target + item;
                let length = norms.map_or(1.0, |norms| norms[row]);
                sum.add_row(features.row(row), weight_in_anchor(pseudo, item, trusted), length);
            }
            all.add(&sum);
        }
        all.anchor(class, round, averaging.shrinkage.as_ref(), averaging.unit)
    };
    let anchors: Vec<Option<Anchor>> = members.into_par_iter().enumerate().map(anchor).collect();
    anchors.into_iter().flatten().collect()
}
