//! Columns as Arrow's record batches, for Parquet and Arrow IPC files.

use crate::write::{TableColumn, TableFile};
use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use std::io::{Error, Result};
use std::sync::Arc;

/// Values written as one piece of a file, of all columns together: a reader of an Arrow file holds one piece at a time.
const BLOCK: usize = 1 << 21;

impl TableColumn<'_> {
    fn kind(&self) -> DataType {
        match self {
            TableColumn::Vectors(width, _) => DataType::FixedSizeList(item(), *width as i32),
            TableColumn::Floats(_) | TableColumn::Strided(..) => DataType::Float32,
            TableColumn::Integers(_) => DataType::Int64,
            TableColumn::Words(_) => DataType::Utf8,
        }
    }

    fn rows(&self) -> usize {
        match self {
            TableColumn::Vectors(width, values) => values.len() / (*width).max(1),
            TableColumn::Strided(width, values) => values.len().div_ceil((*width).max(1)),
            TableColumn::Floats(values) => values.len(),
            TableColumn::Integers(values) => values.len(),
            TableColumn::Words(words) => words.len(),
        }
    }

    /// Some of the rows.
    fn array(&self, rows: std::ops::Range<usize>) -> Result<ArrayRef> {
        Ok(match self {
            TableColumn::Vectors(width, values) => {
                let values = Float32Array::from(values[rows.start * width..rows.end * width].to_vec());
                let lists = FixedSizeListArray::try_new(item(), *width as i32, Arc::new(values), None);
                Arc::new(lists.map_err(Error::other)?)
            }
            TableColumn::Floats(values) => Arc::new(Float32Array::from(values[rows].to_vec())),
            TableColumn::Strided(width, values) => {
                Arc::new(Float32Array::from_iter_values(rows.map(|row| values[row * width])))
            }
            TableColumn::Integers(values) => Arc::new(Int64Array::from(values[rows].to_vec())),
            TableColumn::Words(words) => {
                let mut builder = StringBuilder::new();
                words[rows].iter().for_each(|word| builder.append_option(*word));
                Arc::new(builder.finish())
            }
        })
    }
}

fn item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Float32, false))
}

impl TableFile<'_> {
    pub(super) fn schema(&self) -> Arc<Schema> {
        let fields = self
            .columns
            .iter()
            .map(|(name, column)| Field::new(name, column.kind(), matches!(column, TableColumn::Words(_))));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Rows of one piece.
    pub(super) fn block_rows(&self) -> usize {
        let width: usize = self
            .columns
            .iter()
            .map(|(_, column)| if let TableColumn::Vectors(width, _) = column { *width } else { 1 })
            .sum();
        (BLOCK / width.max(1)).max(1)
    }

    pub(super) fn batches(&self) -> impl Iterator<Item = Result<RecordBatch>> {
        let (schema, step) = (self.schema(), self.block_rows());
        let rows = self.columns.first().map_or(0, |(_, column)| column.rows());
        (0..rows).step_by(step).map(move |start| {
            let range = start..(start + step).min(rows);
            let arrays = self.columns.iter().map(|(_, column)| column.array(range.clone()));
            RecordBatch::try_new(schema.clone(), arrays.collect::<Result<_>>()?).map_err(Error::other)
        })
    }
}
