//! The network that is trained: a body that makes features, an optional bottleneck, a classifier, an optional discriminator.

use super::{Adapter, Discriminator, Domain, EfficientNetLite0, Layered, LeNet, Pass, ResNet};
use crate::backbone::{BackboneName, LITE_NAMES, RESNET_NAMES};
use crate::draws::{Draws, Purpose};
use crate::error::TrainError;
use crate::training::Inputs;
use crate::weights::load;
use burn::module::Module;
use burn::nn::Linear;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::OnceLock;

/// Features of the bottleneck between a backbone and its classifier.
const BOTTLENECK: usize = 256;

/// Which network, and its sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkShape {
    /// The body, which makes the features.
    pub body: BodyShape,
    /// A layer of 256 units between a backbone and the classifier, as MSTN has it.
    pub bottleneck: bool,
    /// Hidden units of the discriminator, where there is one.
    pub discriminator: Option<usize>,
    /// How many classes there are.
    pub classes: usize,
}

impl NetworkShape {
    /// Features in which domains are aligned.
    pub(crate) fn aligned_width(&self) -> usize {
        if self.bottleneck { BOTTLENECK } else { self.body.width() }
    }
}

/// The body, which makes the features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BodyShape {
    /// 20 and 50 maps, 500 units, for grey images of 28 × 28.
    Lenet,
    /// One hidden layer over this many features.
    Adapter(usize),
    /// A network for photos.
    Backbone(BackboneName),
}

impl BodyShape {
    /// Features it makes.
    pub fn width(self) -> usize {
        match self {
            BodyShape::Lenet => LeNet::WIDTH,
            BodyShape::Adapter(_) => Adapter::WIDTH,
            BodyShape::Backbone(BackboneName::Resnet18) => 512,
            BodyShape::Backbone(BackboneName::Resnet50 | BackboneName::Resnet101) => 2048,
            BodyShape::Backbone(BackboneName::EfficientnetLite0) => 1280,
        }
    }

    /// The layers a gradient can be stopped after, and the network be frozen up to.
    pub fn layers(self) -> Vec<String> {
        match self {
            BodyShape::Backbone(BackboneName::EfficientnetLite0) => EfficientNetLite0::layers(),
            BodyShape::Backbone(_) => ResNet::layers(),
            _ => Vec::new(),
        }
    }

    /// The last layer of each stage.
    fn stages(self) -> Vec<usize> {
        match self {
            BodyShape::Backbone(BackboneName::EfficientnetLite0) => EfficientNetLite0::stages(),
            // A ResNet's layers are its stages.
            _ => (1..self.layers().len()).collect(),
        }
    }

    /// The number of a layer, which may be named as the stage that it ends: `stage5`.
    pub fn layer(self, word: &str) -> Option<usize> {
        let stage =
            || self.stages().get(word.strip_prefix("stage")?.parse::<usize>().ok()?.checked_sub(1)?).copied();
        self.layers().iter().position(|layer| layer == word).or_else(stage)
    }
}

/// The kind of a network's body, before the shape of its input is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// For grey images of 28 × 28.
    Lenet,
    /// For features.
    Adapter,
    /// For photos.
    Backbone(BackboneName),
}

impl Body {
    /// The words that users write, and their values.
    pub fn words() -> &'static [(&'static str, Body)] {
        static WORDS: OnceLock<Vec<(&str, Body)>> = OnceLock::new();
        WORDS.get_or_init(|| {
            let backbones = BackboneName::WORDS.iter().map(|&(word, name)| (word, Body::Backbone(name)));
            [("lenet", Body::Lenet), ("adapter", Body::Adapter)].into_iter().chain(backbones).collect()
        })
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        Self::words().iter().find(|(_, body)| *body == self).map_or("", |(word, _)| word)
    }

    /// Its shape for these inputs.
    pub fn shape(self, inputs: &Inputs) -> BodyShape {
        match (self, inputs) {
            (Body::Adapter, Inputs::Rows { columns, .. }) => BodyShape::Adapter(*columns),
            (Body::Backbone(name), _) => BodyShape::Backbone(name),
            _ => BodyShape::Lenet,
        }
    }
}

/// A batch for a network.
#[derive(Clone, Debug)]
pub(crate) enum Batch {
    Rows(Tensor<2>),
    Images(Tensor<4>),
    /// What so many layers made of images.
    Maps(Tensor<4>, usize),
    /// Features that the body has made.
    Features(Tensor<2>),
}

impl Batch {
    pub(crate) fn rows(values: Vec<f32>, shape: [usize; 2], device: &Device) -> Self {
        Batch::Rows(Tensor::from_data(TensorData::new(values, shape), device))
    }

    pub(crate) fn images(values: Vec<f32>, shape: [usize; 4], device: &Device) -> Self {
        Batch::Images(Tensor::from_data(TensorData::new(values, shape), device))
    }

    pub(crate) fn maps(values: Vec<f32>, shape: [usize; 4], layers: usize, device: &Device) -> Self {
        Batch::Maps(Tensor::from_data(TensorData::new(values, shape), device), layers)
    }
}

#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)]
enum BodyNetwork {
    LeNet(LeNet),
    Adapter(Adapter),
    ResNet(ResNet),
    Lite0(EfficientNetLite0),
}

/// The outputs of a network.
pub(crate) struct Outputs {
    /// φ: the features that the body makes; pseudo-labels are made from them.
    pub(crate) features: Tensor<2>,
    /// The features in which domains are aligned: the bottleneck, or φ itself.
    pub(crate) aligned: Tensor<2>,
    pub(crate) logits: Tensor<2>,
}

/// The network that is trained.
#[derive(Module, Debug)]
pub(crate) struct LearnerNetwork {
    body: BodyNetwork,
    bottleneck: Option<Linear>,
    classifier: Linear,
    pub(crate) discriminator: Option<Discriminator>,
}

impl LearnerNetwork {
    /// With random weights, but for a backbone, whose weights come from a file.
    pub(crate) fn new(
        shape: &NetworkShape,
        weights: Option<&Path>,
        seed: u64,
        device: &Device,
    ) -> Result<Self, TrainError> {
        let mut draws = Draws::new(seed, Purpose::Weights, 0);
        let draws = &mut draws;
        let mut body = match shape.body {
            BodyShape::Lenet => BodyNetwork::LeNet(LeNet::new(draws, device)),
            BodyShape::Adapter(columns) => {
                BodyNetwork::Adapter(Adapter::new(columns, Adapter::WIDTH, draws, device))
            }
            BodyShape::Backbone(BackboneName::Resnet18) => BodyNetwork::ResNet(ResNet::resnet18(device)),
            BodyShape::Backbone(BackboneName::Resnet50) => BodyNetwork::ResNet(ResNet::resnet50(device)),
            BodyShape::Backbone(BackboneName::Resnet101) => BodyNetwork::ResNet(ResNet::resnet101(device)),
            BodyShape::Backbone(BackboneName::EfficientnetLite0) => {
                BodyNetwork::Lite0(EfficientNetLite0::new(device))
            }
        };
        if let Some(weights) = weights {
            match &mut body {
                BodyNetwork::ResNet(network) => drop(load(network, weights, RESNET_NAMES)?),
                BodyNetwork::Lite0(network) => drop(load(network, weights, LITE_NAMES)?),
                _ => {}
            }
        }
        let width = shape.body.width();
        let (bottleneck, classifier) = if shape.bottleneck {
            (
                Some(draws.normal_linear(width, BOTTLENECK, 0.01, 0.1, device)),
                draws.normal_linear(BOTTLENECK, shape.classes, 0.005, 0.1, device),
            )
        } else {
            // Kaiming's normal initialisation for a layer after a ReLU.
            let deviation = (2.0 / width as f32).sqrt();
            (None, draws.normal_linear(width, shape.classes, deviation, 0.0, device))
        };
        let aligned = shape.aligned_width();
        let discriminator =
            shape.discriminator.map(|hidden| Discriminator::new(aligned, hidden, draws, device));
        Ok(LearnerNetwork { body, bottleneck, classifier, discriminator })
    }

    /// An adapter of another width, perhaps with a discriminator without dropout, for tests.
    #[cfg(test)]
    pub(crate) fn small_adapter(
        columns: usize,
        width: usize,
        classes: usize,
        judge: Option<usize>,
        device: &Device,
    ) -> Self {
        let mut draws = Draws::new(0, Purpose::Weights, 0);
        let discriminator = judge.map(|hidden| {
            let mut judge = Discriminator::new(width, hidden, &mut draws, device);
            judge.dropout = 0.0;
            judge
        });
        LearnerNetwork {
            body: BodyNetwork::Adapter(Adapter::new(columns, width, &mut draws, device)),
            bottleneck: None,
            classifier: draws.linear(width, classes, device),
            discriminator,
        }
    }

    /// The ResNet that is small enough for tests.
    #[cfg(test)]
    pub(crate) fn narrow_resnet(classes: usize, weights: &Path, device: &Device) -> Self {
        let mut network = ResNet::narrow(device);
        load(&mut network, weights, RESNET_NAMES).unwrap();
        let classifier = Draws::new(0, Purpose::Weights, 0).linear(64, classes, device);
        LearnerNetwork {
            body: BodyNetwork::ResNet(network),
            bottleneck: None,
            classifier,
            discriminator: None,
        }
    }

    pub(crate) fn forward(&self, batch: Batch, pass: Pass) -> Outputs {
        let features = match (&self.body, batch) {
            (BodyNetwork::LeNet(network), Batch::Images(images)) => network.features(images, pass),
            (BodyNetwork::Adapter(network), Batch::Rows(rows)) => network.features(rows, pass),
            (BodyNetwork::ResNet(network), Batch::Images(images)) => network.features(images, pass),
            (BodyNetwork::Lite0(network), Batch::Images(images)) => network.features(images, pass),
            (BodyNetwork::ResNet(network), Batch::Maps(maps, done)) => {
                network.features_after(done, maps, pass)
            }
            (BodyNetwork::Lite0(network), Batch::Maps(maps, done)) => {
                network.features_after(done, maps, pass)
            }
            (_, Batch::Features(features)) => features,
            _ => unreachable!("the inputs were made for the network"),
        };
        let aligned = match &self.bottleneck {
            Some(bottleneck) => bottleneck.forward(features.clone()),
            None => features.clone(),
        };
        let logits = self.classifier.forward(aligned.clone());
        Outputs { features, aligned, logits }
    }

    /// What the first layers of a network for photos make of images.
    pub(crate) fn maps(&self, images: Tensor<4>, layers: usize) -> Tensor<4> {
        let pass = Pass::evaluation(Domain::Target);
        match &self.body {
            BodyNetwork::ResNet(network) => network.run(0..layers, images, pass),
            BodyNetwork::Lite0(network) => network.run(0..layers, images, pass),
            _ => images,
        }
    }

    /// The gradients of all parameters.
    pub(crate) fn gradients(&self, loss: &Tensor<1>) -> GradientsParams {
        GradientsParams::from_module(&mut loss.backward(), self)
    }

    /// Gives the source normalisations of its own, equal to the target's so far.
    pub(crate) fn split_domains(&mut self) {
        match &mut self.body {
            BodyNetwork::LeNet(network) => network.split_domains(),
            BodyNetwork::Adapter(network) => network.split_domains(),
            BodyNetwork::ResNet(network) => network.split_domains(),
            BodyNetwork::Lite0(network) => network.split_domains(),
        }
    }
}
