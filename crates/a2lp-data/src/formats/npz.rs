//! NumPy's archives: a zip with one `.npy` file per field.

use super::arrays::Arrays;
use super::elements::Header;
use super::npy;
use crate::column::Column;
use crate::error::{DataError, MAX_EXPANSION, Problem};
use crate::rows::Rows;
use crate::write::{ArrayFile, Output};
use a2lp::NeighbourGraph;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use zip::ZipArchive;
use zip::write::SimpleFileOptions;

/// An open archive.
pub(crate) struct Npz {
    archive: ZipArchive<BufReader<File>>,
    length: u64,
}

impl Npz {
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let archive = ZipArchive::new(BufReader::new(file)).map_err(damaged)?;
        // Nothing is ever unpacked, but an honest archive names no such places.
        let stray = |name: &str| name.starts_with('/') || name.split('/').any(|part| part == "..");
        if let Some(name) = archive.file_names().filter_map(Result::ok).find(|name| stray(name)) {
            return Err(Problem::Archive(format!("it names a file elsewhere, '{name}'; not read")));
        }
        Ok(Npz { archive, length })
    }

    /// Names of the arrays inside.
    pub(crate) fn fields(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .archive
            .file_names()
            .filter_map(|name| Some(name.ok()?.strip_suffix(".npy")?.to_string()))
            .collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.archive.index_for_name(&format!("{field}.npy")).is_some()
    }

    /// Opens one array: its header, and a reader at its first element.
    pub(crate) fn array(&mut self, field: &str) -> Result<(Header, impl Read + '_), Problem> {
        let mut entry = self.archive.by_name(&format!("{field}.npy")).map_err(damaged)?;
        let (size, compressed) = (entry.size(), entry.compressed_size());
        if size > compressed.saturating_mul(MAX_EXPANSION).saturating_add(64) {
            return Err(Problem::Archive(format!("field '{field}' claims {size} bytes out of {compressed}")));
        }
        let header = Header::read(&mut entry)?;
        if header.bytes > size {
            return Err(Problem::Truncated { promised: u128::from(header.bytes), found: size });
        }
        Ok((header, entry))
    }

    /// Is an array surely as long as it claims? Compressed ones prove it by being read once.
    fn is_proved(&mut self, field: &str) -> Result<bool, Problem> {
        let entry = self.archive.by_name(&format!("{field}.npy")).map_err(damaged)?;
        Ok(entry.compression() == zip::CompressionMethod::Stored && entry.compressed_size() <= self.length)
    }
}

impl Arrays for Npz {
    fn names(&self) -> Vec<String> {
        self.fields()
    }

    fn header(&mut self, name: &str) -> Result<Header, Problem> {
        Ok(self.array(name)?.0)
    }

    fn read_matrix(&mut self, name: &str, rows: &mut Rows) -> Result<(), Problem> {
        if self.is_proved(name)? {
            rows.reserve_all()?;
        } else if self.array(name)?.0.fortran_order {
            let (header, mut reader) = self.array(name)?;
            header.prove(&mut reader)?;
        }
        let (header, mut reader) = self.array(name)?;
        header.read_matrix(&mut reader, rows)
    }

    fn read_column(&mut self, name: &str) -> Result<Column, Problem> {
        let (header, mut reader) = self.array(name)?;
        header.read_column(&mut reader)
    }
}

/// As NumPy's `savez` does: stored, not compressed, and without the time of day.
pub(super) fn write(arrays: &ArrayFile, file: &mut dyn Output) -> std::io::Result<()> {
    let mut archive = zip::ZipWriter::new(file);
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, array) in &arrays.fields {
        let is_large = array.bytes() + (1 << 16) > u32::MAX as usize;
        archive.start_file(format!("{name}.npy"), options.large_file(is_large))?;
        npy::write(array, &mut archive)?;
    }
    archive.finish()?;
    Ok(())
}

/// A square sparse matrix as SciPy's `save_npz` writes it.
pub fn read_graph(path: &Path) -> Result<NeighbourGraph, DataError> {
    read_csr(path).map_err(|problem| DataError::new(path, problem))
}

fn read_csr(path: &Path) -> Result<NeighbourGraph, Problem> {
    let mut npz = Npz::open(path)?;
    if !["indices", "indptr", "data", "shape"].iter().all(|field| npz.has(field)) {
        let fields = npz.fields().join(", ");
        return Err(Problem::Archive(format!(
            "not a sparse matrix of scipy.sparse.save_npz; it has: {fields}"
        )));
    }
    if npz.has("format") {
        // A single word, as a scalar.
        let (header, mut reader) = npz.array("format")?;
        let format = header.read_scalar(&mut reader)?;
        if format != "csr" {
            return Err(Problem::Archive(format!(
                "sparse format '{format}'; save it as csr: matrix.tocsr()"
            )));
        }
    }
    let mut whole = |field: &str| -> Result<Vec<i64>, Problem> {
        let (header, mut reader) = npz.array(field)?;
        match header.read_column(&mut reader)? {
            Column::Integers(values) => Ok(values),
            Column::Strings(_) => Err(Problem::ElementType(format!("strings in '{field}'"))),
        }
    };
    let (shape, starts, columns) = (whole("shape")?, whole("indptr")?, whole("indices")?);
    let wrong = |message: String| Problem::Archive(message);
    if shape.len() != 2 || shape[0] != shape[1] || starts.len() as i64 != shape[0].saturating_add(1) {
        return Err(wrong(format!(
            "a matrix of shape {shape:?} with {} row starts is no graph",
            starts.len()
        )));
    }
    let starts = starts
        .iter()
        .map(|&s| usize::try_from(s).map_err(|_| wrong(format!("row start {s} is negative"))))
        .collect::<Result<Vec<_>, _>>()?;
    let columns = columns
        .iter()
        .map(|&c| u32::try_from(c).map_err(|_| wrong(format!("column {c} cannot be"))))
        .collect::<Result<Vec<_>, _>>()?;
    let (header, mut reader) = npz.array("data")?;
    let weights = header.read_vector(&mut reader)?;
    Ok(NeighbourGraph { starts, columns, weights })
}

fn damaged(error: zip::result::ZipError) -> Problem {
    match error {
        zip::result::ZipError::Io(error) => Problem::Io(error),
        other => Problem::Archive(format!("damaged archive: {other}")),
    }
}
