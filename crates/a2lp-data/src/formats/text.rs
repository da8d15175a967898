//! One value per line.

use super::{DataFile, FeatureShape};
use crate::column::Column;
use crate::error::Problem;
use crate::names::Field;
use crate::rows::Rows;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// A file of lines: labels, ids or class names, whatever it is given for.
pub(crate) struct Lines(PathBuf);

impl Lines {
    pub(crate) fn open(path: &Path) -> Self {
        Lines(path.to_path_buf())
    }
}

impl DataFile for Lines {
    fn shape(&mut self) -> Result<FeatureShape, Problem> {
        Err(Problem::UnknownFormat)
    }

    fn read_rows(&mut self, _: &mut Rows) -> Result<(), Problem> {
        Err(Problem::UnknownFormat)
    }

    fn column(&mut self, _: Field, alone: bool) -> Result<Option<Column>, Problem> {
        if alone { read_lines(&self.0).map(|lines| Some(Column::Strings(lines))) } else { Ok(None) }
    }
}

/// The lines of a file; blank ones are allowed at the end only.
fn read_lines(path: &Path) -> Result<Vec<String>, Problem> {
    let mut lines = Vec::new();
    let mut blank = None;
    for (number, line) in (1u64..).zip(BufReader::new(File::open(path)?).lines()) {
        let line = line.map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData => {
                Problem::Line { line: number, message: "not UTF-8 text".into() }
            }
            _ => Problem::Io(error),
        })?;
        let value = line.trim_end();
        if value.is_empty() {
            blank = blank.or(Some(number));
        } else if let Some(line) = blank {
            return Err(Problem::Line { line, message: "blank line between values".into() });
        } else {
            lines.push(value.to_string());
        }
    }
    Ok(lines)
}
