//! What can go wrong with networks and extraction.

use std::path::PathBuf;

/// Why features could not be extracted.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A weights file that does not fit the network.
    #[error("{path}: {message}", path = .path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A network in a file that cannot be run as an extractor.
    #[error("{path}: {message}", path = .path.display())]
    Network {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Cancelled,
    /// A file of images or features.
    #[error(transparent)]
    Data(#[from] a2lp_data::DataError),
    /// The operating system refused.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}
