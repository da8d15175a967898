//! One value per row: labels, ids, class names.

use crate::error::{DataError, Problem};
use crate::feature_file::expand;
use crate::formats;
use crate::names::{Field, FieldNames};
use std::path::Path;

/// Values of one column of a file.
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

    /// Appends one column to another. The result holds numbers only if both columns do.
    pub(crate) fn below(above: Column, below: Column) -> Column {
        match (above, below) {
            (Column::Integers(mut all), Column::Integers(more)) => {
                all.extend(more);
                Column::Integers(all)
            }
            (above, below) => {
                let mut all = above.into_strings();
                all.extend(below.into_strings());
                Column::Strings(all)
            }
        }
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
            find_name(&text, names).ok_or_else(|| Problem::Row {
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

/// Labels, from any format: a vector, the array or column `labels`, or one per line.
pub fn read_labels(path: &Path, names: &FieldNames) -> Result<Column, DataError> {
    read(path, Field::Labels, names)
}

/// Ids, likewise from the array or column `ids`.
pub fn read_ids(path: &Path, names: &FieldNames) -> Result<Vec<String>, DataError> {
    Ok(read(path, Field::Ids, names)?.into_strings())
}

/// The class list, likewise from the array or column `class_names`.
pub fn read_class_names(path: &Path) -> Result<Vec<String>, DataError> {
    Ok(read(path, Field::ClassNames, &FieldNames::default())?.into_strings())
}

/// The columns of all files that `path` stands for, one below the other.
fn read(path: &Path, wanted: Field, names: &FieldNames) -> Result<Column, DataError> {
    let one = |path: &Path| {
        let column = formats::open(path, names).and_then(|mut file| file.column(wanted, true));
        let none = || Problem::Table(format!("no '{}'", names.called(wanted)));
        column.and_then(|column| column.ok_or_else(none)).map_err(|problem| DataError::new(path, problem))
    };
    let columns = expand(path)?.iter().map(|path| one(path)).collect::<Result<Vec<_>, _>>()?;
    Ok(columns.into_iter().reduce(Column::below).unwrap_or(Column::Strings(Vec::new())))
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
