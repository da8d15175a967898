//! A LeNet for digits: 20 and 50 maps of 5 × 5 convolutions, 500 units, which are normalised per domain.

use super::{DomainNorm, Pass};
use crate::draws::Draws;
use crate::layers::{convolve, max_pool, relu};
use burn::module::Module;
use burn::nn::Linear;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::tensor::{Device, Tensor};

/// Numbers of an image after both convolutions.
const FLAT: usize = 50 * 4 * 4;

/// A LeNet without its classifier: grey images of 28 × 28 in, 500 features out.
#[derive(Module, Debug)]
pub struct LeNet {
    conv1: Conv2d,
    conv2: Conv2d,
    pool: MaxPool2d,
    fc1: Linear,
    bn1: DomainNorm,
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
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
            fc1: draws.linear(FLAT, Self::WIDTH, device),
            bn1: DomainNorm::new(Self::WIDTH, 1e-5, device),
        }
    }

    /// The 500 units before the classifier.
    pub(crate) fn features(&self, images: Tensor<4>, pass: Pass) -> Tensor<2> {
        let [batch, ..] = images.dims();
        let x = max_pool(&self.pool, convolve(&self.conv1, images));
        let x = max_pool(&self.pool, convolve(&self.conv2, x));
        relu(self.bn1.forward(self.fc1.forward(x.reshape([batch, FLAT])), pass))
    }

    /// Gives the source a normalisation of its own, equal to the target's so far.
    pub fn split_domains(&mut self) {
        self.bn1.split();
    }
}
