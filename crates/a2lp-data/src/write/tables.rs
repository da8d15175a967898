//! Columns, to be written into a file of a table format.

use crate::error::{DataError, Problem};
use crate::formats::{Format, Writer};
use crate::write::write_atomically;
use std::path::Path;

/// Columns, to be written into a file.
#[derive(Default)]
pub struct TableFile<'a> {
    pub(crate) columns: Vec<(String, TableColumn<'a>)>,
}

/// A column of a [`TableFile`].
pub enum TableColumn<'a> {
    /// A vector of this many numbers per row.
    Vectors(usize, &'a [f32]),
    /// A number per row.
    Floats(&'a [f32]),
    /// Every n-th number: one column of a matrix with n columns.
    Strided(usize, &'a [f32]),
    /// A whole number per row.
    Integers(&'a [i64]),
    /// A word per row, or none.
    Words(Vec<Option<&'a str>>),
}

impl<'a> TableFile<'a> {
    /// No columns yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column; all have equally many rows.
    pub fn column(mut self, name: &str, column: TableColumn<'a>) -> Self {
        self.columns.push((name.into(), column));
        self
    }

    /// Writes them, in the format that the ending of `path` names.
    pub fn write(&self, path: &Path, force: bool) -> Result<(), DataError> {
        let format = Format::to_write(path)?;
        match format.writer() {
            Writer::Table(write) => write_atomically(path, force, |file| write(self, file)),
            _ => Err(DataError::new(path, Problem::Unsupported(format!("{} is no table", format.name())))),
        }
    }
}
