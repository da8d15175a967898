//! HDF5, and with it MATLAB's files since version 7.3, whose matrices stand transposed.

use super::arrays::Arrays;
use super::elements::{ElementType, Header};
use crate::column::Column;
use crate::error::Problem;
use crate::guard::guarded;
use crate::rows::Rows;
use crate::write::{Array, ArrayFile, Output};
use hdf5_reader::error::{ByteOrder, Error};
use hdf5_reader::group::Group;
use hdf5_reader::reference::read_object_references;
use hdf5_reader::{
    Dataset, Datatype, FileStorage, H5Type, Hdf5File, OpenOptions, SliceInfo, SliceInfoElem,
    dtype_element_size,
};
use hdf5_writer::{DatasetBuilder, Hdf5Builder, Hdf5Writer, WriteOptions};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

const FORMAT: &str = "HDF5";
/// Elements read at a time.
const BLOCK: u64 = 1 << 19;
/// Where MATLAB keeps what cells refer to.
const REFERENCES: &str = "#refs#";
/// What a piece of a small file may claim to hold.
const PIECE_BYTES: u64 = 4 << 20;

/// An open file.
pub(crate) struct Hdf5 {
    file: Hdf5File,
    length: u64,
    /// Paths of all arrays.
    names: Vec<String>,
    is_matlab: bool,
    block: u64,
}

impl Hdf5 {
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut head = [0u8; 6];
        let is_matlab = file.read_exact(&mut head).is_ok() && &head == b"MATLAB";
        guarded(FORMAT, || {
            // Not mapped into memory: a file that shrinks while it is read would kill the process.
            let storage = FileStorage::from_file(file).map_err(damaged)?;
            let within = |times: u64, most: u64| (times * length).clamp(PIECE_BYTES, most) as usize;
            let options = OpenOptions::default()
                .with_max_chunk_bytes(within(16, 256 << 20))
                .with_max_read_bytes(within(16, 4 << 30))
                .with_max_object_header_bytes(within(1, 64 << 20))
                // Blocks are made of whole pieces; none is needed again.
                .with_chunk_cache_bytes(0);
            let file = Hdf5File::from_storage_with_options(Arc::new(storage), options).map_err(damaged)?;
            let mut names = Vec::new();
            list(&file.root_group().map_err(damaged)?, "", 0, &mut names)?;
            Ok(Hdf5 { file, length, names, is_matlab, block: BLOCK })
        })
    }

    /// An array and its header.
    fn open_array(&self, name: &str) -> Result<(Dataset, Header), Problem> {
        let dataset = self.file.dataset(name).map_err(damaged)?;
        let (element, big_endian) = element_of(dataset.dtype())
            .ok_or_else(|| Problem::ElementType(format!("{:?} of HDF5", dataset.dtype())))?;
        let shape = dataset.shape().iter().map(|&n| usize::try_from(n)).collect::<Result<Vec<_>, _>>();
        let mut shape = shape.map_err(|_| Problem::damaged(FORMAT, format!("'{name}' is too large")))?;
        if self.is_matlab {
            shape.reverse();
        }
        let header = Header::plain(element, shape)?.ordered(big_endian, self.is_matlab);
        Problem::check_expansion(u128::from(header.bytes), self.length)?;
        Ok((dataset, header))
    }

    /// Rows and columns read at a time: whole pieces, so that none is decompressed twice; whole rows, unless pieces are so tall
    /// that these would be too much.
    fn block_sides(&self, dataset: &Dataset) -> (u64, u64) {
        let pieces = dataset.chunks().unwrap_or_default();
        let side = |axis: usize| pieces.get(axis).map_or(1, |&side| u64::from(side).max(1));
        let width = dataset.shape().iter().skip(1).product::<u64>().max(1);
        let rows = (self.block / width / side(0)).max(1) * side(0);
        match dataset.shape().len() {
            2 if rows.saturating_mul(width) > self.block => {
                (rows, ((self.block / rows / side(1)).max(1) * side(1)).min(width))
            }
            _ => (rows, width),
        }
    }

    /// Hands on the numbers in the order of the file, a block at a time, with the first row and the columns of each.
    fn for_each_block(
        &self,
        dataset: &Dataset,
        header: &Header,
        mut take: impl FnMut(usize, Range<usize>, &[u8]) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let shape = dataset.shape();
        let Some(&height) = shape.first() else {
            let all = dataset.read_array().map_err(damaged)?;
            return take(0, 0..1, &bytes_of(all.iter(), header));
        };
        let width = shape[1..].iter().product::<u64>();
        let (rows, columns) = self.block_sides(dataset);
        for top in (0..height).step_by(rows as usize) {
            for left in (0..width).step_by(columns as usize) {
                let right = (left + columns).min(width);
                let mut selection = SliceInfo::all(shape.len());
                let slice = |start, end| SliceInfoElem::Slice { start, end, step: 1 };
                selection.selections[0] = slice(top, (top + rows).min(height));
                if columns < width {
                    selection.selections[1] = slice(left, right);
                }
                let block = dataset.read_slice(&selection).map_err(damaged)?;
                take(top as usize, left as usize..right as usize, &bytes_of(block.iter(), header))?;
            }
        }
        Ok(())
    }

    /// The words of a cell array: every cell refers to an array of characters in a group of their own.
    fn read_cells(&self, cells: &Dataset) -> Result<Vec<String>, Problem> {
        let cells = cells.read_raw_bytes().map_err(damaged)?;
        let cells = read_object_references(&cells, self.file.superblock().offset_size).map_err(damaged)?;
        let mut words = HashMap::new();
        for word in self.file.group(REFERENCES).and_then(|group| group.datasets()).map_err(damaged)? {
            if let Datatype::FixedPoint { size: 2, .. } = word.dtype() {
                let letters: Vec<u16> = word.read_array().map_err(damaged)?.iter().copied().collect();
                words.insert(word.address(), String::from_utf16_lossy(&letters));
            }
        }
        let word = |(row, cell)| {
            let message = "the cell holds no text".into();
            words.get(cell).cloned().ok_or(Problem::Row { row, message })
        };
        cells.iter().enumerate().map(word).collect()
    }

    /// Sees that at least half of what an array claims is in the file, before room is made for all of it.
    fn prove(&self, dataset: &Dataset, header: &Header) -> Result<(), Problem> {
        if header.bytes <= 2 * self.length + PIECE_BYTES {
            return Ok(());
        }
        let mut there = 0u64;
        if dataset.chunks().is_some() {
            for chunk in dataset.iter_chunks().map_err(damaged)? {
                there += chunk.map_err(damaged)?.bytes().len() as u64;
            }
        }
        if there < header.bytes / 2 {
            return Err(Problem::Expansion {
                claimed_bytes: u128::from(header.bytes),
                file_bytes: self.length,
            });
        }
        Ok(())
    }
}

/// Words, or cells of MATLAB's that refer to words.
fn is_text(kind: &Datatype) -> bool {
    matches!(kind, Datatype::String { .. } | Datatype::VarLen { .. } | Datatype::Reference { .. })
}

impl Arrays for Hdf5 {
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn header(&mut self, name: &str) -> Result<Header, Problem> {
        guarded(FORMAT, || {
            let dataset = self.file.dataset(name).map_err(damaged)?;
            if is_text(dataset.dtype()) {
                let shape = dataset.shape().iter().map(|&n| n as usize).collect();
                return Header::plain(ElementType::Bytes(1), shape);
            }
            Ok(self.open_array(name)?.1)
        })
    }

    fn read_matrix(&mut self, name: &str, rows: &mut Rows) -> Result<(), Problem> {
        guarded(FORMAT, || {
            let (dataset, header) = self.open_array(name)?;
            let (_, width) = header.matrix_shape()?;
            let mut values = Vec::new();
            if !self.is_matlab && self.block_sides(&dataset).1 as usize >= width {
                return self.for_each_block(&dataset, &header, |_, _, bytes| {
                    header.decode_numbers(bytes, &mut values);
                    rows.push(&values)
                });
            }
            self.prove(&dataset, &header)?;
            let out = rows.whole()?;
            self.for_each_block(&dataset, &header, |top, columns, bytes| {
                header.decode_numbers(bytes, &mut values);
                for (row, values) in (top..).zip(values.chunks(columns.len())) {
                    for (column, &value) in columns.clone().zip(values) {
                        out[if self.is_matlab { column * width + row } else { row * width + column }] = value;
                    }
                }
                Ok(())
            })
        })
    }

    fn read_column(&mut self, name: &str) -> Result<Column, Problem> {
        guarded(FORMAT, || {
            let dataset = self.file.dataset(name).map_err(damaged)?;
            if let Datatype::Reference { .. } = dataset.dtype() {
                return self.read_cells(&dataset).map(Column::Strings);
            }
            if is_text(dataset.dtype()) {
                return dataset.read_strings().map(Column::Strings).map_err(damaged);
            }
            let (dataset, header) = self.open_array(name)?;
            let mut all = Vec::new();
            self.for_each_block(&dataset, &header, |_, _, bytes| {
                all.extend_from_slice(bytes);
                Ok(())
            })?;
            header.read_column(&mut &all[..])
        })
    }
}

/// Paths of the arrays in a group and those within it.
fn list(group: &Group, prefix: &str, depth: usize, names: &mut Vec<String>) -> Result<(), Problem> {
    let (groups, datasets) = group.member_names().map_err(damaged)?;
    names.extend(datasets.iter().map(|name| format!("{prefix}{name}")));
    // MATLAB keeps what other variables refer to in groups that begin so.
    for name in groups.iter().filter(|name| depth < 3 && !name.starts_with('#')) {
        list(&group.group(name).map_err(damaged)?, &format!("{prefix}{name}/"), depth + 1, names)?;
    }
    Ok(())
}

/// Kind of number, and whether its first byte is the highest.
fn element_of(kind: &Datatype) -> Option<(ElementType, bool)> {
    let big = |order: &ByteOrder| *order == ByteOrder::BigEndian;
    match kind {
        Datatype::FloatingPoint { size: size @ (2 | 4 | 8), byte_order } => {
            Some((ElementType::Float(usize::from(*size)), big(byte_order)))
        }
        Datatype::FixedPoint { size: size @ (1 | 2 | 4 | 8), signed, byte_order } => {
            let size = usize::from(*size);
            let element = if *signed { ElementType::Signed(size) } else { ElementType::Unsigned(size) };
            Some((element, big(byte_order)))
        }
        Datatype::Enum { base, .. } => element_of(base),
        _ => None,
    }
}

/// The bytes of a number in the file.
#[derive(Clone, Copy)]
struct Raw([u8; 8]);

impl H5Type for Raw {
    fn hdf5_type() -> Datatype {
        u64::hdf5_type()
    }

    fn from_bytes(bytes: &[u8], _: &Datatype) -> Result<Self, Error> {
        let mut raw = [0u8; 8];
        let size = bytes.len().min(8);
        raw[..size].copy_from_slice(&bytes[..size]);
        Ok(Raw(raw))
    }

    fn element_size(kind: &Datatype) -> usize {
        dtype_element_size(kind).unwrap_or(8)
    }
}

fn bytes_of<'a>(raw: impl Iterator<Item = &'a Raw>, header: &Header) -> Vec<u8> {
    raw.flat_map(|raw| raw.0[..header.size()].iter().copied()).collect()
}

fn damaged(error: Error) -> Problem {
    Problem::damaged(FORMAT, error)
}

pub(super) fn write(arrays: &ArrayFile, file: &mut dyn Output) -> std::io::Result<()> {
    let mut builder = Hdf5Builder::new();
    for (name, array) in &arrays.fields {
        let dataset = match array {
            Array::Numbers { descr, shape, .. } => {
                let shape: Vec<u64> = shape.iter().map(|&side| side as u64).collect();
                let dataset = match *descr {
                    "<f4" => DatasetBuilder::typed::<f32>(name, shape),
                    "<i8" => DatasetBuilder::typed::<i64>(name, shape),
                    _ => DatasetBuilder::typed::<u8>(name, shape),
                };
                dataset.raw_data(array.elements()?)
            }
            Array::Words(words) => DatasetBuilder::vlen_string_data(name, vec![words.len() as u64], words)
                .map_err(std::io::Error::other)?,
        };
        builder = builder.dataset(dataset);
    }
    let plan = builder.into_plan().map_err(std::io::Error::other)?;
    Hdf5Writer::new(file, WriteOptions::default()).finish(plan).map(drop).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_any_size_make_the_same_matrix() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../reliability/corpus/");
        for (name, array) in [("chunked.h5", "train/features"), ("plain.h5", "features"), ("v73.mat", "fts")]
        {
            let read = |block| {
                let mut file = Hdf5::open(&Path::new(corpus).join(name)).unwrap();
                file.block = block;
                let mut values = Vec::new();
                let mut rows = Rows::new(&mut values, 60, 60);
                file.read_matrix(array, &mut rows).unwrap();
                rows.finish().unwrap();
                values
            };
            let whole = read(BLOCK);
            assert!(whole[0] != whole[1], "{name}");
            for block in [1, 4, 13, 30] {
                assert_eq!(read(block), whole, "{name}, {block} at a time");
            }
        }
    }
}
