//! Smoothing of the votes over the target alone: neighbours in the target should have similar probabilities.

use crate::affinity::{Affinity, symmetrise};
use crate::error::Error;
use crate::parameters::CheckedParameters;
use crate::propagation::{GoOn, Limits, Solve, smooth};
use crate::pseudo_labels::PseudoLabels;
use crate::views::{View, ViewName};

/// How far probabilities travel.
pub(crate) const STRENGTH: f64 = 0.8;

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
        let within = lists.within(nodes.first_target..lists.nodes(), usize::MAX);
        Ok(Some(Smoother { affinity: symmetrise(&within, nodes.similarity)? }))
    }

    /// The graph of the target's neighbours.
    pub(crate) fn graph(&self) -> &Affinity<'static> {
        &self.affinity
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
        let (values, solve) = self.smoothed(labels, candidates, parameters, go_on)?;
        labels.blend(&values, share, candidates);
        Ok(solve)
    }

    /// The smoothed probabilities, item after item.
    pub(crate) fn smoothed(
        &self,
        labels: &PseudoLabels,
        candidates: &[bool],
        parameters: &CheckedParameters,
        go_on: GoOn<'_>,
    ) -> Result<(Vec<f32>, Solve), Error> {
        let mut values = labels.weighted_probabilities(candidates);
        let limits = Limits::from(parameters);
        let solve = smooth(&self.affinity, candidates.len(), STRENGTH, limits, go_on, &mut values)?;
        Ok((values, solve))
    }
}
