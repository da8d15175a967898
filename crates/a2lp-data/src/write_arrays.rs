//! Arrays into files: .npz, .npy, .safetensors, .h5, .mat. The first three are written from where the arrays are; the others
//! need a copy.

use crate::error::DataError;
use crate::format::Format;
use crate::write::{Output, write_atomically};
#[cfg(feature = "tables")]
use hdf5_writer::{DatasetBuilder, Hdf5Builder, Hdf5Writer, WriteOptions};
use std::io::{Error, Result, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;

/// Arrays on their way into a file.
#[derive(Default)]
pub struct ArrayFile<'a> {
    fields: Vec<(String, Array<'a>)>,
}

/// Writes the elements of an array, from where they are.
type WriteElements<'a> = Box<dyn Fn(&mut dyn Write) -> Result<()> + 'a>;

/// An array as it will stand in a file.
enum Array<'a> {
    Numbers {
        /// NumPy's name of the element type.
        descr: &'static str,
        shape: Vec<usize>,
        bytes: usize,
        write: WriteElements<'a>,
    },
    Words(Vec<&'a str>),
}

impl<'a> ArrayFile<'a> {
    /// No arrays yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Numbers of N bytes each, as `elements` gives them.
    fn numbers<const N: usize, I: Iterator<Item = [u8; N]>>(
        mut self,
        name: &str,
        descr: &'static str,
        shape: &[usize],
        elements: impl Fn() -> I + 'a,
    ) -> Self {
        let write = move |file: &mut dyn Write| {
            let mut block = Vec::with_capacity(1 << 16);
            for element in elements() {
                block.extend_from_slice(&element);
                if block.len() >= 1 << 16 {
                    file.write_all(&block)?;
                    block.clear();
                }
            }
            file.write_all(&block)
        };
        let (shape, bytes) = (shape.to_vec(), N * shape.iter().product::<usize>());
        self.fields.push((name.into(), Array::Numbers { descr, shape, bytes, write: Box::new(write) }));
        self
    }

    /// Adds a matrix of f32.
    pub fn matrix(self, name: &str, rows: usize, columns: usize, values: &'a [f32]) -> Self {
        self.numbers(name, "<f4", &[rows, columns], || values.iter().map(|v| v.to_le_bytes()))
    }

    /// Adds a vector of f32.
    pub fn vector(self, name: &str, values: &'a [f32]) -> Self {
        self.numbers(name, "<f4", &[values.len()], || values.iter().map(|v| v.to_le_bytes()))
    }

    /// Adds a vector of whole numbers.
    pub fn integers(self, name: &str, values: &'a [i64]) -> Self {
        self.numbers(name, "<i8", &[values.len()], || values.iter().map(|v| v.to_le_bytes()))
    }

    /// Adds a stack of grey images.
    pub fn images(self, name: &str, count: usize, side: usize, pixels: &'a [u8]) -> Self {
        self.numbers(name, "|u1", &[count, side, side], || pixels.iter().map(|&pixel| [pixel]))
    }

    /// Adds the fields of a sparse matrix as SciPy's `save_npz` names them.
    pub fn sparse(self, graph: &'a a2lp::NeighbourGraph) -> Self {
        let nodes = graph.nodes() as i64;
        let entries = [graph.columns.len()];
        self.numbers("indices", "<i8", &entries, || graph.columns.iter().map(|&c| i64::from(c).to_le_bytes()))
            .numbers("indptr", "<i8", &[graph.starts.len()], || {
                graph.starts.iter().map(|&s| (s as i64).to_le_bytes())
            })
            .numbers("format", "|S3", &[], || std::iter::once(*b"csr"))
            .numbers("shape", "<i8", &[2], move || [nodes; 2].into_iter().map(i64::to_le_bytes))
            .numbers("data", "<f4", &entries, || graph.weights.iter().map(|w| w.to_le_bytes()))
    }

    /// Adds a vector of strings.
    pub fn strings<S: AsRef<str>>(mut self, name: &str, values: &'a [S]) -> Self {
        self.fields.push((name.into(), Array::Words(values.iter().map(AsRef::as_ref).collect())));
        self
    }

    /// Writes all arrays: into one file (.npz, .safetensors with the words in its header, .h5, .mat), or the features into an
    /// .npy file and every other array beside it.
    pub fn write(&self, path: &Path, force: bool) -> std::result::Result<(), DataError> {
        let format = Format::of_ending(path).unwrap_or(Format::Npz);
        format.check_built().map_err(|problem| DataError::new(path, problem))?;
        match format {
            Format::Npy => self.write_npy(path, force),
            Format::Safetensors => write_atomically(path, force, |file| self.safetensors(file)),
            #[cfg(feature = "tables")]
            Format::Hdf5 => write_atomically(path, force, |file| self.hdf5(file)),
            Format::Mat => write_atomically(path, force, |file| self.mat(file)),
            _ => write_atomically(path, force, |file| self.npz(file)),
        }
    }

    /// As NumPy's `savez` does: stored, not compressed, and without the time of day.
    fn npz(&self, file: &mut dyn Output) -> Result<()> {
        let mut archive = zip::ZipWriter::new(file);
        let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        for (name, array) in &self.fields {
            let is_large = array.bytes() + (1 << 16) > u32::MAX as usize;
            archive.start_file(format!("{name}.npy"), options.large_file(is_large))?;
            array.npy(&mut archive)?;
        }
        archive.finish()?;
        Ok(())
    }

    /// The first array into the file itself, `labels` into `x.labels.npy` and so on; the first comes last, so that
    /// where it is, the others are.
    fn write_npy(&self, path: &Path, force: bool) -> std::result::Result<(), DataError> {
        for (at, (name, array)) in self.fields.iter().enumerate().rev() {
            let path = if at == 0 { path.to_path_buf() } else { path.with_extension(format!("{name}.npy")) };
            write_atomically(&path, force, |file| array.npy(file))?;
        }
        Ok(())
    }

    #[cfg(feature = "tables")]
    fn hdf5(&self, file: &mut dyn Output) -> Result<()> {
        let mut builder = Hdf5Builder::new();
        for (name, array) in &self.fields {
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
                Array::Words(words) => {
                    DatasetBuilder::vlen_string_data(name, vec![words.len() as u64], words)
                        .map_err(Error::other)?
                }
            };
            builder = builder.dataset(dataset);
        }
        let plan = builder.into_plan().map_err(Error::other)?;
        Hdf5Writer::new(file, WriteOptions::default()).finish(plan).map(drop).map_err(Error::other)
    }

    /// MATLAB's version 5, not compressed: matrices column after column, words as a cell array.
    fn mat(&self, file: &mut dyn Output) -> Result<()> {
        let mut text = b"MATLAB 5.0 MAT-file, written by a2lp".to_vec();
        text.resize(124, b' ');
        text.extend([0x00, 0x01, b'I', b'M']);
        file.write_all(&text)?;
        for (name, array) in &self.fields {
            let bytes = match array {
                Array::Numbers { descr, shape, bytes, .. } => {
                    let (class, kind) = match *descr {
                        "<f4" => (7, 7),
                        "<i8" => (14, 12),
                        _ => (9, 2),
                    };
                    let (rows, columns) = match shape[..] {
                        [rows, columns] => (rows, columns),
                        _ => (shape.iter().product(), 1),
                    };
                    let size = bytes / (rows * columns).max(1);
                    let elements = array.elements()?;
                    let mut turned = Vec::with_capacity(elements.len());
                    for column in 0..columns {
                        for row in 0..rows {
                            turned.extend_from_slice(&elements[(row * columns + column) * size..][..size]);
                        }
                    }
                    let mut body = mat_head(class, rows, columns, name);
                    body.extend(mat_element(kind, &turned)?);
                    body
                }
                Array::Words(words) => {
                    let mut body = mat_head(1, words.len(), 1, name);
                    for word in words {
                        let units: Vec<u16> = word.encode_utf16().collect();
                        let mut cell = mat_head(4, 1, units.len(), "");
                        cell.extend(mat_element(
                            4,
                            &units.iter().flat_map(|u| u.to_le_bytes()).collect::<Vec<_>>(),
                        )?);
                        body.extend(mat_element(14, &cell)?);
                    }
                    body
                }
            };
            file.write_all(&mat_element(14, &bytes)?)?;
        }
        Ok(())
    }

    fn safetensors(&self, file: &mut dyn Output) -> Result<()> {
        let mut header = serde_json::Map::new();
        let (mut words, mut end) = (serde_json::Map::new(), 0);
        for (name, array) in &self.fields {
            match array {
                Array::Numbers { descr, shape, bytes, .. } => {
                    let dtype = match *descr {
                        "<f4" => "F32",
                        "<i8" => "I64",
                        _ => "U8",
                    };
                    let offsets = [end, end + bytes];
                    end += bytes;
                    let info = serde_json::json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets });
                    header.insert(name.clone(), info);
                }
                Array::Words(list) => {
                    words.insert(name.clone(), serde_json::json!(list).to_string().into());
                }
            }
        }
        if !words.is_empty() {
            header.insert("__metadata__".into(), words.into());
        }
        let mut text = serde_json::Value::from(header).to_string();
        // The elements start at a multiple of 8 bytes.
        text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
        file.write_all(&(text.len() as u64).to_le_bytes())?;
        file.write_all(text.as_bytes())?;
        self.fields.iter().try_for_each(|(_, array)| match array {
            Array::Numbers { write, .. } => write(file),
            Array::Words(_) => Ok(()),
        })
    }
}

/// An element of a MATLAB file, filled up to a multiple of eight bytes.
fn mat_element(kind: u32, bytes: &[u8]) -> Result<Vec<u8>> {
    let length = u32::try_from(bytes.len())
        .map_err(|_| Error::other("MATLAB's files hold at most 4 GiB an array; write .h5 instead"))?;
    let mut element = Vec::with_capacity(bytes.len() + 16);
    element.extend(kind.to_le_bytes());
    element.extend(length.to_le_bytes());
    element.extend_from_slice(bytes);
    element.resize(element.len().next_multiple_of(8), 0);
    Ok(element)
}

/// Class, shape and name of a MATLAB array.
fn mat_head(class: u32, rows: usize, columns: usize, name: &str) -> Vec<u8> {
    let words = |words: [u32; 2]| words.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
    [(6, words([class, 0])), (5, words([rows as u32, columns as u32])), (1, name.as_bytes().to_vec())]
        .iter()
        .flat_map(|(kind, bytes)| mat_element(*kind, bytes).unwrap_or_default())
        .collect()
}

impl Array<'_> {
    /// The bytes of all elements.
    fn elements(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.bytes());
        if let Array::Numbers { write, .. } = self {
            write(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// Characters of the longest word.
    fn width(words: &[&str]) -> usize {
        words.iter().map(|word| word.chars().count()).max().unwrap_or(0).max(1)
    }

    /// Bytes of the elements.
    fn bytes(&self) -> usize {
        match self {
            Array::Numbers { bytes, .. } => *bytes,
            Array::Words(words) => 4 * words.len() * Self::width(words),
        }
    }

    /// An `.npy` file.
    fn npy(&self, mut file: &mut dyn Write) -> Result<()> {
        let (descr, shape) = match self {
            Array::Numbers { descr, shape, .. } => ((*descr).to_string(), shape.clone()),
            Array::Words(words) => (format!("<U{}", Self::width(words)), vec![words.len()]),
        };
        let shape = match shape[..] {
            [length] => format!("({length},)"),
            _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
        };
        let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        // The elements start at a multiple of 64 bytes.
        let padded = (10 + header.len() + 1).next_multiple_of(64);
        header.extend(std::iter::repeat_n(' ', padded - 11 - header.len()));
        header.push('\n');
        file.write_all(b"\x93NUMPY\x01\x00")?;
        file.write_all(&(header.len() as u16).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        match self {
            Array::Numbers { write, .. } => write(&mut file),
            Array::Words(words) => {
                let width = Self::width(words);
                for word in words {
                    let characters = word.chars().chain(std::iter::repeat('\0')).take(width);
                    let bytes: Vec<u8> = characters.flat_map(|c| (c as u32).to_le_bytes()).collect();
                    file.write_all(&bytes)?;
                }
                Ok(())
            }
        }
    }
}
