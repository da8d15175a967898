//! One value per line.

use crate::error::Problem;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The lines of a file; blank ones are allowed at the end only.
pub(crate) fn read_lines(path: &Path) -> Result<Vec<String>, Problem> {
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
