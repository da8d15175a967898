//! Features with their labels and ids, to be written into a file of any format.

use crate::column::Column;
use crate::error::DataError;
use crate::formats::{Format, Writer};
use crate::write::{ArrayFile, TableColumn, TableFile, write_atomically};
use a2lp::FeatureMatrix;
use std::io::Write;
use std::path::Path;

/// Features with their labels and ids, to be written into a file.
pub struct LabelledFeatures<'a> {
    /// The features.
    pub features: &'a FeatureMatrix,
    /// One label per row.
    pub labels: Option<&'a Column>,
    /// One id per row.
    pub ids: Option<&'a [String]>,
}

impl LabelledFeatures<'_> {
    /// Writes them, in the format that the ending of `path` names.
    pub fn write(&self, path: &Path, force: bool) -> Result<(), DataError> {
        match Format::to_write(path)?.writer() {
            Writer::Csv => write_atomically(path, force, |file| self.csv(file)),
            Writer::Table(_) => self.table().write(path, force),
            Writer::Arrays(_) | Writer::OneArray(_) | Writer::None => self.arrays().write(path, force),
        }
    }

    fn arrays(&self) -> ArrayFile<'_> {
        let (rows, columns) = (self.features.rows(), self.features.columns());
        let mut arrays = ArrayFile::new().matrix("features", rows, columns, self.features.values());
        match self.labels {
            Some(Column::Integers(values)) => arrays = arrays.integers("labels", values),
            Some(Column::Strings(values)) => arrays = arrays.strings("labels", values),
            None => {}
        }
        if let Some(ids) = self.ids {
            arrays = arrays.strings("ids", ids);
        }
        arrays
    }

    fn table(&self) -> TableFile<'_> {
        fn words(words: &[String]) -> Vec<Option<&str>> {
            words.iter().map(|word| Some(word.as_str())).collect()
        }
        let mut table = TableFile::new();
        if let Some(ids) = self.ids {
            table = table.column("id", TableColumn::Words(words(ids)));
        }
        match self.labels {
            Some(Column::Integers(values)) => table = table.column("label", TableColumn::Integers(values)),
            Some(Column::Strings(values)) => table = table.column("label", TableColumn::Words(words(values))),
            None => {}
        }
        let vectors = TableColumn::Vectors(self.features.columns(), self.features.values());
        table.column("features", vectors)
    }

    /// Numbers are written so that reading them gives the same bits.
    fn csv(&self, file: &mut dyn Write) -> std::io::Result<()> {
        let labels = self.labels.cloned().map(Column::into_strings);
        let mut csv = csv::Writer::from_writer(file);
        let header = self.ids.map(|_| "id".to_string()).into_iter();
        let header = header.chain(labels.as_ref().map(|_| "label".to_string()));
        csv.write_record(header.chain((0..self.features.columns()).map(|at| format!("f{at}"))))?;
        let mut record = csv::StringRecord::new();
        for row in 0..self.features.rows() {
            record.clear();
            self.ids.iter().for_each(|ids| record.push_field(&ids[row]));
            labels.iter().for_each(|labels| record.push_field(&labels[row]));
            self.features.row(row).iter().for_each(|value| record.push_field(&value.to_string()));
            csv.write_record(&record)?;
        }
        csv.flush()
    }
}
