//! What can go wrong with networks and extraction.

use std::path::PathBuf;

/// Why features could not be extracted or a network not be trained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    /// A checkpoint that cannot be read or written.
    #[error("{path}: {message}", path = .path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A checkpoint of a run with other settings or other data.
    #[error("{path}: made with other settings, data or weights", path = .path.display())]
    OtherRun {
        /// The file.
        path: PathBuf,
    },
    /// A setting outside its range.
    #[error("{name} = {value}: {rule}")]
    Setting {
        /// Its name on the command line.
        name: &'static str,
        /// The value given.
        value: String,
        /// What is allowed.
        rule: String,
    },
    /// A loss that is no number any more.
    #[error(
        "the loss became infinite or NaN in round {round}, step {step}; a smaller learning rate may help. The checkpoint of the round before is kept"
    )]
    Diverged {
        /// The round, from 1; 0 is the warm-up.
        round: usize,
        /// The step, from 0.
        step: usize,
    },
    /// This program was built without support for a device.
    #[error("built without {0}")]
    NoDevice(&'static str),
    /// Pseudo-labels could not be made.
    #[error(transparent)]
    Labelling(#[from] a2lp::Error),
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
