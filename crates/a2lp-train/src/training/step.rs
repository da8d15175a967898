//! One step of training: batches go through the network, the learner says what to minimise, the weights move.

use super::inputs::Augmentation;
use super::labelling::Matrix;
use super::optimiser::annealed;
use super::sampling::{ClassBatch, Shuffled};
use super::settings::TrainSettings;
use super::state::State;
use super::{Inputs, Losses, Plan, Training, Weighted};
use crate::draws::{Draws, Purpose};
use crate::error::TrainError;
use crate::losses::{cross_entropy, scalar};
use crate::networks::{Batch, Domain, Outputs, Pass};
use burn::tensor::{Device, Tensor};

/// What a step minimises.
pub(crate) struct Objective {
    total: Tensor<1>,
    losses: Losses,
}

impl Objective {
    /// Adds the loss on the target.
    pub(crate) fn and_target(mut self, loss: Tensor<1>, weight: f64) -> Self {
        self.losses.target = scalar(&loss);
        self.total = self.total + loss * weight;
        self
    }

    /// Adds the loss of the discriminator.
    pub(crate) fn and_domain(mut self, loss: Tensor<1>, weight: f64) -> Self {
        self.losses.domain = scalar(&loss);
        self.total = self.total + loss * weight;
        self
    }
}

/// A batch of the source that went through the network.
pub(crate) struct SourceBatch {
    pub(crate) outputs: Outputs,
    pub(crate) classes: Vec<u32>,
}

impl SourceBatch {
    /// The cross-entropy on the source, with which every objective starts.
    pub(crate) fn objective(&self) -> Objective {
        let total = cross_entropy(self.outputs.logits.clone(), &self.classes);
        let losses = Losses { source: scalar(&total), ..Losses::default() };
        Objective { total, losses }
    }
}

/// A batch of the target that went through the network.
pub(crate) struct TargetBatch {
    pub(crate) outputs: Outputs,
    /// The pseudo-labels of its items, if the round has any.
    pub(crate) labels: Option<Vec<Weighted>>,
}

/// What a learner sees of a step.
pub(crate) struct Step<'a> {
    pub(super) training: &'a Training<'a>,
    pub(crate) state: &'a mut State,
    /// `None` in the warm-up.
    pub(super) plan: Option<&'a Plan>,
    pub(super) order: &'a [Shuffled; 2],
    /// How much of the run is over, from 0 to 1.
    pub(crate) progress: f64,
    pub(super) device: &'a Device,
}

impl Step<'_> {
    pub(crate) fn settings(&self) -> &TrainSettings {
        self.training.settings
    }

    pub(crate) fn classes(&self) -> usize {
        self.training.shape.classes
    }

    /// The next batch of the source; from the body's features on, if they are given.
    pub(crate) fn source(&self, features: Option<&Matrix>) -> Result<SourceBatch, TrainError> {
        let rows = self.order[0].batch(self.state.steps);
        let classes = rows.iter().map(|&row| self.training.labels[row]).collect();
        let outputs = match features {
            Some(features) => {
                let pass = Pass::evaluation(Domain::Source);
                self.state.network.forward(Batch::Features(features.some(&rows, self.device)), pass)
            }
            None => self.pass(Domain::Source, &rows)?,
        };
        Ok(SourceBatch { outputs, classes })
    }

    /// The next batch of the target.
    pub(crate) fn target(&self) -> Result<TargetBatch, TrainError> {
        let rows = self.order[1].batch(self.state.steps);
        let labels = self.plan.and_then(|plan| plan.labels.as_ref());
        let labels = labels.map(|labels| rows.iter().map(|&row| labels[row]).collect());
        Ok(TargetBatch { outputs: self.pass(Domain::Target, &rows)?, labels })
    }

    /// The next class-aware batch; `None` if too few classes have items in both domains.
    pub(crate) fn class_aware_batch(&self) -> Option<ClassBatch> {
        let aware = self.plan.and_then(|plan| plan.class_aware.as_ref());
        aware.and_then(|aware| aware.batch(self.settings().seed, self.state.steps))
    }

    /// Passes some items through the network, as in training.
    pub(crate) fn pass(&self, domain: Domain, rows: &[usize]) -> Result<Outputs, TrainError> {
        let inputs: &Inputs = match domain {
            Domain::Source => self.training.source,
            Domain::Target => self.training.target,
        };
        let settings = self.settings();
        let at = self.state.steps * 2 + domain as u64;
        let seed = Draws::new(settings.seed, Purpose::Augment, at).seed();
        let batch = inputs.batch(rows, Some(Augmentation { seed, jitter: settings.jitter }), self.device)?;
        let body = self.training.shape.body;
        let stop_after = settings.stop_after.as_deref().and_then(|layer| body.layer(layer));
        Ok(self
            .state
            .network
            .forward(batch, Pass { domain, training: self.training.renews_norms(), stop_after }))
    }

    /// Moves the weights down the gradient.
    fn descend(self, objective: Objective, rate: f64) -> Losses {
        let (settings, state) = (self.training.settings, self.state);
        let gradients = state.network.gradients(&objective.total);
        let group = |name: &str, dimensions: usize| settings.group(name, dimensions, rate);
        let network = state.network.clone();
        state.network = state.sgd.step(network, gradients, settings.momentum, group);
        state.steps += 1;
        objective.losses
    }
}

impl Training<'_> {
    /// A step on the source alone, at the rate of the start. With the body's `features`, only what comes after it moves.
    pub(super) fn source_step(
        &self,
        state: &mut State,
        order: &[Shuffled; 2],
        features: Option<&Matrix>,
        device: &Device,
    ) -> Result<Losses, TrainError> {
        let step = Step { training: self, state, plan: None, order, progress: 0.0, device };
        let objective = step.source(features)?.objective();
        Ok(step.descend(objective, self.settings.rate))
    }

    /// A step of a round.
    pub(super) fn step(
        &self,
        state: &mut State,
        plan: &Plan,
        order: &[Shuffled; 2],
        at: usize,
        device: &Device,
    ) -> Result<Losses, TrainError> {
        let settings = self.settings;
        let done = (plan.round - 1) as f64 + at as f64 / plan.steps.max(1) as f64;
        let progress = done / settings.rounds as f64;
        let rate = annealed(settings.rate, settings.mu, settings.beta, progress);
        let mut step = Step { training: self, state, plan: Some(plan), order, progress, device };
        let objective = settings.learner.recipe().objective(&mut step)?;
        Ok(step.descend(objective, rate))
    }
}
