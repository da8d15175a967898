//! Networks and feature extraction: the one crate that names burn.
//!
//! ```text
//! a2lp_data::images (files → tensors) ─► Backbone (burn, or ONNX through rten) ─► features ─► extract (resumable) ─► .npz
//! ```

#![warn(clippy::unwrap_used)]

mod backbone;
mod draws;
mod error;
mod extract;
mod losses;
pub mod networks;
mod weights;

pub use backbone::{Backbone, BackboneName};
pub use error::TrainError;
pub use extract::{Extracted, Extraction};
pub use weights::LoadedWeights;
