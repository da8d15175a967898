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
