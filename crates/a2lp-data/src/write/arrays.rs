//! Arrays by name, to be written into a file. Most formats write them from where they are; HDF5 and MATLAB need a copy.

use crate::error::{DataError, Problem};
use crate::formats::{Format, Writer};
use crate::write::write_atomically;
use std::io::{Result, Write};
use std::path::Path;

/// Arrays by name, to be written into a file.
#[derive(Default)]
pub struct ArrayFile<'a> {
    pub(crate) fields: Vec<(String, Array<'a>)>,
}

/// Writes the elements of an array, from where they are.
type WriteElements<'a> = Box<dyn Fn(&mut dyn Write) -> Result<()> + 'a>;

/// An array to be written.
pub(crate) enum Array<'a> {
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

    /// Writes all arrays, in the format that the ending of `path` names: into one file, or the first into an .npy file and
    /// every other one beside it. An ending of no format gives an .npz file.
    pub fn write(&self, path: &Path, force: bool) -> std::result::Result<(), DataError> {
        let format = if Format::of_ending(path).is_some() { Format::to_write(path)? } else { Format::Npz };
        match format.writer() {
            Writer::Arrays(write) => write_atomically(path, force, |file| write(self, file)),
            Writer::OneArray(write) => self.write_beside(path, force, *write),
            _ => {
                Err(DataError::new(path, Problem::Unsupported(format!("{} holds no arrays", format.name()))))
            }
        }
    }

    /// The first array into the file itself, `labels` into `x.labels.npy` and so on; the first comes last, so that
    /// where it is, the others are.
    fn write_beside(
        &self,
        path: &Path,
        force: bool,
        write: fn(&Array, &mut dyn Write) -> Result<()>,
    ) -> std::result::Result<(), DataError> {
        for (at, (name, array)) in self.fields.iter().enumerate().rev() {
            let path = if at == 0 { path.to_path_buf() } else { path.with_extension(format!("{name}.npy")) };
            write_atomically(&path, force, |file| write(array, file))?;
        }
        Ok(())
    }
}

impl Array<'_> {
    /// The bytes of all elements.
    pub(crate) fn elements(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.bytes());
        if let Array::Numbers { write, .. } = self {
            write(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// Characters of the longest word.
    pub(crate) fn width(words: &[&str]) -> usize {
        words.iter().map(|word| word.chars().count()).max().unwrap_or(0).max(1)
    }

    /// Bytes of the elements.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Array::Numbers { bytes, .. } => *bytes,
            Array::Words(words) => 4 * words.len() * Self::width(words),
        }
    }
}
