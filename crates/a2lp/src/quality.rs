//! How good labels look without knowing the truth: do they lead back to the source, and do neighbours agree?
//!
//! Ranks runs on the same features well. It is no estimate of the accuracy, and settings tuned by it get worse.

use crate::affinity::symmetrise;
use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::labels::ClassId;
use crate::neighbours::{NeighbourLists, find_neighbours};
use crate::observer::Observer;
use crate::parameters::{CheckedParameters, LabelWeight, Parameters, Similarity};
use crate::propagation::{GoOn, LabelMatrix, SoftLabels, propagate};
use crate::pseudo_labels::PseudoLabels;
use crate::view::{centre_domains, half_of_each};
use serde::{Deserialize, Serialize};

/// Neighbours in the graph that quality is measured on, whatever the run used: scores are to be comparable.
const NEIGHBOURS: usize = 20;

/// Scores below this are remarked on.
pub(crate) const LOW: f64 = 0.65;

/// What labels look like from within.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// (reverse + coherence) / 2.
    pub score: f64,
    /// Share of the source that gets its own label back from the target's labels, mean over the classes.
    pub reverse: f64,
    /// How much more often target neighbours have equal labels than chance would have it: 0 = chance, 1 = always.
    pub coherence: f64,
}

/// The neighbours that quality is measured on: centred features, half of them from either domain. Takes unit rows.
pub(crate) fn quality_graph(
    unit: FeatureMatrix,
    first_target: usize,
    parameters: &CheckedParameters,
    observer: &dyn Observer,
) -> Result<NeighbourLists, Error> {
    let centred = centre_domains(unit, first_target);
    let k = NEIGHBOURS.min(centred.rows());
    let (method, seed) = (parameters.graph_method, parameters.seed);
    let wanted = half_of_each(k, first_target);
    Ok(find_neighbours(&centred, wanted, Similarity::Cosine, method, seed, observer)?.0)
}

impl Quality {
    /// Measures the labels of a target over neighbours of both domains.
    pub(crate) fn measure(
        lists: &NeighbourLists,
        source: &[ClassId],
        classes: usize,
        target: &PseudoLabels,
        go_on: GoOn<'_>,
    ) -> Result<Self, Error> {
        let reverse = reverse(lists, source, classes, target.labels(), go_on)?;
        let coherence = coherence(lists, source.len(), target);
        Ok(Quality { score: (reverse + coherence) / 2.0, reverse, coherence })
    }
}

/// Propagates the target's labels back to the source, which forgets its own.
fn reverse(
    lists: &NeighbourLists,
    source: &[ClassId],
    classes: usize,
    target: &[Option<ClassId>],
    go_on: GoOn<'_>,
) -> Result<f64, Error> {
    let mut labels: Vec<Option<ClassId>> = vec![None; source.len()];
    labels.extend_from_slice(target);
    let affinity = symmetrise(lists, Similarity::Cosine)?;
    let reached = affinity.reached(&labels);
    let parameters = Parameters::new().check()?;
    let mut soft = SoftLabels::new(classes);
    let matrix = LabelMatrix::new(&labels, classes, LabelWeight::None);
    propagate(&affinity, &matrix, &reached, &parameters, go_on, &mut soft)?;
    let back = PseudoLabels::read(&soft, 0, source.len(), &reached, &vec![true; classes]);
    let (mut right, mut all) = (vec![0usize; classes], vec![0usize; classes]);
    for (&truth, back) in source.iter().zip(back.labels()) {
        all[truth as usize] += 1;
        right[truth as usize] += usize::from(*back == Some(truth));
    }
    let shares: Vec<f64> = right
        .iter()
        .zip(&all)
        .filter(|(_, all)| **all > 0)
        .map(|(&right, &all)| right as f64 / all as f64)
        .collect();
    Ok(shares.iter().sum::<f64>() / shares.len().max(1) as f64)
}

/// (g − h)/(1 − h): g the share of target neighbours with equal labels, h what chance would give.
fn coherence(lists: &NeighbourLists, first_target: usize, target: &PseudoLabels) -> f64 {
    let label = |node: usize| target.labels()[node - first_target];
    let (mut equal, mut all) = (0usize, 0usize);
    for node in first_target..lists.nodes() {
        for neighbour in lists.of(node).iter().map(|r| r.node() as usize).filter(|&n| n >= first_target) {
            all += 1;
            equal += usize::from(label(node).is_some() && label(node) == label(neighbour));
        }
    }
    let labelled = target.class_counts().iter().sum::<usize>().max(1) as f64;
    let chance: f64 = target.class_counts().iter().map(|&n| (n as f64 / labelled).powi(2)).sum();
    let observed = equal as f64 / all.max(1) as f64;
    if chance < 1.0 { (observed - chance) / (1.0 - chance) } else { 0.0 }
}
