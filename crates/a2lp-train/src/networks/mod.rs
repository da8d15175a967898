//! The networks, with the names of the files people hold: torchvision's ResNets, EfficientNet-Lite0, a LeNet.

mod adapter;
mod discriminator;
mod efficientnet;
mod learner;
mod lenet;
mod norm;
mod resnet;

pub use adapter::Adapter;
pub use discriminator::Discriminator;
pub use efficientnet::EfficientNetLite0;
pub(crate) use learner::{Batch, LearnerNetwork, Outputs};
pub use learner::{Body, BodyShape, NetworkShape};
pub use lenet::LeNet;
pub use norm::{Domain, DomainNorm, Pass};
pub use resnet::ResNet;

use burn::nn::PaddingConfig2d;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::tensor::{Device, Tensor};
use std::ops::Range;

/// A network for photos: layers one after the other, which can be run in two parts, and a pooled vector in the end.
pub(crate) trait Layered {
    /// The names of the layers.
    fn layers() -> Vec<String>;
    /// One layer.
    fn layer(&self, at: usize, maps: Tensor<4>, pass: Pass) -> Tensor<4>;
    /// What comes after the last layer.
    fn pooled(&self, maps: Tensor<4>, pass: Pass) -> Tensor<2>;

    /// Runs some of the layers.
    fn run(&self, layers: Range<usize>, maps: Tensor<4>, pass: Pass) -> Tensor<4> {
        layers.fold(maps, |maps, at| pass.after(at, self.layer(at, maps, pass)))
    }

    /// The features, from the maps that the first `done` layers made.
    fn features_after(&self, done: usize, maps: Tensor<4>, pass: Pass) -> Tensor<2> {
        self.pooled(self.run(done..Self::layers().len(), maps, pass), pass)
    }
}

/// A convolution without bias.
fn conv(
    channels: [usize; 2],
    kernel: usize,
    stride: usize,
    groups: usize,
    padding: PaddingConfig2d,
    device: &Device,
) -> Conv2d {
    Conv2dConfig::new(channels, [kernel, kernel])
        .with_stride([stride, stride])
        .with_groups(groups)
        .with_padding(padding)
        .with_bias(false)
        .init(device)
}

/// The mean over all places: channels × height × width → channels.
fn pooled(maps: Tensor<4>) -> Tensor<2> {
    let [batch, channels, ..] = maps.dims();
    maps.reshape([batch as i32, channels as i32, -1]).mean_dim(2).reshape([batch, channels])
}
