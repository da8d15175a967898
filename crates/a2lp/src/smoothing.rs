//! Smoothing of the votes over the target alone: neighbours in the target should have similar probabilities.

use crate::affinity::{Affinity, symmetrise};
use crate::error::Error;
use crate::neighbours::{NeighbourLists, Ranked};
use crate::parameters::CheckedParameters;
use crate::propagation::{GoOn, smooth};
use crate::pseudo_labels::PseudoLabels;
use crate::similarity::Similarity;
use crate::views::View;

/// How far probabilities travel.
const STRENGTH: f64 = 0.8;

/// The graph of the target's neighbours in the target.
pub(crate) struct Smoother {
    affinity: Affinity<'static>,
}

impl Smoother {
    /// Over the centred view; `None` if there is only one view.
    pub(crate) fn of(views: &[Box<dyn View>]) -> Result<Option<Self>, Error> {
        let Some(nodes) = views.get(1).map(|view| view.nodes()) else { return Ok(None) };
        let lists = nodes.without_anchors();
        lists.map(|lists| Self::new(lists, nodes.first_target, nodes.similarity)).transpose()
    }

    /// From lists of both domains; only edges within the target are used.
    fn new(lists: &NeighbourLists, first_target: usize, similarity: Similarity) -> Result<Self, Error> {
        let targets = first_target..lists.nodes();
        let k = targets.clone().map(|node| lists.of(node).len()).max().unwrap_or(0);
        let mut within = NeighbourLists::with_capacity(targets.len(), k);
        let mut list = Vec::with_capacity(k);
        for node in targets {
            let inside = lists.of(node).iter().filter(|ranked| ranked.node() as usize >= first_target);
            list.clear();
            list.extend(
                inside.map(|ranked| Ranked::new(ranked.score(), ranked.node() - first_target as u32)),
            );
            within.push(&list, k);
        }
        Ok(Smoother { affinity: symmetrise(&within, similarity)? })
    }

    /// Replaces this share of the probabilities by smoothed ones; certain items count for more.
    pub(crate) fn smooth(
        &self,
        labels: &mut PseudoLabels,
        share: f64,
        candidates: &[bool],
        parameters: &CheckedParameters,
        go_on: GoOn<'_>,
    ) -> Result<(), Error> {
        let classes = candidates.len();
        let mut values = labels.weighted_probabilities(candidates);
        smooth(&self.affinity, classes, STRENGTH, parameters, go_on, &mut values)?;
        labels.blend(&values, share, candidates);
        Ok(())
    }
}
