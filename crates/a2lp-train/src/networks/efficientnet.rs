//! EfficientNet-Lite0: inverted bottlenecks with ReLU6, no squeeze and excitation, TensorFlow's "same" padding.

use super::{DomainNorm, Layered, Pass, conv, pooled};
use crate::layers::{convolve, relu6};
use burn::module::Module;
use burn::nn::PaddingConfig2d;
use burn::nn::conv::Conv2d;
use burn::tensor::{Device, Tensor};

/// (blocks, kernel, stride of the first, expansion, channels) of each stage.
const STAGES: [(usize, usize, usize, usize, usize); 7] = [
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
];
const STEM: usize = 32;
const HEAD: usize = 1280;

/// EfficientNet-Lite0 without its classifier: images in, 1280 features out.
#[derive(Module, Debug)]
pub struct EfficientNetLite0 {
    conv_stem: Conv2d,
    bn0: DomainNorm,
    blocks: Vec<Block>,
    conv_head: Conv2d,
    bn1: DomainNorm,
}

#[derive(Module, Debug)]
struct Block {
    expand_conv: Option<Conv2d>,
    bn0: Option<DomainNorm>,
    depthwise_conv: Conv2d,
    bn1: DomainNorm,
    project_conv: Conv2d,
    bn2: DomainNorm,
    skip: bool,
}

fn bn(channels: usize, device: &Device) -> DomainNorm {
    DomainNorm::new(channels, 1e-3, device)
}

impl EfficientNetLite0 {
    /// With weights still to be loaded.
    pub fn new(device: &Device) -> Self {
        let mut from = STEM;
        let mut blocks = Vec::new();
        for (count, kernel, stride, expansion, channels) in STAGES {
            for at in 0..count {
                let stride = if at == 0 { stride } else { 1 };
                blocks.push(Block::new([from, from * expansion, channels], kernel, stride, device));
                from = channels;
            }
        }
        EfficientNetLite0 {
            conv_stem: conv([3, STEM], 3, 2, 1, PaddingConfig2d::Same, device),
            bn0: bn(STEM, device),
            blocks,
            conv_head: conv([from, HEAD], 1, 1, 1, PaddingConfig2d::Valid, device),
            bn1: bn(HEAD, device),
        }
    }

    /// The pooled vector before the classifier.
    pub fn features(&self, images: Tensor<4>, pass: Pass) -> Tensor<2> {
        self.features_after(0, images, pass)
    }

    /// Gives the source normalisations of its own, equal to the target's so far.
    pub fn split_domains(&mut self) {
        self.bn0.split();
        self.bn1.split();
        for block in &mut self.blocks {
            block.bn0.iter_mut().for_each(DomainNorm::split);
            block.bn1.split();
            block.bn2.split();
        }
    }

    /// The last layer of each stage.
    pub(super) fn stages() -> Vec<usize> {
        let ends = STAGES.iter().scan(0, |blocks, stage| {
            *blocks += stage.0;
            Some(*blocks)
        });
        ends.collect()
    }
}

impl Layered for EfficientNetLite0 {
    fn layers() -> Vec<String> {
        let blocks = STAGES.iter().map(|stage| stage.0).sum();
        let blocks = (0..blocks).map(|at| format!("blocks.{at}"));
        std::iter::once("conv_stem".to_string()).chain(blocks).collect()
    }

    fn layer(&self, at: usize, maps: Tensor<4>, pass: Pass) -> Tensor<4> {
        match at.checked_sub(1) {
            None => relu6(self.bn0.forward(convolve(&self.conv_stem, maps), pass)),
            Some(block) => self.blocks[block].forward(maps, pass),
        }
    }

    fn pooled(&self, maps: Tensor<4>, pass: Pass) -> Tensor<2> {
        pooled(relu6(self.bn1.forward(convolve(&self.conv_head, maps), pass)))
    }
}

impl Block {
    fn new([from, wide, out]: [usize; 3], kernel: usize, stride: usize, device: &Device) -> Self {
        let plain = |channels| conv(channels, 1, 1, 1, PaddingConfig2d::Valid, device);
        Block {
            expand_conv: (wide != from).then(|| plain([from, wide])),
            bn0: (wide != from).then(|| bn(wide, device)),
            depthwise_conv: conv([wide, wide], kernel, stride, wide, PaddingConfig2d::Same, device),
            bn1: bn(wide, device),
            project_conv: plain([wide, out]),
            bn2: bn(out, device),
            skip: stride == 1 && from == out,
        }
    }

    fn forward(&self, x: Tensor<4>, pass: Pass) -> Tensor<4> {
        let kept = self.skip.then(|| x.clone());
        let mut x = x;
        if let (Some(expand), Some(bn0)) = (&self.expand_conv, &self.bn0) {
            x = relu6(bn0.forward(convolve(expand, x), pass));
        }
        x = relu6(self.bn1.forward(convolve(&self.depthwise_conv, x), pass));
        x = self.bn2.forward(convolve(&self.project_conv, x), pass);
        match kept {
            Some(kept) => x + kept,
            None => x,
        }
    }
}
