//! Entropy minimisation (eq. 2): predictions on the target become certain.

use super::Recipe;
use crate::error::TrainError;
use crate::losses::entropy;
use crate::networks::BodyShape;
use crate::training::{Objective, Step, TrainSettings, ramp};

pub(super) struct EntropyMinimisation;

impl Recipe for EntropyMinimisation {
    fn set_defaults(&self, settings: &mut TrainSettings, _: BodyShape) {
        settings.target_weight = 0.1;
    }

    fn objective(&self, step: &mut Step<'_>) -> Result<Objective, TrainError> {
        let objective = step.source(None)?.objective();
        let target = step.target()?;
        let weight = step.settings().target_weight * ramp(step.progress);
        Ok(objective.and_target(entropy(target.outputs.logits), weight))
    }
}
