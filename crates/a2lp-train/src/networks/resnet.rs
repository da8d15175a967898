//! torchvision's ResNet v1: the stride of a bottleneck is on its 3 × 3 convolution.

use super::{DomainNorm, Layered, Pass, conv, pooled};
use crate::layers::{convolve, max_pool, relu};
use burn::module::Module;
use burn::nn::PaddingConfig2d;
use burn::nn::conv::Conv2d;
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::tensor::{Device, Tensor};

/// A ResNet without its classifier: images in, pooled features out.
#[derive(Module, Debug)]
pub struct ResNet {
    conv1: Conv2d,
    bn1: DomainNorm,
    maxpool: MaxPool2d,
    layer1: Vec<Block>,
    layer2: Vec<Block>,
    layer3: Vec<Block>,
    layer4: Vec<Block>,
}

/// Two 3 × 3 convolutions, or three of 1 × 1, 3 × 3, 1 × 1.
#[derive(Module, Debug)]
struct Block {
    conv1: Conv2d,
    bn1: DomainNorm,
    conv2: Conv2d,
    bn2: DomainNorm,
    conv3: Option<Conv2d>,
    bn3: Option<DomainNorm>,
    downsample: Option<Shortcut>,
}

#[derive(Module, Debug)]
struct Shortcut {
    conv: Conv2d,
    bn1: DomainNorm,
}

/// The shape of a ResNet.
struct Shape {
    blocks: [usize; 4],
    /// Channels of the first stage; doubled from stage to stage.
    width: usize,
    bottleneck: bool,
}

const EPSILON: f64 = 1e-5;

impl ResNet {
    /// ResNet-18: 512 features.
    pub fn resnet18(device: &Device) -> Self {
        Self::new(&Shape { blocks: [2, 2, 2, 2], width: 64, bottleneck: false }, device)
    }

    /// ResNet-50: 2048 features.
    pub fn resnet50(device: &Device) -> Self {
        Self::new(&Shape { blocks: [3, 4, 6, 3], width: 64, bottleneck: true }, device)
    }

    /// ResNet-101: 2048 features.
    pub fn resnet101(device: &Device) -> Self {
        Self::new(&Shape { blocks: [3, 4, 23, 3], width: 64, bottleneck: true }, device)
    }

    /// A ResNet-50 of two channels where the real one has 64: small enough to be kept beside a test.
    #[cfg(test)]
    pub(crate) fn narrow(device: &Device) -> Self {
        Self::new(&Shape { blocks: [3, 4, 6, 3], width: 2, bottleneck: true }, device)
    }

    fn new(shape: &Shape, device: &Device) -> Self {
        let around = PaddingConfig2d::Explicit(1, 1, 1, 1);
        let mut channels = shape.width;
        let mut stage = |at: usize| {
            let width = shape.width << at;
            let out = if shape.bottleneck { 4 * width } else { width };
            (0..shape.blocks[at])
                .map(|block| {
                    let stride = if block == 0 && at > 0 { 2 } else { 1 };
                    let made = Block::new([channels, width, out], stride, shape.bottleneck, device);
                    channels = out;
                    made
                })
                .collect::<Vec<_>>()
        };
        ResNet {
            conv1: conv([3, shape.width], 7, 2, 1, PaddingConfig2d::Explicit(3, 3, 3, 3), device),
            bn1: DomainNorm::new(shape.width, EPSILON, device),
            maxpool: MaxPool2dConfig::new([3, 3]).with_strides([2, 2]).with_padding(around).init(),
            layer1: stage(0),
            layer2: stage(1),
            layer3: stage(2),
            layer4: stage(3),
        }
    }

    /// The pooled vector before the classifier.
    pub fn features(&self, images: Tensor<4>, pass: Pass) -> Tensor<2> {
        self.features_after(0, images, pass)
    }

    /// Gives the source normalisations of its own, equal to the target's so far.
    pub fn split_domains(&mut self) {
        self.bn1.split();
        let layers = [&mut self.layer1, &mut self.layer2, &mut self.layer3, &mut self.layer4];
        layers.into_iter().flatten().for_each(Block::split_domains);
    }
}

impl Layered for ResNet {
    fn layers() -> Vec<String> {
        ["conv1", "layer1", "layer2", "layer3", "layer4"].map(String::from).to_vec()
    }

    fn layer(&self, at: usize, maps: Tensor<4>, pass: Pass) -> Tensor<4> {
        let blocks = match at {
            0 => {
                let maps = relu(self.bn1.forward(convolve(&self.conv1, maps), pass));
                return max_pool(&self.maxpool, maps);
            }
            1 => &self.layer1,
            2 => &self.layer2,
            3 => &self.layer3,
            _ => &self.layer4,
        };
        blocks.iter().fold(maps, |maps, block| block.forward(maps, pass))
    }

    fn pooled(&self, maps: Tensor<4>, _: Pass) -> Tensor<2> {
        pooled(maps)
    }
}

impl Block {
    fn new([from, width, out]: [usize; 3], stride: usize, bottleneck: bool, device: &Device) -> Self {
        let around = || PaddingConfig2d::Explicit(1, 1, 1, 1);
        let bn = |channels: usize| DomainNorm::new(channels, EPSILON, device);
        let plain = |channels, stride| conv(channels, 1, stride, 1, PaddingConfig2d::Valid, device);
        let (conv1, conv2) = if bottleneck {
            (plain([from, width], 1), conv([width, width], 3, stride, 1, around(), device))
        } else {
            (
                conv([from, width], 3, stride, 1, around(), device),
                conv([width, width], 3, 1, 1, around(), device),
            )
        };
        Block {
            conv1,
            bn1: bn(width),
            conv2,
            bn2: bn(width),
            conv3: bottleneck.then(|| plain([width, out], 1)),
            bn3: bottleneck.then(|| bn(out)),
            downsample: (stride != 1 || from != out)
                .then(|| Shortcut { conv: plain([from, out], stride), bn1: bn(out) }),
        }
    }

    fn forward(&self, x: Tensor<4>, pass: Pass) -> Tensor<4> {
        let short = match &self.downsample {
            Some(shortcut) => shortcut.bn1.forward(convolve(&shortcut.conv, x.clone()), pass),
            None => x.clone(),
        };
        let x = relu(self.bn1.forward(convolve(&self.conv1, x), pass));
        let mut x = self.bn2.forward(convolve(&self.conv2, x), pass);
        if let (Some(conv3), Some(bn3)) = (&self.conv3, &self.bn3) {
            x = bn3.forward(convolve(conv3, relu(x)), pass);
        }
        relu(x + short)
    }

    fn split_domains(&mut self) {
        self.bn1.split();
        self.bn2.split();
        self.bn3.iter_mut().for_each(DomainNorm::split);
        self.downsample.iter_mut().for_each(|shortcut| shortcut.bn1.split());
    }
}
