//! Tables of typed columns, as Parquet and Arrow have them: one column of vectors, or a column per feature.

use super::elements::ElementType;
use super::{DataFile, FeatureShape};
use crate::column::Column;
use crate::error::{PIECE_BYTES, Problem};
use crate::names::{Field, FieldNames};
use crate::rows::Rows;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use std::ops::ControlFlow;

/// Columns that are read side by side.
const OPEN_COLUMNS: usize = 32;

/// An open file that gives its rows a batch at a time.
pub(crate) trait Batches {
    /// Its columns.
    fn schema(&self) -> SchemaRef;
    /// How many rows it claims to have.
    fn rows(&self) -> usize;
    /// Bytes of the file.
    fn file_bytes(&self) -> u64;
    /// Most bytes held at a time while it is read.
    fn reading_bytes(&self) -> u64;
    /// Reads these columns, batch after batch, until `take` breaks.
    fn for_each(
        &mut self,
        columns: &[usize],
        take: &mut dyn FnMut(&RecordBatch) -> Result<ControlFlow<()>, Problem>,
    ) -> Result<(), Problem>;
}

/// A table, and the column names that the user gave.
struct Table<B> {
    batches: B,
    names: FieldNames,
}

/// Where the features of a table are.
enum Features {
    /// In one column, a vector per row.
    Vectors(usize),
    /// One number per row in each of these columns.
    Numbers(Vec<usize>),
}

/// Such a file as a [`DataFile`].
pub(super) fn boxed(
    batches: impl Batches + 'static,
    names: FieldNames,
) -> Result<Box<dyn DataFile>, Problem> {
    Ok(Box::new(Table { batches, names }))
}

impl<B: Batches> Table<B> {
    fn column_names(&self) -> Vec<String> {
        self.batches.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn lacks(&self, field: Field) -> Problem {
        let schema = self.batches.schema();
        let has: Vec<String> = schema
            .fields()
            .iter()
            .take(20)
            .map(|field| format!("{} ({})", field.name(), field.data_type()))
            .collect();
        Problem::LacksField { kind: "column", name: self.names.called(field), has: has.join(", "), field }
    }

    /// The column named so, or the only one of vectors; else all columns of numbers but labels and ids.
    fn features(&self) -> Result<Features, Problem> {
        let schema = self.batches.schema();
        let names = self.column_names();
        let wanted = self.names.features.as_deref().unwrap_or("features");
        if let Some(at) = names.iter().position(|name| name == wanted) {
            return Ok(if vector_of(schema.field(at).data_type()).is_some() {
                Features::Vectors(at)
            } else {
                Features::Numbers(vec![at])
            });
        }
        let taken = [self.names.find(Field::Labels, &names), self.names.find(Field::Ids, &names)];
        let free = |at: &usize| !taken.contains(&Some(*at));
        let vectors: Vec<usize> = (0..names.len())
            .filter(free)
            .filter(|&at| {
                vector_of(schema.field(at).data_type()).is_some_and(|item| element_of(item).is_some())
            })
            .collect();
        let numbers: Vec<usize> = (0..names.len())
            .filter(free)
            .filter(|&at| {
                matches!(element_of(schema.field(at).data_type()), Some(element) if element != ElementType::Bool)
            })
            .collect();
        match (self.names.features.is_some(), &vectors[..]) {
            (false, &[only]) => Ok(Features::Vectors(only)),
            (false, []) if !numbers.is_empty() => Ok(Features::Numbers(numbers)),
            _ => Err(self.lacks(Field::Features)),
        }
    }

    /// Length of the vector in the first row.
    fn width(&mut self, at: usize) -> Result<usize, Problem> {
        if let DataType::FixedSizeList(_, width) = self.batches.schema().field(at).data_type() {
            return usize::try_from(*width)
                .map_err(|_| Problem::Table(format!("vectors of {width} numbers")));
        }
        let mut width = 0;
        self.batches.for_each(&[at], &mut |batch| {
            if batch.num_rows() == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            width = vectors(batch.column(0)).and_then(|all| all.ends.first().copied()).unwrap_or(0);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(width)
    }

    fn read_vectors(&mut self, at: usize, rows: &mut Rows) -> Result<(), Problem> {
        let width = self.width(at)?;
        if width == 0 {
            // Any number of such rows fits into a file.
            return Ok(());
        }
        let (mut values, mut first) = (Vec::new(), 0);
        self.batches.for_each(&[at], &mut |batch| {
            let column = batch.column(0);
            check_complete(column, first)?;
            let all = vectors(column).ok_or_else(|| Problem::ElementType(column.data_type().to_string()))?;
            let mut start = 0;
            for (row, &end) in (first..).zip(&all.ends) {
                if end - start != width {
                    let message = format!("{} features where the first row has {width}", end - start);
                    return Err(Problem::Row { row, message });
                }
                start = end;
            }
            if let Some(at) = first_gap(&all.numbers) {
                let message = format!("feature {} is missing (null)", at % width);
                return Err(Problem::Row { row: first + at / width, message });
            }
            values.clear();
            read_numbers(&all.numbers, &mut values)?;
            first += batch.num_rows();
            rows.push(&values)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    fn read_side_by_side(&mut self, columns: &[usize], rows: &mut Rows) -> Result<(), Problem> {
        let (mut values, mut first) = (Vec::new(), 0);
        self.batches.for_each(columns, &mut |batch| {
            values.resize(batch.num_rows() * columns.len(), 0.0);
            for (at, column) in batch.columns().iter().enumerate() {
                check_complete(column, first)?;
                spread(column, &mut values, at, columns.len())?;
            }
            first += batch.num_rows();
            rows.push(&values)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    fn read_in_groups(&mut self, columns: &[usize], rows: &mut Rows) -> Result<(), Problem> {
        let (width, all) = (columns.len(), rows.whole()?);
        for (group, wanted) in columns.chunks(OPEN_COLUMNS).enumerate() {
            let mut first = 0;
            self.batches.for_each(wanted, &mut |batch| {
                for (at, column) in batch.columns().iter().enumerate() {
                    check_complete(column, first)?;
                    spread(column, all, first * width + group * OPEN_COLUMNS + at, width)?;
                }
                first += batch.num_rows();
                Ok(ControlFlow::Continue(()))
            })?;
            if first * width != all.len() {
                return Err(Problem::Changed);
            }
        }
        Ok(())
    }
}

/// Type of the items of a column of vectors.
fn vector_of(kind: &DataType) -> Option<&DataType> {
    match kind {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item.data_type())
        }
        _ => None,
    }
}

/// What kind of number it is, if one.
fn element_of(kind: &DataType) -> Option<ElementType> {
    Some(match kind {
        DataType::Float16 => ElementType::Float(2),
        DataType::Float32 => ElementType::Float(4),
        DataType::Float64 => ElementType::Float(8),
        DataType::Int8 => ElementType::Signed(1),
        DataType::Int16 => ElementType::Signed(2),
        DataType::Int32 => ElementType::Signed(4),
        DataType::Int64 => ElementType::Signed(8),
        DataType::UInt8 => ElementType::Unsigned(1),
        DataType::UInt16 => ElementType::Unsigned(2),
        DataType::UInt32 => ElementType::Unsigned(4),
        DataType::UInt64 => ElementType::Unsigned(8),
        DataType::Boolean => ElementType::Bool,
        _ => return None,
    })
}

/// Numbers of all rows of a batch, and the end of each row among them.
struct Vectors {
    numbers: ArrayRef,
    ends: Vec<usize>,
}

fn vectors(column: &ArrayRef) -> Option<Vectors> {
    fn ends(offsets: impl Iterator<Item = usize>) -> (usize, Vec<usize>) {
        let mut offsets = offsets;
        let start = offsets.next().unwrap_or(0);
        (start, offsets.map(|end| end - start).collect())
    }
    let (numbers, (start, ends)) = match column.data_type() {
        DataType::List(_) => {
            let lists = column.as_list::<i32>();
            (lists.values(), ends(lists.value_offsets().iter().map(|&at| at as usize)))
        }
        DataType::LargeList(_) => {
            let lists = column.as_list::<i64>();
            (lists.values(), ends(lists.value_offsets().iter().map(|&at| at as usize)))
        }
        DataType::FixedSizeList(_, width) => {
            let lists = column.as_fixed_size_list();
            let width = usize::try_from(*width).ok()?;
            (lists.values(), ends((0..=lists.len()).map(|row| row * width)))
        }
        _ => return None,
    };
    let length = ends.last().copied().unwrap_or(0);
    Some(Vectors { numbers: numbers.slice(start, length), ends })
}

/// Puts the numbers of a column into every `width`-th place from `start` on.
fn spread(column: &dyn Array, out: &mut [f32], start: usize, width: usize) -> Result<(), Problem> {
    let mut numbers = Vec::with_capacity(column.len());
    read_numbers(column, &mut numbers)?;
    let places = out.iter_mut().skip(start).step_by(width);
    numbers.into_iter().zip(places).for_each(|(number, place)| *place = number);
    Ok(())
}

/// The first value that is missing.
fn first_gap(column: &dyn Array) -> Option<usize> {
    let nulls = column.logical_nulls().filter(|nulls| nulls.null_count() > 0)?;
    (0..nulls.len()).find(|&at| nulls.is_null(at))
}

/// Sees that no features are missing in rows from `first` on.
fn check_complete(column: &dyn Array, first: usize) -> Result<(), Problem> {
    match first_gap(column) {
        Some(at) => Err(Problem::Row { row: first + at, message: "the features are missing (null)".into() }),
        None => Ok(()),
    }
}

/// Appends the numbers of an array.
fn read_numbers(array: &dyn Array, out: &mut Vec<f32>) -> Result<(), Problem> {
    match array.data_type() {
        DataType::Float32 => out.extend_from_slice(array.as_primitive::<Float32Type>().values()),
        DataType::Float64 => {
            out.extend(array.as_primitive::<Float64Type>().values().iter().map(|&v| v as f32))
        }
        DataType::Float16 => {
            out.extend(array.as_primitive::<Float16Type>().values().iter().map(|v| v.to_f32()))
        }
        DataType::Boolean => {
            let flags = array.as_boolean();
            out.extend((0..flags.len()).map(|at| f32::from(u8::from(flags.value(at)))));
        }
        _ => match whole_numbers(array) {
            Some(numbers) => out.extend(numbers.into_iter().map(|v| v as f32)),
            None => return Err(Problem::ElementType(array.data_type().to_string())),
        },
    }
    Ok(())
}

fn whole_numbers(array: &dyn Array) -> Option<Vec<i64>> {
    macro_rules! numbers {
        ($($name:ident => $kind:ty),*) => {
            match array.data_type() {
                $(DataType::$name => array.as_primitive::<$kind>().values().iter().map(|&v| i64::try_from(v).unwrap_or(i64::MAX)).collect(),)*
                _ => return None,
            }
        };
    }
    Some(numbers!(
        Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
        UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type
    ))
}

impl<B: Batches> DataFile for Table<B> {
    fn shape(&mut self) -> Result<FeatureShape, Problem> {
        let (schema, rows) = (self.batches.schema(), self.batches.rows());
        let (columns, at) = match self.features()? {
            Features::Vectors(at) => (self.width(at)?, at),
            Features::Numbers(columns) => (columns.len(), columns[0]),
        };
        let kind = schema.field(at).data_type();
        let element = element_of(vector_of(kind).unwrap_or(kind))
            .ok_or_else(|| Problem::ElementType(kind.to_string()))?;
        Ok(FeatureShape { rows, columns, element })
    }

    fn read_rows(&mut self, rows: &mut Rows) -> Result<(), Problem> {
        match self.features()? {
            Features::Vectors(at) => self.read_vectors(at, rows),
            // Every column that is open holds a page of its own, so few are read at a time. That takes room for the whole matrix
            // from the start, which the file must be large enough to fill: numbers with fractions hardly compress.
            Features::Numbers(columns)
                if columns.len() > OPEN_COLUMNS
                    && 4 * rows.room() as u64 <= 2 * self.batches.file_bytes() + PIECE_BYTES =>
            {
                self.read_in_groups(&columns, rows)
            }
            Features::Numbers(columns) => self.read_side_by_side(&columns, rows),
        }
    }

    fn reading_bytes(&self) -> u64 {
        match self.features() {
            Ok(Features::Numbers(columns)) => columns.len().min(OPEN_COLUMNS) as u64 * (1 << 20),
            _ => self.batches.reading_bytes(),
        }
    }

    fn column(&mut self, wanted: Field, alone: bool) -> Result<Option<Column>, Problem> {
        let names = self.column_names();
        let at = match self.names.find(wanted, &names) {
            Some(at) => at,
            // A name that the user gave is meant.
            None if !alone && self.names.given(wanted).is_none() => return Ok(None),
            None if names.len() == 1 && self.names.given(wanted).is_none() => 0,
            None => return Err(self.lacks(wanted)),
        };
        let mut builder = ColumnBuilder { column: None, bytes: 0, file_bytes: self.batches.file_bytes() };
        self.batches.for_each(&[at], &mut |batch| {
            builder.add(batch.column(0))?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Some(builder.column.unwrap_or(Column::Integers(Vec::new()))))
    }
}

/// A column that grows batch by batch, to a size that its file can hold.
struct ColumnBuilder {
    column: Option<Column>,
    bytes: u128,
    file_bytes: u64,
}

impl ColumnBuilder {
    fn add(&mut self, array: &ArrayRef) -> Result<(), Problem> {
        let before = self.column.as_ref().map_or(0, Column::len);
        if let Some(at) = first_gap(array) {
            return Err(Problem::Row { row: before + at, message: "the value is missing (null)".into() });
        }
        let more = self.read(array, before)?;
        self.bytes += match &more {
            Column::Integers(values) => 8 * values.len() as u128,
            Column::Strings(values) => values.iter().map(|word| 24 + word.len() as u128).sum(),
        };
        Problem::check_expansion(self.bytes, self.file_bytes)?;
        match (&mut self.column, more) {
            (Some(Column::Integers(all)), Column::Integers(more)) => all.extend(more),
            (Some(Column::Strings(all)), Column::Strings(more)) => all.extend(more),
            (column, more) => *column = Some(more),
        }
        Ok(())
    }

    fn read(&self, array: &ArrayRef, before: usize) -> Result<Column, Problem> {
        let words = |words: &mut dyn Iterator<Item = Option<&str>>| {
            Column::Strings(words.map(|word| word.unwrap_or_default().to_string()).collect())
        };
        Ok(match array.data_type() {
            DataType::Utf8 => words(&mut array.as_string::<i32>().iter()),
            DataType::LargeUtf8 => words(&mut array.as_string::<i64>().iter()),
            DataType::Utf8View => words(&mut array.as_string_view().iter()),
            DataType::Boolean => {
                let flags = array.as_boolean();
                Column::Integers((0..flags.len()).map(|at| i64::from(flags.value(at))).collect())
            }
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                let mut numbers = Vec::new();
                read_numbers(array, &mut numbers)?;
                let whole = |(at, value): (usize, f32)| {
                    if value.fract() == 0.0 && value.abs() < 1.6e7 {
                        return Ok(value as i64);
                    }
                    Err(Problem::Row { row: before + at, message: format!("{value} is no class") })
                };
                Column::Integers(numbers.into_iter().enumerate().map(whole).collect::<Result<_, _>>()?)
            }
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let keys = dictionary.normalized_keys();
                let entries = self.read(dictionary.values(), 0)?;
                let bytes: u128 = match &entries {
                    Column::Strings(entries) => keys.iter().map(|&key| 24 + entries[key].len() as u128).sum(),
                    Column::Integers(_) => 8 * keys.len() as u128,
                };
                Problem::check_expansion(self.bytes + bytes, self.file_bytes)?;
                match entries {
                    Column::Strings(entries) => {
                        Column::Strings(keys.iter().map(|&key| entries[key].clone()).collect())
                    }
                    Column::Integers(entries) => {
                        Column::Integers(keys.iter().map(|&key| entries[key]).collect())
                    }
                }
            }
            other => {
                Column::Integers(whole_numbers(array).ok_or_else(|| Problem::ElementType(other.to_string()))?)
            }
        })
    }
}
