//! The features less the mean of their own domain, with neighbours from both domains. Also the space of the quality score.

use super::nodes::{Graph, Nodes, Scaling};
use crate::features::FeatureMatrix;
use crate::labels::ClassId;
use crate::neighbours::{GraphReport, NeighbourLists, Wanted};
use crate::similarity::Similarity;
use std::sync::Arc;

/// Nodes of centred rows of unit length.
pub(super) fn nodes(
    centred: Arc<FeatureMatrix>,
    first_target: usize,
    labels: Vec<Option<ClassId>>,
    k: usize,
    rounds: usize,
    (lists, report): (NeighbourLists, GraphReport),
) -> Nodes {
    // Quality and fit are measured on the lists without anchors, and votes are smoothed over them.
    let graph = Graph::nearest(k, lists, rounds, true);
    let scaling = Scaling::Unit { norms: None };
    Nodes::new(centred, first_target, labels, Similarity::Dot3, scaling, graph, Some(report))
}

/// Half of k neighbours from the source, half from the target, at least one of each.
pub(crate) fn half_of_each(k: usize, first_target: usize) -> Wanted {
    Wanted::OfEach { first_target, source: (k / 2).max(1), target: (k - k / 2).max(1) }
}

/// Unit rows, less the mean of their own domain, of unit length again.
pub(crate) fn centre_domains(mut unit: FeatureMatrix, first_target: usize) -> FeatureMatrix {
    let rows = unit.rows();
    for domain in [0..first_target, first_target..rows] {
        unit.subtract_mean(domain);
    }
    unit.normalise_rows();
    unit
}
