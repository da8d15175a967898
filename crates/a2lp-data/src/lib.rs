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

#![warn(clippy::unwrap_used)]

mod arrays;
mod arrow_blocks;
mod arrow_file;
mod column;
mod csv_file;
mod data_file;
pub mod demo;
mod error;
mod feature_file;
mod format;
mod guard;
mod hdf5_file;
pub mod images;
mod mat_file;
mod names;
mod npy;
mod npz;
mod parquet_file;
mod pictures;
mod rows;
mod safetensors;
mod table;
mod text;
mod thrift;
mod write;
mod write_arrays;
mod write_tables;

pub use column::{Column, read_class_names, read_ids, read_labels};
pub use error::{DataError, Problem};
pub use feature_file::{FeatureFile, expand, stack};
pub use format::Format;
pub use guard::without_panic;
pub use names::FieldNames;
pub use npy::ElementType;
pub use npz::read_graph;
pub use pictures::{Picture, read_all_pictures, read_pictures};
pub use write::{Output, write_atomically};
pub use write_arrays::ArrayFile;
pub use write_tables::{TableColumn, TableFile};
