//! Comma-separated values. With a header line, columns called `label` or `id` are taken out and the rest are
//! features; without one, every column is a feature.

use super::elements::ElementType;
use super::{DataFile, FeatureShape};
use crate::column::Column;
use crate::error::Problem;
use crate::names::{Field, FieldNames};
use crate::rows::Rows;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// The name that means standard input.
pub(crate) const STDIN: &str = "-";

/// Most columns of a table.
const MAX_COLUMNS: usize = 1 << 17;

/// Reads on as long as no line has more commas than that: every field takes memory, even an empty one.
struct Narrow {
    file: File,
    commas: usize,
}

impl Read for Narrow {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.file.read(buffer)?;
        for &byte in &buffer[..length] {
            match byte {
                b',' => self.commas += 1,
                b'\n' => self.commas = 0,
                _ => {}
            }
            if self.commas >= MAX_COLUMNS {
                let message = format!("a line of more than {MAX_COLUMNS} columns");
                return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message));
            }
        }
        Ok(length)
    }
}

/// A table whose shape is known and whose rows can be read again.
pub(crate) struct CsvTable {
    file: File,
    names: FieldNames,
    header: Option<Vec<String>>,
    rows: usize,
    width: usize,
}

impl CsvTable {
    /// Reads through the file once to learn its shape. Standard input is kept in a temporary file, to be read again.
    pub(crate) fn open(path: &Path, names: FieldNames) -> Result<Self, Problem> {
        let file = if path == Path::new(STDIN) {
            let mut kept = tempfile::tempfile()?;
            std::io::copy(&mut std::io::stdin().lock(), &mut kept)?;
            kept
        } else {
            File::open(path)?
        };
        let mut table = CsvTable { file, names, header: None, rows: 0, width: 0 };
        let mut record = csv::StringRecord::new();
        let mut reader = table.reader()?;
        if !reader.read_record(&mut record).map_err(problem)? {
            return Err(Problem::Empty);
        }
        table.width = record.len();
        let names: Vec<String> = record.iter().map(|field| field.trim().to_string()).collect();
        // A header either has a name for each of several columns, or a well-known name for a single one.
        let known = |name: &String| {
            [Field::Labels, Field::Ids, Field::ClassNames]
                .iter()
                .any(|&wanted| table.names.find(wanted, std::slice::from_ref(name)).is_some())
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

    fn reader(&self) -> Result<csv::Reader<Narrow>, Problem> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        Ok(csv::ReaderBuilder::new().has_headers(false).from_reader(Narrow { file, commas: 0 }))
    }

    fn find(&self, wanted: Field) -> Option<usize> {
        self.names.find(wanted, self.header.as_ref()?)
    }

    fn feature_columns(&self) -> Vec<usize> {
        let taken = [self.find(Field::Labels), self.find(Field::Ids)];
        (0..self.width).filter(|&at| !taken.contains(&Some(at))).collect()
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

    fn read_column(&self, at: usize) -> Result<Column, Problem> {
        let mut values = Vec::new();
        self.for_each(|_, record| {
            values.push(record.get(at).unwrap_or("").trim().to_string());
            Ok(())
        })?;
        if let Some(row) = values.iter().position(String::is_empty) {
            return Err(Problem::Row { row, message: "the value is missing".into() });
        }
        Ok(Column::Strings(values))
    }
}

impl DataFile for CsvTable {
    fn shape(&mut self) -> Result<FeatureShape, Problem> {
        if self.names.features.is_some() {
            return Err(Problem::Table(
                "every column of a CSV file that is neither label nor id is a feature; no single column can be named for them".into(),
            ));
        }
        let columns = self.feature_columns().len();
        Ok(FeatureShape { rows: self.rows, columns, element: ElementType::Text })
    }

    fn read_rows(&mut self, rows: &mut Rows) -> Result<(), Problem> {
        let columns = self.feature_columns();
        let mut values = Vec::with_capacity(columns.len());
        self.for_each(|line, record| {
            values.clear();
            for &at in &columns {
                let field = record.get(at).unwrap_or("").trim();
                let value: f32 = field.parse().map_err(|_| {
                    let header = self.header.as_ref();
                    let name = header.map_or_else(|| at.to_string(), |header| format!("'{}'", header[at]));
                    Problem::Line { line, message: format!("column {name}: '{field}' is not a number") }
                })?;
                values.push(value);
            }
            rows.push(&values)
        })
    }

    fn column(&mut self, wanted: Field, alone: bool) -> Result<Option<Column>, Problem> {
        match self.find(wanted) {
            Some(at) => self.read_column(at).map(Some),
            // A name that the user gave is meant.
            None if !alone && self.names.given(wanted).is_none() => Ok(None),
            None if self.width == 1 && self.names.given(wanted).is_none() => self.read_column(0).map(Some),
            None => Err(Problem::Table(format!(
                "{} columns and none is called '{}'; name it in the first line",
                self.width,
                self.names.called(wanted)
            ))),
        }
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
