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

mod arrays;
#[cfg(feature = "tables")]
mod arrow_blocks;
#[cfg(feature = "tables")]
mod arrow_file;
mod column;
mod csv_file;
mod data_file;
pub mod demo;
mod error;
mod feature_file;
mod format;
mod guard;
#[cfg(feature = "tables")]
mod hdf5_file;
#[cfg(feature = "images")]
pub mod images;
mod mat_file;
mod names;
mod npy;
mod npz;
#[cfg(feature = "tables")]
mod parquet_file;
mod pictures;
mod rows;
mod safetensors;
#[cfg(feature = "tables")]
mod table;
mod text;
#[cfg(feature = "tables")]
mod thrift;
mod write;
mod write_arrays;
#[cfg(feature = "tables")]
mod write_arrow;
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
