//! Label a new domain without labelling it.
//!
//! Given labelled features of one domain and unlabelled features of another, [`label`] gives every target item
//! a label, a confidence and a status, by *Label Propagation with Augmented Anchors* (A²LP): build a
//! k-nearest-neighbour graph over both domains, propagate labels by solving (I − αS)F = Y, turn the confident
//! target predictions into one anchor per class, add the anchors as labelled nodes, repeat.
//!
//! The modules follow the data (ARCHITECTURE.md has the table):
//!
//! ```text
//! features → neighbours → affinity → propagation → pseudo_labels → anchors → views ⟲ rounds → run
//! ```
//!
//! | type | is | made by |
//! |---|---|---|
//! | [`Domains`] | source features and labels, target features | the caller |
//! | neighbour lists | the k most similar nodes of each node | `neighbours` |
//! | [`Affinity`] | A + Aᵀ (eq. 6), normalised to S | `affinity` |
//! | [`SoftLabels`] | F* = (I − αS)⁻¹Y (eq. 7) | `propagation` |
//! | [`PseudoLabels`] | label, probabilities, confidence (eq. 8), status | `pseudo_labels` |
//! | [`Anchor`] | one virtual labelled item per class (eq. 9) | `anchors` |
//! | [`Quality`] | how consistent labels look | `quality` |
//! | [`Reach`] | which items match nothing in the source | `reach` |
//! | [`Labelling`] | the labels and the figures of every round | [`label`], or [`Run`] with a graph, an observer, a model |
//!
//! The truth about the target, if it is known, belongs to [`evaluation`] and cannot reach the method. Results depend neither on
//! the number of threads nor on the CPU's vector instructions. This crate opens no files.
//!
//! ```
//! use a2lp::{Domains, FeatureMatrix, Labels, Parameters, label};
//!
//! let source = FeatureMatrix::from_rows(&[[1.0, 0.1], [0.1, 1.0]])?;
//! let target = FeatureMatrix::from_rows(&[[0.9, 0.3], [0.3, 0.7]])?;
//! let domains = Domains::new(source, Labels::new(&["mug", "bike"]), target)?;
//! let labelling = label(domains, &Parameters::new().neighbours(2).check()?)?;
//! let [mug, bike] = ["mug", "bike"].map(|name| labelling.classes.find(name));
//! assert_eq!(labelling.pseudo_labels.labels(), [mug, bike]);
//! # Ok::<(), a2lp::Error>(())
//! ```

#![warn(clippy::unwrap_used)]

mod affinity;
mod anchors;
pub mod baselines;
/// For our own crates only: it may change at any time.
#[doc(hidden)]
pub mod blocks;
mod diagnostics;
mod error;
pub mod evaluation;
mod features;
mod graph;
mod hypothesis;
mod kernels;
mod known;
mod labelling;
mod labels;
mod linear_algebra;
mod live;
mod machine;
mod method;
mod model;
mod neighbours;
mod observer;
mod parameters;
mod plan;
mod propagation;
mod pseudo_labels;
mod quality;
mod reach;
mod rounds;
mod run;
mod setup;
mod similarity;
mod smoothing;
mod views;

pub use affinity::Affinity;
pub use anchors::Anchor;
pub use diagnostics::Warning;
pub use error::{Domain, Error};
pub use features::{Domains, FeatureMatrix};
pub use graph::{FoundGraph, NeighbourGraph, neighbour_graph};
pub use hypothesis::{AssumedMix, MixChoice};
pub use known::KnownLabels;
pub use labelling::{Guard, Labelling, Opinion, Round};
pub use labels::{ClassId, Classes, Labels, remove_rows};
pub use live::{Change, LiveLabels};
pub use method::{MethodChoice, MethodReason};
pub use model::{Model, ModelParts};
pub use neighbours::GraphReport;
pub use observer::{Attempt, FinishedRound, Observer, Stage};
pub use parameters::{
    AnchorMode, AnchorSpace, AnchorWeights, CheckedParameters, GraphMethod, Group, Kind, LabelWeight, Method,
    Mix, Neighbours, ParameterInfo, Parameters, Solver, SourceNodes, Unknown, Unreached, Value,
};
pub use plan::{Plan, Shape};
pub use propagation::{SoftLabels, Solve};
pub use pseudo_labels::{PseudoLabels, Status};
pub use quality::Quality;
pub use reach::{Evidence, Reach, UnknownGroup, Verdict};
pub use run::{Run, label};
pub use similarity::Similarity;
pub use views::ViewName;

/// For our own crates only: it may change at any time.
#[doc(hidden)]
pub mod internal {
    /// The convolutions of `a2lp-train` need the same products.
    pub use crate::linear_algebra::Factor;
    /// The settings of `a2lp-train` are a table of the same kind.
    pub use crate::parameters::Setting;
}
