//! Cross-entropy on confident pseudo-labels.

use super::Recipe;
use crate::error::TrainError;
use crate::losses::weighted_cross_entropy;
use crate::networks::BodyShape;
use crate::training::{Objective, RoundView, Step, TrainSettings, TrainingLabels};

pub(super) struct CrossEntropy;

impl Recipe for CrossEntropy {
    fn set_defaults(&self, settings: &mut TrainSettings, _: BodyShape) {
        settings.min_confidence = 0.7;
    }

    fn uses_pseudo_labels(&self) -> bool {
        true
    }

    fn own_labels(&self, seen: &RoundView<'_>) -> Option<TrainingLabels> {
        Some(seen.of_classifier().into())
    }

    fn objective(&self, step: &mut Step<'_>) -> Result<Objective, TrainError> {
        let objective = step.source(None)?.objective();
        let target = step.target()?;
        let labels = target.labels.unwrap_or_default();
        let loss = weighted_cross_entropy(target.outputs.logits.clone(), &labels);
        Ok(objective.and_target(loss, step.settings().target_weight))
    }
}
