//! What a training run is asked to do, with the values of the papers for defaults.

use crate::networks::BodyShape;
use serde::{Deserialize, Serialize};

/// What is learned from the target besides what the source teaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Learner {
    /// Nothing.
    SourceOnly,
    /// Entropy minimisation (eq. 2): be sure of something.
    Em,
    /// Cross-entropy on confident pseudo-labels.
    Ce,
    /// Domain-adversarial training.
    Dann,
    /// Domain-adversarial training, and centroids of classes that meet.
    Mstn,
    /// The contrastive domain discrepancy.
    Can,
}

impl Learner {
    /// What users write, and what it stands for.
    pub const WORDS: &[(&str, Learner)] = &[
        ("source-only", Learner::SourceOnly),
        ("em", Learner::Em),
        ("ce", Learner::Ce),
        ("dann", Learner::Dann),
        ("mstn", Learner::Mstn),
        ("can", Learner::Can),
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }

    /// Does it learn from pseudo-labels at all?
    pub fn uses_pseudo_labels(self) -> bool {
        matches!(self, Learner::Ce | Learner::Mstn | Learner::Can)
    }

    /// Does it have a discriminator?
    pub fn is_adversarial(self) -> bool {
        matches!(self, Learner::Dann | Learner::Mstn)
    }
}

/// Where pseudo-labels come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Labeller {
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
    /// What users write, and what it stands for.
    pub const WORDS: &[(&str, Labeller)] = &[
        ("own", Labeller::Own),
        ("lp", Labeller::Lp),
        ("a2lp", Labeller::A2lp),
        ("consensus", Labeller::Consensus),
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }
}

/// All that decides how a run goes, but for the data and the weights it starts from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainSettings {
    /// What is learned from the target.
    pub learner: Learner,
    /// Where pseudo-labels come from.
    pub labeller: Labeller,
    /// Times that pseudo-labels are made and learned from.
    pub rounds: usize,
    /// Steps between two sets of pseudo-labels; `None`: by CAN's formula for CAN.
    pub steps: Option<usize>,
    /// Steps on the source alone before the first round, for networks that know nothing yet.
    pub warm_up: usize,
    /// Items of either domain in a batch.
    pub batch: usize,
    /// Learning rate of new layers at the start.
    pub rate: f64,
    /// Share of that rate for layers that were trained before.
    pub pretrained_rate: f64,
    /// How fast the rate falls: η = η₀ / (1 + μp)^β, p from 0 to 1 over the run.
    pub mu: f64,
    /// See `mu`.
    pub beta: f64,
    /// Share of the last step's direction in a step.
    pub momentum: f64,
    /// Pull of every weight to 0.
    pub weight_decay: f64,
    /// How much the target's loss counts beside the source's: entropy, pseudo-labels, CDD.
    pub target_weight: f64,
    /// How much the discriminator counts.
    pub adversarial_weight: f64,
    /// Pseudo-labels count when their confidence is above this at the start, and above 0 at the end; LP and A²LP only.
    pub min_confidence: f32,
    /// CAN: classes with fewer pseudo-labels than this are left out of a round.
    pub least_items: usize,
    /// CAN: classes in a class-aware batch.
    pub batch_classes: usize,
    /// CAN: items of a class and domain in a class-aware batch.
    pub class_items: usize,
    /// CAN: share of an epoch of class-aware batches in a round.
    pub epoch_share: f64,
    /// No gradient goes further down than the end of this layer.
    pub stop_after: Option<String>,
    /// Neighbours of an item in the graph of LP and A²LP.
    pub neighbours: usize,
    /// How far labels travel in it.
    pub alpha: f64,
    /// Rounds of A²LP each time.
    pub labelling_rounds: usize,
    /// Only the centres of the source's classes are nodes of the graph, not all its items.
    pub centres: bool,
    /// All random choices.
    pub seed: u64,
}

impl TrainSettings {
    /// What the papers use, or for networks that they do not have, what was chosen without looking at target labels.
    pub fn new(learner: Learner, body: BodyShape) -> Self {
        let photos = matches!(body, BodyShape::Backbone(_));
        let can = learner == Learner::Can;
        TrainSettings {
            learner,
            labeller: Labeller::A2lp,
            rounds: if photos { 50 } else { 10 },
            steps: match body {
                BodyShape::Backbone(_) if can => None,
                BodyShape::Backbone(_) => Some(200),
                _ => Some(100),
            },
            warm_up: if body == BodyShape::Lenet { 300 } else { 0 },
            batch: match body {
                BodyShape::Backbone(_) if can => 30,
                BodyShape::Backbone(_) => 32,
                _ => 64,
            },
            rate: 0.01,
            pretrained_rate: if photos { 0.1 } else { 1.0 },
            mu: 10.0,
            beta: 0.75,
            momentum: 0.9,
            weight_decay: 5e-4,
            target_weight: match learner {
                Learner::Em => 0.1,
                Learner::Mstn if photos => 1.0,
                // The papers' mean over all entries is weak in so few steps; 1, 10 and 100 were tried on the demo's domains.
                Learner::Mstn => 100.0,
                _ => 0.3,
            },
            adversarial_weight: 0.1,
            min_confidence: if can || learner == Learner::Ce { 0.7 } else { 0.0 },
            least_items: 3,
            batch_classes: 10,
            class_items: 3,
            epoch_share: 1.0,
            stop_after: (can && photos).then(|| match body {
                BodyShape::Backbone(crate::BackboneName::EfficientnetLite0) => "blocks.2".to_string(),
                _ => "layer1".to_string(),
            }),
            neighbours: 20,
            alpha: 0.5,
            labelling_rounds: 10,
            centres: false,
            seed: 0,
        }
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
}
