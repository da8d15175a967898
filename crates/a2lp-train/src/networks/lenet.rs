//! A LeNet for digits: 20 and 50 maps of 5 × 5 convolutions, 500 units.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

/// A LeNet without its classifier: grey images of 28 × 28 in, 500 features out.
#[derive(Module, Debug)]
pub struct LeNet {
    conv1: Conv2d,
    conv2: Conv2d,
    pool: MaxPool2d,
    fc1: Linear,
}

impl LeNet {
    /// Pixels a side of the images it takes.
    pub const SIDE: usize = 28;

    /// With weights still to be trained or loaded.
    pub fn new(device: &Device) -> Self {
        LeNet {
            conv1: Conv2dConfig::new([1, 20], [5, 5]).init(device),
            conv2: Conv2dConfig::new([20, 50], [5, 5]).init(device),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
            fc1: LinearConfig::new(50 * 4 * 4, 500).init(device),
        }
    }

    /// The 500 units before the classifier.
    pub fn features(&self, images: Tensor<4>) -> Tensor<2> {
        let [batch, ..] = images.dims();
        let x = self.pool.forward(self.conv1.forward(images));
        let x = self.pool.forward(self.conv2.forward(x));
        relu(self.fc1.forward(x.reshape([batch, 50 * 4 * 4])))
    }
}
