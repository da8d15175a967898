//! Errors of files: which file, where in it, and what is wrong.

use crate::formats::Format;
use crate::names::Field;
use std::path::{Path, PathBuf};

/// A problem and the file it was found in.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct DataError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it. It is part of the message, so it is not also the error's source.
    pub problem: Problem,
}

impl DataError {
    pub(crate) fn new(path: &Path, problem: impl Into<Problem>) -> Self {
        DataError { path: path.to_path_buf(), problem: problem.into() }
    }
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Neither content nor extension is known.
    #[error("unknown format; a2lp reads {}, and labels and ids also from {}", Format::readable_endings(), Format::Text.endings())]
    UnknownFormat,
    /// A Python pickle, which could run code on loading.
    #[error("pickled Python objects are not read, they can run code; convert it where you trust it: {0}")]
    Pickle(String),
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
    /// A file that its reader cannot make sense of.
    #[error("damaged {format} file: {message}")]
    Damaged {
        /// Its format.
        format: &'static str,
        /// What is wrong.
        message: String,
    },
    /// A file of a kind that is known and not read.
    #[error("{0}")]
    Unsupported(String),
    /// A file without a part that is needed.
    #[error("no {kind} '{name}'; it has: {has}")]
    LacksField {
        /// `array` or `column`.
        kind: &'static str,
        /// The name that was looked for.
        name: String,
        /// What the file has instead.
        has: String,
        /// The part that is missing.
        field: Field,
    },
    /// A file of a kind that this build was made without.
    #[error("this build of a2lp has no {what}; it lacks the feature `{feature}`")]
    LacksFeature {
        /// The kind of file.
        what: &'static str,
        /// The feature of this crate that brings it.
        feature: &'static str,
    },
    /// A small file that claims to hold very much.
    #[error("{file_bytes} bytes claim to hold {claimed_bytes}, more than an honest file does; not read")]
    Expansion {
        /// Bytes it would take in memory.
        claimed_bytes: u128,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// The file was written to meanwhile.
    #[error("the file changed while it was being read; read it again when it is complete")]
    Changed,
    /// Whoever took the rows wants no more of them.
    #[error("reading was stopped")]
    Stopped,
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
    /// A value of one row.
    #[error("row {row}: {message}")]
    Row {
        /// From 0.
        row: usize,
        /// What is wrong there.
        message: String,
    },
    /// The features do not fit into memory.
    #[error("{0} bytes of features do not fit into memory")]
    Memory(u128),
    /// An output that is already there.
    #[error("exists already")]
    Exists,
}

/// A file of n bytes may hold this many times n, as far as deflate can compress.
pub(crate) const MAX_EXPANSION: u64 = 1032;
/// A piece of a file that is decompressed in one go may hold this many times its bytes, and [`PIECE_BYTES`] more.
#[cfg(feature = "tables")]
const PIECE_EXPANSION: u64 = 256;
/// What a piece may hold however small it is.
#[cfg(feature = "tables")]
pub(crate) const PIECE_BYTES: u64 = 8 << 20;

impl Problem {
    pub(crate) fn damaged(format: &'static str, message: impl ToString) -> Self {
        Problem::Damaged { format, message: message.to_string() }
    }

    /// Refuses a pickle, with the line of Python that makes a file we read of it.
    pub(crate) fn pickle(path: &Path) -> Self {
        let is_torch = path.extension().is_some_and(|ending| ending == "pt" || ending == "pth");
        // Users will paste this into a shell.
        let unsafe_in_shell = |c: char| !c.is_alphanumeric() && !"/-_.,+= ".contains(c);
        let quoted = |path: &Path| format!("'{}'", path.to_string_lossy().replace(unsafe_in_shell, "?"));
        let (from, to) = (quoted(path), quoted(&path.with_extension("npy")));
        Problem::Pickle(if is_torch {
            format!("python -c \"import torch, numpy; numpy.save({to}, torch.load({from}, 'cpu').numpy())\"")
        } else {
            format!("python -c \"import pickle, numpy; numpy.save({to}, pickle.load(open({from}, 'rb')))\"")
        })
    }

    /// Refuses claims that no honest file makes.
    pub(crate) fn check_expansion(claimed_bytes: u128, file_bytes: u64) -> Result<(), Problem> {
        if claimed_bytes > u128::from(file_bytes) * u128::from(MAX_EXPANSION) + (16 << 20) {
            return Err(Problem::Expansion { claimed_bytes, file_bytes });
        }
        Ok(())
    }

    /// Refuses what no honest piece of a file claims to hold.
    #[cfg(feature = "tables")]
    pub(crate) fn check_piece(claimed: u64, stored: u64) -> Result<(), Problem> {
        if claimed > stored.saturating_mul(PIECE_EXPANSION).saturating_add(PIECE_BYTES) {
            return Err(Problem::Expansion { claimed_bytes: u128::from(claimed), file_bytes: stored });
        }
        Ok(())
    }
}
