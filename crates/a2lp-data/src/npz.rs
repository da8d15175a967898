//! NumPy's archives: a zip with one `.npy` file per field.

use crate::column::Column;
use crate::error::{DataError, Problem};
use crate::npy::Header;
use a2lp::NeighbourGraph;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use zip::ZipArchive;

/// Deflate cannot make more than this many bytes out of one.
const MAX_EXPANSION: u64 = 1032;

/// An open archive.
pub(crate) struct Npz {
    archive: ZipArchive<BufReader<File>>,
}

impl Npz {
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let archive = ZipArchive::new(BufReader::new(File::open(path)?)).map_err(damaged)?;
        Ok(Npz { archive })
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

    /// The field that holds features: `features`, or else the only matrix.
    pub(crate) fn feature_field(&mut self) -> Result<String, Problem> {
        self.only("features", |header| header.matrix_shape().is_ok())
    }

    fn only(&mut self, wanted: &str, fits: impl Fn(&Header) -> bool) -> Result<String, Problem> {
        if self.has(wanted) {
            return Ok(wanted.to_string());
        }
        let fields = self.fields();
        let mut found = Vec::new();
        for field in &fields {
            if self.array(field).is_ok_and(|(header, _)| fits(&header)) {
                found.push(field.clone());
            }
        }
        match (found.pop(), found.is_empty()) {
            (Some(field), true) => Ok(field),
            _ => {
                Err(Problem::Archive(format!("no field '{wanted}'; the archive has: {}", fields.join(", "))))
            }
        }
    }
}

/// Labels, ids or class names: the field of that name, or else the only vector.
pub(crate) fn read_column(path: &Path, field: &str) -> Result<Column, Problem> {
    let mut npz = Npz::open(path)?;
    let field = npz.only(field, |header| matches!(header.shape[..], [_]))?;
    let (header, mut reader) = npz.array(&field)?;
    header.read_column(&mut reader)
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
