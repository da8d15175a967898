//! Schedules, and stochastic gradient descent with momentum as PyTorch does it.

use super::settings::TrainSettings;
use crate::layers::descend;
use crate::networks::LearnerNetwork;
use burn::module::{Module, ModuleMapper, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use std::collections::BTreeMap;

/// η₀ / (1 + μp)^β.
pub(crate) fn annealed(rate: f64, mu: f64, beta: f64, progress: f64) -> f64 {
    rate / (1.0 + mu * progress).powf(beta)
}

/// 2 / (1 + e^(−10p)) − 1: alignment counts nothing at first and all in the end.
pub(crate) fn ramp(progress: f64) -> f64 {
    2.0 / (1.0 + (-10.0 * progress).exp()) - 1.0
}

/// The directions of the steps so far, by the names of the parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sgd {
    pub(crate) velocities: BTreeMap<String, Tensor<1>>,
}

/// Rate and pull to 0 of one parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) rate: f64,
    pub(crate) decay: f64,
}

impl TrainSettings {
    /// The group of a parameter by its name and its number of dimensions.
    pub(crate) fn group(&self, name: &str, dimensions: usize, rate: f64) -> Group {
        let share = if name.starts_with("body.") { self.pretrained_rate } else { 1.0 };
        let vector = dimensions == 1;
        // MSTN's code learns biases at twice the rate, and pulls only weights to 0.
        if self.learner.recipe().is_adversarial() && vector {
            return Group { rate: 2.0 * share * rate, decay: 0.0 };
        }
        Group { rate: share * rate, decay: self.weight_decay }
    }
}

impl Sgd {
    /// One step: g ← g + decay·w, v ← momentum·v + g, w ← w − rate·v.
    pub(crate) fn step(
        &mut self,
        network: LearnerNetwork,
        gradients: GradientsParams,
        momentum: f64,
        group: impl Fn(&str, usize) -> Group,
    ) -> LearnerNetwork {
        network.map(&mut Step { sgd: self, gradients, momentum, group, path: Vec::new() })
    }
}

struct Step<'a, G> {
    sgd: &'a mut Sgd,
    gradients: GradientsParams,
    momentum: f64,
    group: G,
    path: Vec<String>,
}

impl<G: Fn(&str, usize) -> Group> ModuleMapper for Step<'_, G> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.into());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        // What has no gradient is frozen, or a statistic.
        let Some(gradient) = self.gradients.remove::<D>(param.id) else { return param };
        let (id, value, mapper) = param.consume();
        let shape = value.dims();
        let name = self.path.join(".");
        let group = (self.group)(&name, D);
        let value = value.inner();
        let before = self.sgd.velocities.remove(&name);
        let moved = descend(&value, &gradient, before.as_ref(), self.momentum as f32, group);
        let (value, velocity) = moved.unwrap_or_else(|| {
            let gradient = gradient + value.clone() * group.decay;
            let velocity = match before {
                Some(before) => before.reshape(shape) * self.momentum + gradient,
                None => gradient,
            };
            let length = velocity.shape().num_elements();
            (value - velocity.clone() * group.rate, velocity.reshape([length]))
        });
        self.sgd.velocities.insert(name, velocity);
        Param::from_mapped_value(id, Tensor::from_inner(value).require_grad(), mapper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_at_known_places() {
        let rates = |beta: f64| [0.0, 0.1, 0.5, 1.0].map(|p| annealed(0.01, 10.0, beta, p));
        for (found, expected) in rates(0.75).iter().zip([0.01, 0.005_946_0, 0.002_608_5, 0.001_655_6]) {
            assert!((found - expected).abs() < 5e-8, "{found} beside {expected}");
        }
        for (found, expected) in rates(2.25).iter().zip([0.01, 0.002_102_2, 0.000_177_48, 4.538e-5]) {
            assert!((found - expected).abs() < 5e-8, "{found} beside {expected}");
        }
        for (p, expected) in [(0.0, 0.0), (0.1, 0.462_12), (0.5, 0.986_61), (1.0, 0.999_91)] {
            assert!((ramp(p) - expected).abs() < 5e-6, "{p}");
        }
    }
}
