//! A LeNet for digits: 20 and 50 maps of 5 × 5 convolutions, 500 units, which are normalised per domain.

use super::stem::{StemWeights, Trail};
use super::{DomainNorm, Pass};
use crate::draws::Draws;
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::optim::GradientsParams;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};

/// A LeNet without its classifier: grey images of 28 × 28 in, 500 features out.
#[derive(Module, Debug)]
pub struct LeNet {
    conv1: Conv2d,
    conv2: Conv2d,
    fc1: Linear,
    bn1: DomainNorm,
}

/// What goes back through the convolutions once burn has differentiated all that follows them.
#[derive(Clone, Debug)]
pub(crate) struct StemTrail {
    /// What came out of them.
    out: Tensor<2>,
    trail: Trail,
}

impl LeNet {
    /// Pixels a side of the images it takes.
    pub const SIDE: usize = 28;
    /// Features it makes.
    pub const WIDTH: usize = 500;

    pub(crate) fn new(draws: &mut Draws, device: &Device) -> Self {
        let mut conv = |channels: [usize; 2]| {
            let mut conv = Conv2dConfig::new(channels, [5, 5]).init(device);
            let fan_in = channels[0] * 25;
            conv.weight = draws.uniform([channels[1], channels[0], 5, 5], fan_in, device);
            conv.bias = Some(draws.uniform([channels[1]], fan_in, device));
            conv
        };
        LeNet {
            conv1: conv([1, 20]),
            conv2: conv([20, 50]),
            fc1: draws.linear(StemWeights::WIDTH, Self::WIDTH, device),
            bn1: DomainNorm::new(Self::WIDTH, 1e-5, device),
        }
    }

    /// The 500 units before the classifier, and what the backward pass through the convolutions needs.
    pub(crate) fn features(&self, images: Tensor<4>, pass: Pass) -> (Tensor<2>, StemTrail) {
        let [batch, ..] = images.dims();
        let device = images.device();
        let pixels: Vec<f32> = images.detach().into_data().iter::<f32>().collect();
        let weights = StemWeights { first: numbers(&self.conv1), second: numbers(&self.conv2) };
        let (out, trail) = weights.forward(&pixels);
        let out = Tensor::from_data(TensorData::new(out, [batch, StemWeights::WIDTH]), &device);
        let out = if pass.training { out.require_grad() } else { out };
        (relu(self.bn1.forward(self.fc1.forward(out.clone()), pass)), StemTrail { out, trail })
    }

    /// Adds the gradients of the convolutions to the other gradients.
    pub(crate) fn finish_gradients(
        &self,
        trails: &[StemTrail],
        of_out: impl Fn(&Tensor<2>) -> Option<Tensor<2>>,
        gradients: &mut GradientsParams,
    ) {
        let mut sum: Option<StemWeights> = None;
        for StemTrail { out, trail } in trails {
            let Some(gradient) = of_out(out) else { continue };
            let gradient: Vec<f32> = gradient.into_data().iter::<f32>().collect();
            let part = trail.back(&gradient);
            match &mut sum {
                Some(sum) => sum.add(&part),
                None => sum = Some(part),
            }
        }
        let Some(StemWeights { first, second }) = sum else { return };
        for (conv, (weights, bias)) in [(&self.conv1, first), (&self.conv2, second)] {
            register(&conv.weight, weights, gradients);
            if let Some(param) = &conv.bias {
                register(param, bias, gradients);
            }
        }
    }

    /// Gives the source a normalisation of its own, equal to the target's so far.
    pub fn split_domains(&mut self) {
        self.bn1.split();
    }
}

fn numbers(conv: &Conv2d) -> (Vec<f32>, Vec<f32>) {
    let weights = conv.weight.val().detach().into_data().iter::<f32>().collect();
    let bias = conv.bias.as_ref().map(|bias| bias.val().detach().into_data().iter::<f32>().collect());
    (weights, bias.unwrap_or_default())
}

fn register<const D: usize>(param: &Param<Tensor<D>>, values: Vec<f32>, gradients: &mut GradientsParams) {
    let plain = param.val().inner();
    let gradient: Tensor<D> = Tensor::from_data(TensorData::new(values, plain.dims()), &plain.device());
    gradients.register(param.id, gradient);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Purpose;
    use crate::networks::Domain;
    use burn::nn::pool::MaxPool2dConfig;

    #[test]
    fn by_hand_and_by_burn_there_and_back() {
        let device = Device::flex().autodiff();
        let network = LeNet::new(&mut Draws::new(1, Purpose::Weights, 0), &device);
        // More images than are worked on together, and not a multiple of them.
        let count = 11;
        let pixels: Vec<f32> = (0..count * 784).map(|at| (at * 37 % 101) as f32 / 100.0).collect();
        let images: Tensor<4> = Tensor::from_data(TensorData::new(pixels, [count, 1, 28, 28]), &device);
        let pass = Pass { domain: Domain::Target, training: true, stop_after: None };
        let read = |tensor: Tensor<2>| tensor.into_data().iter::<f32>().collect::<Vec<_>>();
        let close = |a: &[f32], b: &[f32]| {
            assert_eq!(a.len(), b.len());
            let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f32::max);
            assert!(worst < 1e-4, "{worst}");
        };

        let pool = MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init();
        let x = pool.forward(network.conv1.forward(images.clone()));
        let x = pool.forward(network.conv2.forward(x)).reshape([count, StemWeights::WIDTH]);
        let theirs = relu(network.bn1.forward(network.fc1.forward(x), pass));
        let (ours, trail) = network.features(images, pass);
        close(&read(ours.clone()), &read(theirs.clone()));

        let loss = |features: Tensor<2>| (features.clone() * features).mean();
        let grads = loss(theirs).backward();
        let by_burn =
            |tensor: Tensor<4>| tensor.grad(&grads).unwrap().into_data().iter::<f32>().collect::<Vec<_>>();
        let found = loss(ours).backward();
        let mut gradients = GradientsParams::new();
        network.finish_gradients(&[trail], |out| out.grad(&found), &mut gradients);
        for conv in [&network.conv1, &network.conv2] {
            let ours: Tensor<4> = gradients.get(conv.weight.id).unwrap();
            close(&ours.into_data().iter::<f32>().collect::<Vec<_>>(), &by_burn(conv.weight.val()));
            let bias = conv.bias.as_ref().unwrap();
            let ours: Tensor<1> = gradients.get(bias.id).unwrap();
            let theirs = bias.val().grad(&grads).unwrap();
            close(
                &ours.into_data().iter::<f32>().collect::<Vec<_>>(),
                &theirs.into_data().iter::<f32>().collect::<Vec<_>>(),
            );
        }
    }
}
