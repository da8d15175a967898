//! Batch normalisation with statistics, scale and shift of its own for each domain.

use crate::layers::batch_norm;
use burn::module::{Module, Param, RunningState};
use burn::tensor::{Device, Tensor};

/// How much of a new batch goes into the running statistics, as in PyTorch.
const MOMENTUM: f64 = 0.1;

/// Which domain a batch comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Labelled.
    Source,
    /// To be labelled.
    Target,
}

/// How a batch goes through a network.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Whose normalisation is used.
    pub domain: Domain,
    /// Normalise by the batch and take note of it, or by what was noted.
    pub training: bool,
    /// No gradient goes further down than the end of this layer.
    pub stop_after: Option<usize>,
}

impl Pass {
    /// As the finished network sees items of a domain.
    pub fn evaluation(domain: Domain) -> Self {
        Pass { domain, training: false, stop_after: None }
    }

    /// Cuts the gradient where it is to stop.
    pub(super) fn after(&self, layer: usize, x: Tensor<4>) -> Tensor<4> {
        if self.stop_after == Some(layer) { x.detach() } else { x }
    }
}

/// One normalisation per domain; without a source of its own, both domains share the target's.
#[derive(Module, Debug)]
pub struct DomainNorm {
    target: Norm,
    source: Option<Norm>,
}

#[derive(Module, Debug)]
struct Norm {
    weight: Param<Tensor<1>>,
    bias: Param<Tensor<1>>,
    running_mean: RunningState<Tensor<1>>,
    running_var: RunningState<Tensor<1>>,
    epsilon: f64,
}

impl DomainNorm {
    /// For this many channels; both domains share it until [`Self::split`].
    pub(super) fn new(channels: usize, epsilon: f64, device: &Device) -> Self {
        let norm = Norm {
            weight: Param::from_tensor(Tensor::ones([channels], device)),
            bias: Param::from_tensor(Tensor::zeros([channels], device)),
            running_mean: RunningState::new(Tensor::zeros([channels], device)),
            running_var: RunningState::new(Tensor::ones([channels], device)),
            epsilon,
        };
        DomainNorm { target: norm, source: None }
    }

    /// Gives the source a copy of its own.
    pub(super) fn split(&mut self) {
        self.source = Some(self.target.copy());
    }

    /// Normalises each channel (the second dimension).
    pub(super) fn forward<const D: usize>(&self, x: Tensor<D>, pass: Pass) -> Tensor<D> {
        let norm = match (&self.source, pass.domain) {
            (Some(source), Domain::Source) => source,
            _ => &self.target,
        };
        let shape = x.shape();
        let [batch, channels] = [shape[0], shape[1]];
        let places = shape.num_elements() / (batch * channels).max(1);
        let x = x.reshape([batch, channels, places]);
        let normalised = if pass.training { norm.by_batch(x) } else { norm.by_running(x) };
        normalised.reshape(shape)
    }
}

impl Norm {
    /// The same values under other names: they are trained apart.
    fn copy(&self) -> Self {
        let param = |param: &Param<Tensor<1>>| Param::from_tensor(param.val().detach());
        Norm {
            weight: param(&self.weight),
            bias: param(&self.bias),
            running_mean: RunningState::new(self.running_mean.value_sync()),
            running_var: RunningState::new(self.running_var.value_sync()),
            epsilon: self.epsilon,
        }
    }

    fn by_running(&self, x: Tensor<3>) -> Tensor<3> {
        let scale = self.weight.val() / (self.running_var.value() + self.epsilon).sqrt();
        let shift = self.bias.val() - self.running_mean.value() * scale.clone();
        x * along_channels(scale) + along_channels(shift)
    }

    fn by_batch(&self, x: Tensor<3>) -> Tensor<3> {
        let [batch, channels, places] = x.dims();
        let count = (batch * places) as f64;
        let (weight, bias) = (self.weight.val(), self.bias.val());
        let (normalised, mean, variance) =
            batch_norm(&x, &weight, &bias, self.epsilon).unwrap_or_else(|| {
                let mean = x.clone().mean_dim(2).mean_dim(0);
                let centred = x - mean.clone();
                let variance = (centred.clone() * centred.clone()).mean_dim(2).mean_dim(0);
                let scale = along_channels(weight) / (variance.clone() + self.epsilon).sqrt();
                let statistic = |value: Tensor<3>| value.reshape([channels]).detach();
                (centred * scale + along_channels(bias), statistic(mean), statistic(variance))
            });
        let note = |state: &RunningState<Tensor<1>>, value: Tensor<1>| {
            state.update(state.value_sync() * (1.0 - MOMENTUM) + value * MOMENTUM);
            // A new value is pending until it is asked for; whoever looks at the network next is to see it.
            state.value_sync();
        };
        note(&self.running_mean, mean);
        // The batch is normalised by its own variance; what is noted is an estimate of everyone's.
        note(&self.running_var, variance * (count / (count - 1.0).max(1.0)));
        normalised
    }
}

fn along_channels(values: Tensor<1>) -> Tensor<3> {
    let [channels] = values.dims();
    values.reshape([1, channels, 1])
}
