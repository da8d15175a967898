//! Files on disk ↔ features and labels, and demo domains that need no file.
//!
//! ```text
//! files ─► formats ─┬─► FeatureFile ─► stack ─► FeatureMatrix (source rows, then target rows)
//!                   └─► Column: labels, ids, class names
//! ```
//!
//! `formats` has one file per format and one table of all formats. [`Format`] decides by content first, then by ending. Readers
//! from other crates run behind `guard`, and a file's claims take no memory until the file proves them (`rows`). Everything is
//! written to a temporary file and then renamed, so an output is whole or absent.
//!
//! Two features add what takes long to compile: `tables` reads and writes Parquet, Arrow and HDF5; `images` reads image files.
//!
//! ```
//! use a2lp_data::{ArrayFile, FeatureFile};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("mugs.npz");
//! ArrayFile::new().matrix("features", 2, 3, &[1.0, 0.2, 0.1, 0.1, 0.9, 0.3]).strings("labels", &["mug", "bike"]).write(&path, false)?;
//!
//! let mut file = FeatureFile::open(&path)?;
//! assert_eq!((file.rows(), file.columns()), (2, 3));
//! let labels = file.labels()?.map(|labels| labels.into_strings());
//! assert_eq!(labels, Some(vec!["mug".to_string(), "bike".to_string()]));
//! assert_eq!(file.read()?.row(1), [0.1, 0.9, 0.3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::unwrap_used)]

mod column;
pub mod demo;
mod error;
mod feature_file;
mod formats;
mod guard;
#[cfg(feature = "images")]
pub mod images;
mod known;
mod label_rows;
mod names;
mod pictures;
mod rows;
mod write;

pub use column::{Column, read_class_names, read_ids, read_labels};
pub use error::{DataError, Problem};
pub use feature_file::{FeatureFile, expand, stack};
pub use formats::{ElementType, Format, read_graph};
pub use guard::{panic_is_caught, without_panic};
pub use known::{KnownItem, read_known, with_known_items};
pub use label_rows::{LabelRow, read_label_rows};
pub use names::{Field, FieldNames};
pub use pictures::{Picture, read_all_pictures, read_pictures};
pub use write::{
    ArrayFile, LabelTable, LabelledFeatures, Output, TableColumn, TableFile, check_labels_path, choice,
    label_endings, origin, refuse_existing, write_atomically,
};
