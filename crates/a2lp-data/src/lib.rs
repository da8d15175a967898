//! Files on disk ↔ features and labels, and the demo domains that need no file at all.
//!
//! ```text
//! files ─► DataFile ─┬─► FeatureFile ─► stack ─► FeatureMatrix (source rows, then target rows)
//!                    └─► Column: labels, ids, class names
//! ```
//!
//! One file here per format. [`Format`] decides by content first, then by extension. Formats that hold arrays by name share
//! `arrays`, those that hold tables of columns share `table`. Readers of other people's crates stay behind `guard`, and what a
//! file claims takes no memory until the file proves it (`rows`). Everything written goes to a temporary file first and is then
//! renamed, so an output is whole or not there at all.
//!
//! Two features add what is long to compile: `tables` reads and writes Parquet, Arrow and HDF5, `images` reads image files.

#![warn(clippy::unwrap_used)]

mod column;
pub mod demo;
mod error;
mod feature_file;
mod formats;
mod guard;
#[cfg(feature = "images")]
pub mod images;
mod names;
mod pictures;
mod rows;
mod write;

pub use column::{Column, read_class_names, read_ids, read_labels};
pub use error::{DataError, Problem};
pub use feature_file::{FeatureFile, expand, stack};
pub use formats::{ElementType, Format, read_graph};
pub use guard::{panic_is_caught, without_panic};
pub use names::{Field, FieldNames};
pub use pictures::{Picture, read_all_pictures, read_pictures};
pub use write::{ArrayFile, LabelledFeatures, Output, TableColumn, TableFile, write_atomically};
