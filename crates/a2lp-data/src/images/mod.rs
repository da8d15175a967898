//! Images on disk ↔ pixels ↔ what a network takes.
//!
//! ```text
//! ImageSet (which files, which classes) ─► decode ─► Picture (RGB) ─► Transform ─► channels × height × width of f32
//! ```

mod dataset;
mod decode;
mod resize;
mod transform;

pub use dataset::{ImageItem, ImageSet, compare_classes};
pub use decode::{decode, thumbnail};
pub use resize::{Filter, resize};
pub use transform::Transform;
