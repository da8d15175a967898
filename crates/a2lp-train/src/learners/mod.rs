//! Learners: what is learned from the target besides the cross-entropy on the source. One file each.
//!
//! To add one: a file that implements [`Recipe`], a variant of [`Learner`], and its row in the table below.

mod can;
mod ce;
mod dann;
mod em;
mod mstn;
mod source_only;

use crate::error::TrainError;
use crate::losses::Centroids;
use crate::networks::{BodyShape, NetworkShape};
use crate::training::{Objective, RoundView, Step, TrainSettings, TrainingLabels};
use serde::{Deserialize, Serialize};

macro_rules! learners {
    ($($(#[doc = $about:literal])+ $variant:ident, $word:literal, $recipe:expr;)*) => {
        /// What is learned from the target besides the cross-entropy on the source.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Learner {
            $($(#[doc = $about])+ $variant,)*
        }

        impl Learner {
            /// The words that users write and the learners they stand for.
            pub const WORDS: &[(&str, Learner)] = &[$(($word, Learner::$variant)),*];

            /// What each does, for help texts.
            pub const ABOUT: &[(&str, &str)] = &[$(($word, concat!($($about),+))),*];

            pub(crate) fn recipe(self) -> &'static dyn Recipe {
                match self {
                    $(Learner::$variant => &$recipe,)*
                }
            }
        }
    };
}

learners! {
    /// No loss on the target
    SourceOnly, "source-only", source_only::SourceOnly;
    /// Entropy minimisation (eq. 2)
    Em, "em", em::EntropyMinimisation;
    /// Cross-entropy on confident pseudo-labels
    Ce, "ce", ce::CrossEntropy;
    /// Domain-adversarial training
    Dann, "dann", dann::Dann;
    /// Domain-adversarial training and class centroids that meet
    Mstn, "mstn", mstn::Mstn;
    /// Contrastive domain discrepancy
    Can, "can", can::Can;
}

impl Learner {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }

    /// Does it learn from pseudo-labels at all?
    pub fn uses_pseudo_labels(self) -> bool {
        self.recipe().uses_pseudo_labels()
    }

    /// The network it trains.
    pub fn network(self, body: BodyShape, classes: usize) -> NetworkShape {
        let photos = matches!(body, BodyShape::Backbone(_));
        let adversarial = self.recipe().is_adversarial();
        NetworkShape {
            body,
            bottleneck: photos && adversarial,
            discriminator: adversarial.then_some(if photos { 1024 } else { 500 }),
            classes,
        }
    }
}

/// How a learner works.
pub(crate) trait Recipe: Sync {
    /// Sets the defaults that differ from everyone's.
    fn set_defaults(&self, _settings: &mut TrainSettings, _body: BodyShape) {}

    fn uses_pseudo_labels(&self) -> bool {
        false
    }

    /// Does it have a discriminator?
    fn is_adversarial(&self) -> bool {
        false
    }

    /// Do the domains have batch-norm statistics of their own? Not if the target takes no part in training.
    fn splits_domains(&self) -> bool {
        true
    }

    /// The pseudo-labels of a round by its own means; `None` if it makes them batch by batch or uses none.
    fn own_labels(&self, _seen: &RoundView<'_>) -> Option<TrainingLabels> {
        None
    }

    /// Class centroids that move from step to step.
    fn centroids(&self, _shape: &NetworkShape) -> Option<Centroids> {
        None
    }

    /// Does it draw batches class by class, and stop when the class centres of the domains have met?
    fn is_class_aware(&self) -> bool {
        false
    }

    /// What a step minimises.
    fn objective(&self, step: &mut Step<'_>) -> Result<Objective, TrainError>;
}
