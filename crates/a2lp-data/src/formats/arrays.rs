//! Files that hold arrays by name. Which of them are features and which labels is decided here, once for all such formats.

use super::elements::Header;
use super::{DataFile, FeatureShape};
use crate::column::Column;
use crate::error::Problem;
use crate::names::{Field, FieldNames};
use crate::rows::Rows;

/// The arrays of an open file.
pub(crate) trait Arrays {
    /// What they are called.
    fn names(&self) -> Vec<String>;
    /// Shape and element type of one.
    fn header(&mut self, name: &str) -> Result<Header, Problem>;
    /// Reads one as a matrix.
    fn read_matrix(&mut self, name: &str, rows: &mut Rows) -> Result<(), Problem>;
    /// Reads one as a list.
    fn read_column(&mut self, name: &str) -> Result<Column, Problem>;
    /// A format of one array without a name, which is whatever is asked for?
    fn is_nameless(&self) -> bool {
        false
    }
}

/// Arrays, and the names that the user gave.
struct ArrayFileReader<A> {
    arrays: A,
    names: FieldNames,
}

/// Such a file as a [`DataFile`].
pub(super) fn boxed(arrays: impl Arrays + 'static, names: FieldNames) -> Result<Box<dyn DataFile>, Problem> {
    Ok(Box::new(ArrayFileReader { arrays, names }))
}

impl<A: Arrays> ArrayFileReader<A> {
    /// The array that holds features: the one named so, or else the only matrix.
    fn feature_field(&mut self) -> Result<String, Problem> {
        let all = self.arrays.names();
        let wanted = self.names.features.as_deref().unwrap_or("features");
        if let Some(name) = all.iter().find(|name| *name == wanted) {
            return Ok(name.clone());
        }
        if self.names.features.is_none() || self.arrays.is_nameless() {
            if let [only] = &all[..] {
                return Ok(only.clone());
            }
            let others = [Field::Labels, Field::Ids, Field::ClassNames];
            let taken: Vec<usize> = others.iter().filter_map(|&other| self.names.find(other, &all)).collect();
            let mut found = Vec::new();
            for (at, name) in all.iter().enumerate().filter(|(at, _)| !taken.contains(at)) {
                if self.arrays.header(name).is_ok_and(|header| header.matrix_shape().is_ok()) {
                    found.push(at);
                }
            }
            // Beside a wide matrix, a single column or row is something about the items.
            if found.len() > 1 {
                found.retain(|&at| self.arrays.header(&all[at]).is_ok_and(|header| !header.is_vector()));
            }
            if let [only] = found[..] {
                return Ok(all[only].clone());
            }
        }
        Err(self.lacks(Field::Features))
    }

    fn lacks(&mut self, field: Field) -> Problem {
        let all = self.arrays.names();
        let described: Vec<String> = all
            .iter()
            .take(20)
            .map(|name| match self.arrays.header(name) {
                Ok(header) if !header.shape.is_empty() => {
                    let shape: Vec<String> = header.shape.iter().map(usize::to_string).collect();
                    format!("{name} ({})", shape.join(" × "))
                }
                _ => name.clone(),
            })
            .collect();
        let has = if described.is_empty() { "nothing".into() } else { described.join(", ") };
        Problem::LacksField { kind: "array", name: self.names.called(field), has, field }
    }
}

impl<A: Arrays> DataFile for ArrayFileReader<A> {
    fn shape(&mut self) -> Result<FeatureShape, Problem> {
        let field = self.feature_field()?;
        let header = self.arrays.header(&field)?;
        let (rows, columns) = header.matrix_shape()?;
        Ok(FeatureShape { rows, columns, element: header.element })
    }

    fn read_rows(&mut self, rows: &mut Rows) -> Result<(), Problem> {
        let field = self.feature_field()?;
        self.arrays.read_matrix(&field, rows)
    }

    fn column(&mut self, wanted: Field, alone: bool) -> Result<Option<Column>, Problem> {
        let all = self.arrays.names();
        if let Some(at) = self.names.find(wanted, &all) {
            return self.arrays.read_column(&all[at]).map(Some);
        }
        // A name that the user gave is meant.
        if !alone && (self.names.given(wanted).is_none() || self.arrays.is_nameless()) {
            return Ok(None);
        }
        if self.names.given(wanted).is_none() || self.arrays.is_nameless() {
            let vectors: Vec<&String> = all
                .iter()
                .filter(|name| self.arrays.header(name).is_ok_and(|header| header.is_vector()))
                .collect();
            let candidates = if vectors.is_empty() { all.iter().collect() } else { vectors };
            if let [only] = candidates[..] {
                return self.arrays.read_column(only).map(Some);
            }
        }
        Err(self.lacks(wanted))
    }
}
