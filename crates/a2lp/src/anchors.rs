//! Anchors: one virtual labelled item per class, the weighted mean of the target items predicted as it (eq. 9).

use crate::features::{FeatureMatrix, normalise, weighted_mean};
use crate::labels::ClassId;
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

/// Makes the anchors of one round. A class that no item was predicted as gets none; unreached and weak items
/// feed none; a class whose items all have weight 0 falls back to the plain mean.
pub(crate) fn place_anchors(pseudo: &PseudoLabels, round: usize, averaging: &Averaging<'_>) -> Vec<Anchor> {
    let classes = pseudo.class_counts().len();
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); classes];
    for (item, (label, status)) in pseudo.labels().iter().zip(pseudo.status()).enumerate() {
        if let Some(class) = label
            && !matches!(status, Status::Weak | Status::Unreached)
        {
            members[*class as usize].push(item);
        }
    }
    let anchors: Vec<Option<Anchor>> = members
        .into_par_iter()
        .enumerate()
        .map(|(class, items)| {
            let trusted = averaging.entropy_weights && items.iter().any(|&i| pseudo.confidence()[i] > 0.0);
            let weight = |item: usize| {
                let length = averaging.norms.map_or(1.0, |norms| norms[averaging.first_target + item]);
                length * if trusted { f64::from(pseudo.confidence()[item]) } else { 1.0 }
            };
            let rows = items
                .iter()
                .map(|&item| (averaging.features.row(averaging.first_target + item), weight(item)));
            // Eq. 9 divides by Σw; lengths belong to the rows, not to the weights.
            let total: f64 =
                items.iter().map(|&i| if trusted { f64::from(pseudo.confidence()[i]) } else { 1.0 }).sum();
            let mut vector = weighted_mean(rows, total, averaging.features.columns());
            if let Some(shrinkage) = &averaging.shrinkage {
                let own = total / (total + shrinkage.half_way[class]);
                let mean = shrinkage.means.row(class);
                vector.iter_mut().zip(mean).for_each(|(value, &mean)| {
                    *value = (own * f64::from(*value) + (1.0 - own) * f64::from(mean)) as f32;
                });
            }
            if averaging.unit {
                normalise(&mut vector);
            }
            (!items.is_empty()).then_some(Anchor {
                class: class as ClassId,
                round,
                items: items.len(),
                vector,
                mass: 1.0,
            })
        })
        .collect();
    anchors.into_iter().flatten().collect()
}
