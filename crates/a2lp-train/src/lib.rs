//! Networks, feature extraction and training: the one crate that names burn.
//!
//! ```text
//! a2lp_data::images (files → tensors) ─► Backbone (burn, or ONNX through rten) ─► features ─► extract (resumable) ─► .npz
//! either domain's images or features ─► training (resumable: pseudo-labels ⟲ steps) ─► TrainedModel
//! ```

#![warn(clippy::unwrap_used)]

mod backbone;
mod device;
mod draws;
mod error;
mod extract;
mod learners;
mod losses;
pub mod networks;
mod training;
mod weights;

pub use backbone::{Backbone, BackboneName};
pub use device::DeviceName;
pub use error::TrainError;
pub use extract::{Extracted, Extraction};
pub use learners::Learner;
pub use networks::{Body, BodyShape, NetworkShape};
pub use training::{
    CheckedTrainSettings, Inputs, Labeller, Losses, TrainObserver, TrainSettings, Trained, TrainedModel,
    TrainedRound, Training, TrainingLabels,
};
pub use weights::{LoadedWeights, load_smallest};
