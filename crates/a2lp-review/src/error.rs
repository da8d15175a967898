//! Why something could not be done.

use std::path::PathBuf;

/// Why a review could not go on, or an action was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// An action that makes no sense now; nothing happened.
    #[error("{0}")]
    Refused(String),
    /// The journal cannot be read or written.
    #[error("{}: {message}", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The method itself failed.
    #[error(transparent)]
    Method(#[from] a2lp::Error),
    /// A file could not be read or written.
    #[error(transparent)]
    Data(#[from] a2lp_data::DataError),
    /// The page could not be served.
    #[error("the page cannot be served: {0}")]
    Serve(#[from] std::io::Error),
}

impl ReviewError {
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        ReviewError::Refused(message.into())
    }
}
