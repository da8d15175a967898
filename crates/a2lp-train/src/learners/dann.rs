//! Domain-adversarial training: a discriminator tells the domains apart, and the features learn to prevent it.

use super::Recipe;
use crate::draws::{Draws, Purpose};
use crate::error::TrainError;
use crate::losses::{adversarial, reverse_gradient};
use crate::networks::Outputs;
use crate::training::{Objective, Step, ramp};
use burn::tensor::Tensor;

pub(super) struct Dann;

impl Recipe for Dann {
    fn is_adversarial(&self) -> bool {
        true
    }

    fn objective(&self, step: &mut Step<'_>) -> Result<Objective, TrainError> {
        let source = step.source(None)?;
        let target = step.target()?;
        let objective = source.objective();
        Ok(with_discriminator(objective, step, &source.outputs, &target.outputs))
    }
}

/// Adds the discriminator's loss. Its gradient is reversed on the way to the features.
pub(super) fn with_discriminator(
    objective: Objective,
    step: &Step<'_>,
    source: &Outputs,
    target: &Outputs,
) -> Objective {
    let Some(discriminator) = &step.state.network.discriminator else { return objective };
    let mut draws = Draws::new(step.settings().seed, Purpose::Step, step.state.steps * 2);
    let strength = ramp(step.progress);
    let mut judge = |features: &Tensor<2>| {
        discriminator.forward(reverse_gradient(features.clone(), strength), &mut draws)
    };
    let (of_source, of_target) = (judge(&source.aligned), judge(&target.aligned));
    objective.and_domain(adversarial(of_source, of_target), step.settings().adversarial_weight)
}
