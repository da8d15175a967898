//! One step of each learner: what goes through the network, which losses come out, and what is done about them.

use super::optimiser::{annealed, ramp};
use super::sampling::Shuffled;
use super::settings::Learner;
use super::state::State;
use super::{Inputs, Losses, Plan, Training, Weighted};
use crate::draws::{Draws, Purpose};
use crate::error::TrainError;
use crate::losses::{
    Grouped, adversarial, contrastive_discrepancy, cross_entropy, entropy, reverse_gradient, scalar,
    weighted_cross_entropy,
};
use crate::networks::{Batch, Domain, LearnerNetwork, Outputs, Pass, StemTrail};
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Tensor};

/// What a step is to minimise.
struct Objective {
    total: Tensor<1>,
    losses: Losses,
    /// Of all that went through the network for it.
    trails: Vec<StemTrail>,
}

impl Objective {
    fn of_source(seen: &Outputs, classes: &[u32]) -> Self {
        let total = cross_entropy(seen.logits.clone(), classes);
        let losses = Losses { source: scalar(&total), ..Losses::default() };
        Objective { total, losses, trails: seen.trail.iter().cloned().collect() }
    }

    fn with_trail(mut self, seen: &Outputs) -> Self {
        self.trails.extend(seen.trail.clone());
        self
    }

    /// Adds what the target teaches.
    fn and_target(mut self, loss: Tensor<1>, weight: f64) -> Self {
        self.losses.target = scalar(&loss);
        self.total = self.total + loss * weight;
        self
    }

    /// Adds what the discriminator minimises; how it reaches the features is the gradient reversal's affair.
    fn and_domain(mut self, loss: Tensor<1>, weight: f64) -> Self {
        self.losses.domain = scalar(&loss);
        self.total = self.total + loss * weight;
        self
    }
}

impl Training<'_> {
    /// A step on the source alone, at a fixed rate.
    pub(super) fn source_step(
        &self,
        state: &mut State,
        order: &[Shuffled; 2],
        rate: f64,
        device: &Device,
    ) -> Result<Losses, TrainError> {
        let rows = order[0].batch(state.steps);
        let seen = self.pass(&state.network, self.source, &rows, Domain::Source, state.steps, device)?;
        let objective = Objective::of_source(&seen, &self.classes(&rows));
        Ok(self.descend(state, objective, rate))
    }

    /// A step of a round.
    pub(super) fn step(
        &self,
        state: &mut State,
        plan: &Plan,
        order: &[Shuffled; 2],
        step: usize,
        device: &Device,
    ) -> Result<Losses, TrainError> {
        let settings = self.settings;
        let done = (plan.round - 1) as f64 + step as f64 / plan.steps.max(1) as f64;
        let progress = done / settings.rounds as f64;
        let rate = annealed(settings.rate, settings.mu, settings.beta, progress);
        if settings.learner == Learner::SourceOnly {
            return self.source_step(state, order, rate, device);
        }
        let at = state.steps;
        let rows = [order[0].batch(at), order[1].batch(at)];
        let source = self.pass(&state.network, self.source, &rows[0], Domain::Source, at, device)?;
        let classes = self.classes(&rows[0]);
        let objective = Objective::of_source(&source, &classes);
        let objective = if settings.learner == Learner::Can {
            self.with_discrepancy(objective, state, plan, device)?
        } else {
            let target = self.pass(&state.network, self.target, &rows[1], Domain::Target, at, device)?;
            let objective = objective.with_trail(&target);
            let labels: Option<Vec<Weighted>> =
                plan.labels.as_ref().map(|labels| rows[1].iter().map(|&row| labels[row]).collect());
            match settings.learner {
                Learner::Em => {
                    objective.and_target(entropy(target.logits), settings.target_weight * ramp(progress))
                }
                Learner::Ce => {
                    let labels = labels.unwrap_or_default();
                    objective
                        .and_target(weighted_cross_entropy(target.logits, &labels), settings.target_weight)
                }
                _ => self.with_alignment(objective, state, (source, &classes), (target, labels), progress),
            }
        };
        Ok(self.descend(state, objective, rate))
    }

    /// DANN, and with centroids MSTN.
    fn with_alignment(
        &self,
        objective: Objective,
        state: &mut State,
        (source, classes): (Outputs, &[u32]),
        (target, labels): (Outputs, Option<Vec<Weighted>>),
        progress: f64,
    ) -> Objective {
        let settings = self.settings;
        let lambda = ramp(progress);
        let mut objective = objective;
        if let Some(discriminator) = &state.network.discriminator {
            let mut draws = Draws::new(settings.seed, Purpose::Step, state.steps * 2);
            let mut judge = |features: &Tensor<2>| {
                discriminator.forward(reverse_gradient(features.clone(), lambda), &mut draws)
            };
            let (s, t) = (judge(&source.aligned), judge(&target.aligned));
            objective = objective.and_domain(adversarial(s, t), settings.adversarial_weight);
        }
        if let Some(centroids) = &mut state.centroids {
            let source_classes: Vec<Option<u32>> = classes.iter().map(|&class| Some(class)).collect();
            let target_classes: Vec<Option<u32>> = match labels {
                Some(labels) => labels.iter().map(|(class, _)| *class).collect(),
                // MSTN's own: what the classifier says of this batch right now.
                None => {
                    let found = target.logits.detach().argmax(1).into_data();
                    found.iter::<i64>().map(|class| Some(class as u32)).collect()
                }
            };
            let distance =
                centroids.distance(source.aligned, &source_classes, target.aligned, &target_classes);
            objective = objective.and_target(distance, settings.target_weight * lambda);
        }
        objective
    }

    /// CAN: the discrepancy of class-aware batches, in the features and in the probabilities.
    fn with_discrepancy(
        &self,
        objective: Objective,
        state: &State,
        plan: &Plan,
        device: &Device,
    ) -> Result<Objective, TrainError> {
        let aware = plan.class_aware.as_ref();
        let Some(batch) = aware.and_then(|aware| aware.batch(self.settings.seed, state.steps)) else {
            return Ok(objective);
        };
        let counts = |groups: &[Vec<usize>]| Grouped { counts: groups.iter().map(Vec::len).collect() };
        let (by_source, by_target) = (counts(&batch.source), counts(&batch.target));
        let at = state.steps;
        let source =
            self.pass(&state.network, self.source, &batch.source.concat(), Domain::Source, at, device)?;
        let target =
            self.pass(&state.network, self.target, &batch.target.concat(), Domain::Target, at, device)?;
        let objective = objective.with_trail(&source).with_trail(&target);
        let layers =
            [(source.features, target.features), (softmax(source.logits, 1), softmax(target.logits, 1))];
        let cdd = contrastive_discrepancy(&layers, &by_source, &by_target, self.shape.classes);
        Ok(objective.and_target(cdd, self.settings.target_weight))
    }

    /// Some items through the network, in training.
    fn pass(
        &self,
        network: &LearnerNetwork,
        inputs: &Inputs,
        rows: &[usize],
        domain: Domain,
        at: u64,
        device: &Device,
    ) -> Result<Outputs, TrainError> {
        let seed = Draws::new(self.settings.seed, Purpose::Augment, at * 2 + domain as u64).seed();
        let (values, shape) = inputs.batch(rows, Some(seed))?;
        let pass = Pass { domain, training: true, stop_after: self.settings.stop_after.as_deref() };
        Ok(network.forward(Batch::new(values, &shape, device), pass))
    }

    fn classes(&self, rows: &[usize]) -> Vec<u32> {
        rows.iter().map(|&row| self.labels[row]).collect()
    }

    /// One step down.
    fn descend(&self, state: &mut State, objective: Objective, rate: f64) -> Losses {
        let gradients = state.network.gradients(&objective.total, &objective.trails);
        let group = |name: &str, dimensions: usize| self.settings.group(name, dimensions, rate);
        let network = state.network.clone();
        state.network = state.sgd.step(network, gradients, self.settings.momentum, group);
        state.steps += 1;
        objective.losses
    }
}
