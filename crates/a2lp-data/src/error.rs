//! What can be wrong with a file: which file, where in it, what, and what to do.

use std::path::{Path, PathBuf};

/// A problem and the file it was found in.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct DataError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it; the message says it already, so that a chain of causes need not repeat it.
    pub problem: Problem,
}

impl DataError {
    pub(crate) fn new(path: &Path, problem: impl Into<Problem>) -> Self {
        DataError { path: path.to_path_buf(), problem: problem.into() }
    }
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Neither content nor extension is known.
    #[error("unknown format; a2lp reads .npy, .npz, .safetensors, .csv and, for labels, .txt")]
    UnknownFormat,
    /// A Python pickle, which could run code on loading.
    #[error(
        "pickled Python objects are not read, they can run code; convert once: python -c \"import torch, numpy; numpy.save('features.npy', torch.load('FILE').numpy())\""
    )]
    Pickle,
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The header of an array is not what NumPy writes.
    #[error("not a valid .npy header: {0}")]
    Header(String),
    /// An element type that is not numeric, or not supported.
    #[error("element type '{0}' is not supported here; save as float32, integers or fixed-length strings")]
    ElementType(String),
    /// The shape of an array does not fit its use.
    #[error("{what} must have {wanted}, but the array has shape {shape:?}")]
    Dimensions {
        /// What is being read.
        what: &'static str,
        /// What it needs.
        wanted: &'static str,
        /// What it has.
        shape: Vec<usize>,
    },
    /// The header promises more than there is.
    #[error("truncated: {promised} bytes of data promised, {found} found")]
    Truncated {
        /// Bytes the header asks for.
        promised: u128,
        /// Bytes there are.
        found: u64,
    },
    /// The archive is damaged or does not hold what is needed.
    #[error("{0}")]
    Archive(String),
    /// An image that cannot be decoded.
    #[error("{0}")]
    Image(String),
    /// Something in a text file.
    #[error("line {line}: {message}")]
    Line {
        /// From 1.
        line: u64,
        /// What is wrong there.
        message: String,
    },
    /// A table without the column that is needed.
    #[error("{0}")]
    Table(String),
    /// A label that is no class.
    #[error("row {row}: {message}")]
    Label {
        /// From 0.
        row: usize,
        /// What is wrong there.
        message: String,
    },
    /// The features do not fit into memory.
    #[error("{0} bytes of features do not fit into memory")]
    Memory(u128),
    /// An output that is already there.
    #[error("exists already; pass --force to replace it")]
    Exists,
}
