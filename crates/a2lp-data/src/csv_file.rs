//! Comma-separated values. With a header line, columns called `label` or `id` are taken out and the rest are
//! features; without one, every column is a feature.

use crate::column::Column;
use crate::error::Problem;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Header names that mean labels.
pub(crate) const LABEL_NAMES: &[&str] = &["label", "labels", "class"];
/// Header names that mean ids.
pub(crate) const ID_NAMES: &[&str] = &["id", "ids", "path", "filename"];

/// A table whose shape is known and whose rows can be read again.
pub(crate) struct CsvTable {
    path: PathBuf,
    header: Option<Vec<String>>,
    pub(crate) rows: usize,
    width: usize,
}

impl CsvTable {
    /// Reads through the file once to learn its shape.
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let mut table = CsvTable { path: path.to_path_buf(), header: None, rows: 0, width: 0 };
        let mut record = csv::StringRecord::new();
        let mut reader = table.reader()?;
        if !reader.read_record(&mut record).map_err(problem)? {
            return Err(Problem::Empty);
        }
        table.width = record.len();
        let names: Vec<String> = record.iter().map(|field| field.trim().to_string()).collect();
        // A header either has a name for each of several columns, or a well-known name for a single one.
        let known = |name: &String| {
            [LABEL_NAMES, ID_NAMES, &["class_name"]]
                .iter()
                .any(|all| all.contains(&name.to_lowercase().as_str()))
        };
        let is_header =
            if names.len() == 1 { known(&names[0]) } else { names.iter().all(|n| n.parse::<f64>().is_err()) };
        if is_header {
            table.header = Some(names);
        } else {
            table.rows = 1;
        }
        while reader.read_record(&mut record).map_err(problem)? {
            table.rows += 1;
        }
        Ok(table)
    }

    fn reader(&self) -> Result<csv::Reader<File>, Problem> {
        Ok(csv::ReaderBuilder::new().has_headers(false).from_reader(File::open(&self.path)?))
    }

    fn find(&self, names: &[&str]) -> Option<usize> {
        let header = self.header.as_ref()?;
        names.iter().find_map(|wanted| header.iter().position(|name| name.eq_ignore_ascii_case(wanted)))
    }

    pub(crate) fn has_column(&self, names: &[&str]) -> bool {
        self.find(names).is_some()
    }

    fn feature_columns(&self) -> Vec<usize> {
        let taken = [self.find(LABEL_NAMES), self.find(ID_NAMES)];
        (0..self.width).filter(|&at| !taken.contains(&Some(at))).collect()
    }

    pub(crate) fn features(&self) -> usize {
        self.feature_columns().len()
    }

    /// Calls `take` with every record and its line.
    fn for_each(
        &self,
        mut take: impl FnMut(u64, &csv::StringRecord) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let mut record = csv::StringRecord::new();
        let mut reader = self.reader()?;
        let mut skip = self.header.is_some();
        while reader.read_record(&mut record).map_err(problem)? {
            if !std::mem::take(&mut skip) {
                take(record.position().map_or(0, csv::Position::line), &record)?;
            }
        }
        Ok(())
    }

    pub(crate) fn read_features(&self, out: &mut [f32]) -> Result<(), Problem> {
        let columns = self.feature_columns();
        let mut slots = out.iter_mut();
        self.for_each(|line, record| {
            for &at in &columns {
                let field = record.get(at).unwrap_or("").trim();
                let name = self
                    .header
                    .as_ref()
                    .map_or_else(|| format!("column {at}"), |h| format!("column '{}'", h[at]));
                let value: f32 = field.parse().map_err(|_| Problem::Line {
                    line,
                    message: format!("{name}: '{field}' is not a number"),
                })?;
                let slot =
                    slots.next().ok_or_else(|| Problem::Table("the file grew while it was read".into()))?;
                *slot = value;
            }
            Ok(())
        })?;
        match slots.len() {
            0 => Ok(()),
            _ => Err(Problem::Table("the file shrank while it was read".into())),
        }
    }

    /// The column with one of these names, or the only one.
    pub(crate) fn read_column(&self, names: &[&str]) -> Result<Column, Problem> {
        let at = match self.find(names) {
            Some(at) => at,
            None if self.width == 1 => 0,
            None => {
                return Err(Problem::Table(format!(
                    "{} columns and none is called '{}'; name it in the first line",
                    self.width, names[0]
                )));
            }
        };
        let mut values = Vec::with_capacity(self.rows);
        self.for_each(|_, record| {
            values.push(record.get(at).unwrap_or("").trim().to_string());
            Ok(())
        })?;
        if let Some(row) = values.iter().position(String::is_empty) {
            return Err(Problem::Label { row, message: "the value is missing".into() });
        }
        Ok(Column::Strings(values))
    }
}

fn problem(error: csv::Error) -> Problem {
    let line = error.position().map_or(0, csv::Position::line);
    match error.into_kind() {
        csv::ErrorKind::Io(error) => Problem::Io(error),
        csv::ErrorKind::Utf8 { .. } => Problem::Line { line, message: "not UTF-8 text".into() },
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => Problem::Line {
            line,
            message: format!("{len} fields where the lines before have {expected_len}"),
        },
        other => Problem::Table(format!("{other:?}")),
    }
}
