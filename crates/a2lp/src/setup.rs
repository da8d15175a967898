//! What every part of a run is given: its parameters and its observer.

use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::neighbours::{GraphReport, NeighbourLists, Wanted, find_neighbours};
use crate::observer::Observer;
use crate::parameters::CheckedParameters;
use crate::similarity::Similarity;

/// The parameters of a run and its observer.
pub(crate) struct Setup<'a> {
    pub(crate) parameters: &'a CheckedParameters,
    pub(crate) observer: &'a dyn Observer,
}

impl Setup<'_> {
    /// Searches by the method asked for.
    pub(crate) fn search(
        &self,
        features: &FeatureMatrix,
        wanted: Wanted,
        similarity: Similarity,
    ) -> Result<(NeighbourLists, GraphReport), Error> {
        let (method, seed) = (self.parameters.graph_method, self.parameters.seed);
        find_neighbours(features, wanted, similarity, method, seed, self.observer)
    }

    /// Neighbours of a node. No node can have more than there will ever be nodes.
    pub(crate) fn neighbours(&self, nodes: usize, classes: usize) -> Option<usize> {
        let anchors = classes * (self.parameters.rounds - 1);
        self.parameters.others().map(|k| k.min(nodes + anchors))
    }
}
