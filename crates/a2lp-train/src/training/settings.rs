//! The settings of a training run: one table, from which the builder, the checks and the command line's options follow.

use crate::error::TrainError;
use crate::learners::Learner;
use crate::networks::BodyShape;
use a2lp::internal::Setting;
use a2lp::{Group, ParameterInfo};
use serde::{Deserialize, Serialize};

/// Where pseudo-labels come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Labeller {
    /// What labels by default: the consensus where it is quick enough and can use the other settings, else A²LP.
    Auto,
    /// The learner's own: MSTN's argmax of each batch, CAN's spherical k-means, the classifier for `ce`.
    Own,
    /// Label propagation without anchors.
    Lp,
    /// Label propagation with augmented anchors.
    A2lp,
    /// Three differently built graphs that vote.
    Consensus,
}

impl Labeller {
    /// The words that users write, and their values.
    pub const WORDS: &[(&str, Labeller)] = &[
        ("auto", Labeller::Auto),
        ("own", Labeller::Own),
        ("lp", Labeller::Lp),
        ("a2lp", Labeller::A2lp),
        ("consensus", Labeller::Consensus),
    ];

    /// May labels without training take the place of a round's? The other kinds are for comparisons, which that would spoil.
    pub(crate) fn may_fall_back(self) -> bool {
        matches!(self, Labeller::Auto | Labeller::Consensus)
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }
}

macro_rules! train_settings {
    ($($(#[doc = $help:literal])+ $name:ident: $type:ty, $option:literal, $value:literal, $group:ident;)*) => {
        /// Everything that decides how a run goes, except the data and the weights it starts from. The builder; [`Self::check`]
        /// turns it into [`CheckedTrainSettings`].
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[must_use = "nothing happens before `check` and a run"]
        pub struct TrainSettings {
            pub(crate) learner: Learner,
            pub(crate) labeller: Labeller,
            $(pub(crate) $name: $type,)*
        }

        impl TrainSettings {
            $($(#[doc = $help])+
            pub fn $name(mut self, $name: $type) -> Self {
                self.$name = $name;
                self
            })*

            /// Every setting that is a value, as front ends know it. Defaults depend on learner and network, so the help
            /// texts tell them.
            pub fn table() -> &'static [ParameterInfo<TrainSettings>] {
                static TABLE: std::sync::OnceLock<Vec<ParameterInfo<TrainSettings>>> = std::sync::OnceLock::new();
                TABLE.get_or_init(|| vec![$(ParameterInfo {
                    name: $option,
                    python: stringify!($name),
                    value_name: $value,
                    help: concat!($($help),+),
                    group: Group::$group,
                    kind: <$type as Setting>::kind(),
                    default: None,
                    set: |settings, value| match <$type as Setting>::read(value) {
                        Some(value) => {
                            settings.$name = value;
                            true
                        }
                        None => false,
                    },
                }),*])
            }
        }
    };
}

// One entry declares a setting everywhere: the builder, its option and its help text.
train_settings! {
    /// Rounds, each of which makes pseudo-labels and learns from them [default: 10; 50 for photos]
    rounds: usize, "train-rounds", "N", Common;
    /// Steps in a round [default: 100; 200 for photos, for CAN by its formula]
    steps: Option<usize>, "steps", "N", Common;
    /// Steps on the source alone before the first round; behind frozen layers only the classifier moves in them [default: 300 for a
    /// LeNet and behind frozen layers, else 0]
    warm_up: usize, "warm-up", "N", Everyday;
    /// Items of either domain in a batch [default: 64; 32 for photos, 30 for CAN]
    batch: usize, "batch", "N", Everyday;
    /// Learning rate of new layers at the start [default: 0.01]
    rate: f64, "rate", "RATE", Everyday;
    /// Learning rate of pretrained layers, as a share of the rate of new ones [default: 0.1 for photos, else 1]
    pretrained_rate: f64, "pretrained-rate", "SHARE", Papers;
    /// μ of the learning rate's schedule, rate / (1 + μp)^β with p from 0 to 1 over the run [default: 10]
    mu: f64, "mu", "MU", Papers;
    /// β of the schedule [default: 0.75]
    beta: f64, "beta", "BETA", Papers;
    /// Momentum of stochastic gradient descent [default: 0.9]
    momentum: f64, "momentum", "M", Papers;
    /// Weight decay [default: 0.0005]
    weight_decay: f64, "weight-decay", "W", Papers;
    /// Weight of the loss on the target: entropy, pseudo-labels, centroids or discrepancy [default: 0.3; 0.1 for em, 1 for mstn
    /// on photos and 100 on anything smaller]
    target_weight: f64, "target-weight", "W", Everyday;
    /// Weight of the discriminator's loss [default: 0.1]
    adversarial_weight: f64, "adversarial-weight", "W", Papers;
    /// Pseudo-labels of a graph count if their confidence is above this in the first round; the threshold falls to 0 in the last
    /// [default: 0.7 for can and ce, else 0]
    min_confidence: f32, "min-confidence", "C", Everyday;
    /// CAN leaves classes with fewer pseudo-labels than this out of a round [default: 3]
    least_items: usize, "least-items", "N", Papers;
    /// Classes in a class-aware batch of CAN [default: 10]
    batch_classes: usize, "batch-classes", "N", Papers;
    /// Items of a class and domain in a class-aware batch of CAN [default: 3]
    class_items: usize, "class-items", "N", Papers;
    /// Share of an epoch of class-aware batches in a round of CAN [default: 1]
    epoch_share: f64, "epoch-share", "SHARE", Papers;
    /// Gradients stop at the end of this layer: layer1, blocks.2 [default: layer1 for CAN on a ResNet]
    stop_after: Option<String>, "stop-after", "LAYER", Everyday;
    /// The layers up to this one stay as they are: what they make of the images is computed once and kept, and only the layers after
    /// it are trained: stage5 of an EfficientNet-Lite0, layer3 of a ResNet
    freeze_until: Option<String>, "freeze-until", "LAYER", Everyday;
    /// Random crops of each image that pass the frozen layers, besides the image itself [default: 3]
    cached_crops: usize, "cached-crops", "N", Everyday;
    /// How far small images are zoomed in training, as a share; they also move by up to eight times as many pixels
    /// [default: 0.25]
    jitter: f32, "jitter", "SHARE", Papers;
    /// k, the neighbours of each node of the graph [default: 20]
    neighbours: usize, "neighbours", "K", Papers;
    /// How far labels travel in the graph (α) [default: 0.5]
    alpha: f64, "alpha", "ALPHA", Papers;
    /// Rounds of A²LP each time that pseudo-labels are made [default: 10]
    labelling_rounds: usize, "label-rounds", "N", Papers;
    /// Use only the class centres of the source as nodes of the graph [default: all source items]
    centres: bool, "centres", "", Papers;
    /// Seed of everything random [default: 0]
    seed: u64, "seed", "N", Everyday;
}

impl TrainSettings {
    /// The papers' values; for networks that the papers do not have, values that were chosen without target labels.
    pub fn new(learner: Learner, body: BodyShape) -> Self {
        let photos = matches!(body, BodyShape::Backbone(_));
        let mut settings = TrainSettings {
            learner,
            labeller: Labeller::Auto,
            rounds: if photos { 50 } else { 10 },
            steps: Some(if photos { 200 } else { 100 }),
            warm_up: if body == BodyShape::Lenet { 300 } else { 0 },
            batch: if photos { 32 } else { 64 },
            rate: 0.01,
            pretrained_rate: if photos { 0.1 } else { 1.0 },
            mu: 10.0,
            beta: 0.75,
            momentum: 0.9,
            weight_decay: 5e-4,
            target_weight: 0.3,
            adversarial_weight: 0.1,
            min_confidence: 0.0,
            least_items: 3,
            batch_classes: 10,
            class_items: 3,
            epoch_share: 1.0,
            stop_after: None,
            freeze_until: None,
            cached_crops: 3,
            jitter: 0.25,
            neighbours: 20,
            alpha: 0.5,
            labelling_rounds: 10,
            centres: false,
            seed: 0,
        };
        learner.recipe().set_defaults(&mut settings, body);
        settings
    }

    /// Defaults for training behind frozen layers (`freeze_until`), which takes minutes on a CPU: the classifier starts from the
    /// features as they are, and a few hundred steps follow.
    pub fn behind_frozen_layers(mut self) -> Self {
        self.rounds = 10;
        self.steps = Some(40);
        self.warm_up = 300;
        self
    }

    /// VisDA-2017 in the papers: a rate that falls faster, larger class-aware batches, a larger graph over centres.
    pub fn visda(mut self) -> Self {
        self.beta = 2.25;
        self.batch_classes = 6;
        self.class_items = 10;
        self.epoch_share = 0.2;
        self.neighbours = 100;
        self.alpha = 0.75;
        self.centres = true;
        self
    }

    /// Where pseudo-labels come from.
    pub fn labeller(mut self, labeller: Labeller) -> Self {
        self.labeller = labeller;
        self
    }

    /// Makes sure that every value is in range for a network with this body.
    pub fn check(self, body: BodyShape) -> Result<CheckedTrainSettings, TrainError> {
        let wrong =
            |name, value: String, rule: &str| Err(TrainError::Setting { name, value, rule: rule.into() });
        for (name, count) in [
            ("train-rounds", self.rounds),
            ("steps", self.steps.unwrap_or(1)),
            ("batch", self.batch),
            ("batch-classes", self.batch_classes),
            ("class-items", self.class_items),
        ] {
            if count == 0 {
                return wrong(name, "0".into(), "at least 1");
            }
        }
        for (name, number) in [("rate", self.rate), ("epoch-share", self.epoch_share)] {
            if !(number > 0.0 && number.is_finite()) {
                return wrong(name, number.to_string(), "a number above 0 is needed");
            }
        }
        for (name, number) in [
            ("pretrained-rate", self.pretrained_rate),
            ("mu", self.mu),
            ("beta", self.beta),
            ("weight-decay", self.weight_decay),
            ("target-weight", self.target_weight),
            ("adversarial-weight", self.adversarial_weight),
        ] {
            if !(number >= 0.0 && number.is_finite()) {
                return wrong(name, number.to_string(), "a number of 0 or more is needed");
            }
        }
        if !(0.0..1.0).contains(&self.momentum) {
            return wrong("momentum", self.momentum.to_string(), "from 0 to below 1");
        }
        if !(0.0..1.0).contains(&self.jitter) {
            return wrong("jitter", self.jitter.to_string(), "from 0 to below 1");
        }
        if !(0.0..=1.0).contains(&self.min_confidence) {
            return wrong("min-confidence", self.min_confidence.to_string(), "between 0 and 1");
        }
        for (name, layer) in [("stop-after", &self.stop_after), ("freeze-until", &self.freeze_until)] {
            let Some(layer) = layer.as_ref().filter(|layer| body.layer(layer).is_none()) else { continue };
            let layers = body.layers();
            let has = if layers.is_empty() { "no such layers".into() } else { layers.join(", ") };
            return wrong(name, layer.clone(), &format!("this network has {has}"));
        }
        // The graph's own parameters are refused now, not after the first features were made.
        crate::training::graph_parameters(&self)?;
        Ok(CheckedTrainSettings(self))
    }
}

/// Settings that are known to be in range; made by [`TrainSettings::check`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckedTrainSettings(TrainSettings);

impl std::ops::Deref for CheckedTrainSettings {
    type Target = TrainSettings;

    fn deref(&self) -> &TrainSettings {
        &self.0
    }
}

impl CheckedTrainSettings {
    /// The learner.
    pub fn learner(&self) -> Learner {
        self.0.learner
    }

    /// Where pseudo-labels come from.
    pub fn labeller(&self) -> Labeller {
        self.0.labeller
    }

    /// Rounds of the run.
    pub fn rounds(&self) -> usize {
        self.0.rounds
    }
}
