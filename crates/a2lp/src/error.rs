//! Everything that can be wrong with the input of a run, one variant each.

use std::fmt;

/// Which of the two domains a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// The labelled domain.
    Source,
    /// The domain to be labelled.
    Target,
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Domain::Source => "source",
            Domain::Target => "target",
        })
    }
}

/// Why a run could not be started or finished.
#[derive(Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A matrix was given whose values do not fill rows × columns.
    #[error("{values} values do not make {rows} rows of {columns} columns")]
    Shape {
        /// Values that were given.
        values: usize,
        /// Rows that were promised.
        rows: usize,
        /// Columns that were promised.
        columns: usize,
    },
    /// A domain without rows, or rows without columns.
    #[error("the {0} features are empty; give at least one row and one column")]
    Empty(Domain),
    /// Source and target features of different widths.
    #[error(
        "source features have {source_columns} columns, target features {target_columns}; both domains need the same extractor"
    )]
    Width {
        /// Columns of the source.
        source_columns: usize,
        /// Columns of the target.
        target_columns: usize,
    },
    /// NaN or infinity among the features.
    #[error("{domain} features: row {row}, column {column} is {value}; remove or repair such rows")]
    NotFinite {
        /// The domain concerned.
        domain: Domain,
        /// Row within that domain, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// The offending value.
        value: f32,
    },
    /// One label per source row is needed.
    #[error("{labels} labels for {rows} {domain} rows; one label per row is needed")]
    LabelCount {
        /// The domain concerned.
        domain: Domain,
        /// Labels given.
        labels: usize,
        /// Rows given.
        rows: usize,
    },
    /// A label names a class the class list does not have.
    #[error("row {row}: label '{label}' is not in the list of {classes} class names")]
    UnknownClass {
        /// Row of the label, from 0.
        row: usize,
        /// The label as given.
        label: String,
        /// Classes in the list.
        classes: usize,
    },
    /// A label was given for an item that the target does not have.
    #[error("a label for target item {item}, but the target has {items} items, counted from 0")]
    NoSuchItem {
        /// The item.
        item: usize,
        /// Items of the target.
        items: usize,
    },
    /// The same class name twice.
    #[error("class name '{0}' appears twice in the class list")]
    DuplicateClass(String),
    /// A parameter outside its range.
    #[error("{name} = {value}: {rule}")]
    Parameter {
        /// Name as the user knows it.
        name: &'static str,
        /// The value given.
        value: String,
        /// What is allowed.
        rule: &'static str,
    },
    /// More nodes than 32-bit indices can count.
    #[error("{0} rows are more than this build can index (4294967295)")]
    TooManyRows(usize),
    /// A graph that was brought along does not fit.
    #[error("the graph does not fit: {0}")]
    Graph(String),
    /// A similarity left the range of f32.
    #[error("the similarities of node {0} overflow; scale the features down or use the cosine similarity")]
    WeightOverflow(usize),
    /// A buffer that does not fit into memory.
    #[error("not enough memory for the {what} ({bytes} bytes); {advice}")]
    Memory {
        /// What the buffer is for.
        what: &'static str,
        /// Its size.
        bytes: u128,
        /// What to do instead.
        advice: &'static str,
    },
    /// The linear system has no unique solution.
    #[error("I − αS is singular for α = {0}; choose another alpha")]
    Singular(f64),
    /// The worker threads could not be started.
    #[error("cannot start {0} threads")]
    Threads(usize),
    /// The observer asked to stop.
    #[error("interrupted")]
    Cancelled,
}
