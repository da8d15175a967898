//! One value per row: labels, ids, class names.

use crate::csv_file::{CsvTable, ID_NAMES, LABEL_NAMES};
use crate::error::{DataError, Problem};
use crate::format::Format;
use crate::npy::Header;
use crate::safetensors::SafetensorsFile;
use crate::{npz, text};
use std::path::Path;

/// Values of one column, as they stand in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Words.
    Strings(Vec<String>),
}

impl Column {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Column::Integers(values) => values.len(),
            Column::Strings(values) => values.len(),
        }
    }

    /// No rows?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values as words.
    pub fn into_strings(self) -> Vec<String> {
        match self {
            Column::Integers(values) => values.iter().map(i64::to_string).collect(),
            Column::Strings(values) => values,
        }
    }

    /// The values as class names: where a list is given, numbers are positions in it.
    pub fn into_class_names(self, names: Option<&[String]>) -> Result<Vec<String>, Problem> {
        let Some(names) = names else {
            return Ok(self.into_strings());
        };
        let name = |(row, text): (usize, String)| {
            find_name(&text, names).ok_or_else(|| Problem::Label {
                row,
                message: format!(
                    "label '{text}' is neither one of the {} class names nor a position among them",
                    names.len()
                ),
            })
        };
        self.into_strings().into_iter().enumerate().map(name).collect()
    }

    /// The same, but what is not in the list stays as it is: truth may hold classes that the source lacks.
    pub fn into_known_names(self, names: Option<&[String]>) -> Vec<String> {
        let names = names.unwrap_or_default();
        self.into_strings().into_iter().map(|text| find_name(&text, names).unwrap_or(text)).collect()
    }
}

/// The class called `text`, or at position `text`.
fn find_name(text: &str, names: &[String]) -> Option<String> {
    let by_name = names.iter().find(|name| *name == text);
    by_name.or_else(|| names.get(text.parse::<usize>().ok()?)).cloned()
}

/// Labels, from any format: a vector, the field or column `labels`, or one per line.
pub fn read_labels(path: &Path) -> Result<Column, DataError> {
    read(path, "labels", LABEL_NAMES)
}

/// Ids, likewise from the field `ids` or the column `id`.
pub fn read_ids(path: &Path) -> Result<Vec<String>, DataError> {
    Ok(read(path, "ids", ID_NAMES)?.into_strings())
}

/// The class list, likewise from the field `class_names`.
pub fn read_class_names(path: &Path) -> Result<Vec<String>, DataError> {
    Ok(read(path, "class_names", &["class", "name", "class_name"])?.into_strings())
}

fn read(path: &Path, field: &'static str, columns: &[&str]) -> Result<Column, DataError> {
    let fail = |problem: Problem| DataError::new(path, problem);
    match Format::detect(path)? {
        Format::Npy => {
            let (header, mut reader) = Header::open(path).map_err(fail)?;
            header.read_column(&mut reader).map_err(fail)
        }
        Format::Npz => npz::read_column(path, field).map_err(fail),
        Format::Safetensors => {
            let column = SafetensorsFile::open(path).and_then(|mut file| file.column(field)).map_err(fail)?;
            column.ok_or_else(|| fail(Problem::Archive(format!("no '{field}', neither tensor nor metadata"))))
        }
        Format::Csv => CsvTable::open(path).and_then(|table| table.read_column(columns)).map_err(fail),
        Format::Text => text::read_lines(path).map(Column::Strings).map_err(fail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_positions_in_a_class_list_and_words_are_themselves() {
        let names = ["bike".to_string(), "mug".to_string()];
        let numbers = Column::Integers(vec![1, 0]).into_class_names(Some(&names)).unwrap();
        assert_eq!(numbers, ["mug", "bike"]);
        let words = Column::Strings(vec!["mug".into(), "0".into()]).into_class_names(Some(&names)).unwrap();
        assert_eq!(words, ["mug", "bike"]);
        let error = Column::Integers(vec![0, 2]).into_class_names(Some(&names)).unwrap_err();
        assert!(error.to_string().starts_with("row 1: label '2' is neither"));
        assert_eq!(Column::Integers(vec![7]).into_class_names(None).unwrap(), ["7"]);
    }
}
