//! Networks, feature extraction and training. This is the only crate that uses burn.
//!
//! ```text
//! a2lp_data::images (files → tensors) ─► Backbone (burn, or ONNX) ─► features ─► Extraction (resumable) ─► .npz
//! images or features of both domains ─► Training (resumable: pseudo-labels ⟲ steps) ─► TrainedModel
//! ```
//!
//! A learner is one file under `learners`; the settings are one table. Settings are checked before anything runs:
//!
//! ```
//! use a2lp_train::{Body, Inputs, Learner, TrainSettings};
//!
//! let source = Inputs::rows(3, vec![1.0, 0.2, 0.1, 0.1, 0.9, 0.3]);
//! let body = Body::Adapter.shape(&source);
//! let settings = TrainSettings::new(Learner::Mstn, body).rounds(5).check(body)?;
//! assert_eq!(settings.rounds(), 5);
//! let error = TrainSettings::new(Learner::Can, body).rate(-1.0).check(body).unwrap_err();
//! assert_eq!(error.to_string(), "rate = -1: a number above 0 is needed");
//! # Ok::<(), a2lp_train::TrainError>(())
//! ```
//!
//! `examples/train.rs` trains a network from start to end.

#![warn(clippy::unwrap_used)]

mod backbone;
mod device;
mod draws;
mod error;
mod extract;
mod layers;
mod learners;
mod losses;
pub mod networks;
mod onnx;
mod parts;
mod training;
mod trunk;
mod weights;

pub use backbone::{Backbone, BackboneName};
pub use device::DeviceName;
pub use error::TrainError;
pub use extract::{Extracted, Extraction};
pub use learners::Learner;
pub use networks::{Body, BodyShape, NetworkShape};
pub use onnx::{OnnxEngine, OnnxRunner};
pub use training::{
    CheckedTrainSettings, Inputs, Labeller, Losses, TrainObserver, TrainSettings, Trained, TrainedModel,
    TrainedRound, Training, TrainingLabels, Verdict,
};
pub use weights::{LoadedWeights, load_smallest};
