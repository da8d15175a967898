//! Smoothing of the votes over the target alone: neighbours in the target should have similar probabilities.

use crate::affinity::{Affinity, symmetrise};
use crate::error::Error;
use crate::parameters::CheckedParameters;
use crate::propagation::{GoOn, Limits, Solve, smooth};
use crate::pseudo_labels::PseudoLabels;
use crate::views::{View, ViewName};

/// How far probabilities travel.
const STRENGTH: f64 = 0.8;

/// The graph of the target's neighbours in the target.
pub(crate) struct Smoother {
    affinity: Affinity<'static>,
}

impl Smoother {
    /// Over the centred view; `None` if there is none.
    pub(crate) fn of(views: &[Box<dyn View>]) -> Result<Option<Self>, Error> {
        let centred = views.iter().find(|view| view.name() == ViewName::Centred);
        let Some(nodes) = centred.map(|view| view.nodes()) else { return Ok(None) };
        let Some(lists) = nodes.without_anchors() else { return Ok(None) };
        let within = lists.within(nodes.first_target..lists.nodes());
        Ok(Some(Smoother { affinity: symmetrise(&within, nodes.similarity)? }))
    }

    /// Replaces this share of the probabilities by smoothed ones; certain items count for more.
    pub(crate) fn smooth(
        &self,
        labels: &mut PseudoLabels,
        share: f64,
        candidates: &[bool],
        parameters: &CheckedParameters,
        go_on: GoOn<'_>,
    ) -> Result<Solve, Error> {
        let classes = candidates.len();
        let mut values = labels.weighted_probabilities(candidates);
        let limits = Limits::from(parameters);
        let solve = smooth(&self.affinity, classes, STRENGTH, limits, go_on, &mut values)?;
        labels.blend(&values, share, candidates);
        Ok(solve)
    }
}
