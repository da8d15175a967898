//! Everything that can go wrong between shards.

use std::path::Path;

/// Why a run on shards stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The method refused.
    #[error(transparent)]
    Run(#[from] a2lp::Error),
    /// A file of features or labels.
    #[error(transparent)]
    Data(#[from] a2lp_data::DataError),
    /// Something in the work folder cannot be read or written.
    #[error("{name}: {problem}")]
    Storage {
        /// What was asked for.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// A worker is gone; the run can go on with others.
    #[error("a worker was lost: {0}")]
    Lost(String),
    /// What workers and driver say to each other does not fit, or the input is not what it was.
    #[error("{0}")]
    Broken(String),
}

impl ShardError {
    pub(crate) fn storage(name: &str, problem: impl ToString) -> Self {
        ShardError::Storage { name: name.into(), problem: problem.to_string() }
    }

    pub(crate) fn file(path: &Path, problem: impl ToString) -> Self {
        Self::storage(&path.display().to_string(), problem)
    }
}
