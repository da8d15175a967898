//! Files on disk ↔ features and labels, and the demo domains that need no file at all.
//!
//! ```text
//! FeatureFile (.npy .npz .safetensors .csv) ─┬─► stack ─► FeatureMatrix (source rows, then target rows)
//! Column      (the same, .txt) ─► labels, ids, class names
//! ```
//!
//! One file here per format; [`Format`] decides by content first, then by extension. Sizes promised by a
//! header are checked against the file before anything is allocated. Everything written goes to a temporary
//! file first and is then renamed, so an output is whole or not there at all.

#![warn(clippy::unwrap_used)]

mod column;
mod csv_file;
pub mod demo;
mod error;
mod feature_file;
mod format;
pub mod images;
mod npy;
mod npz;
mod pictures;
mod safetensors;
mod text;
mod write;

pub use column::{Column, read_class_names, read_ids, read_labels};
pub use error::{DataError, Problem};
pub use feature_file::{FeatureFile, stack};
pub use format::Format;
pub use npy::ElementType;
pub use npz::read_graph;
pub use pictures::{Picture, read_all_pictures, read_pictures};
pub use write::{ArrayFile, write_atomically};
