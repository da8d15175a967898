//! NumPy's archives: a zip with one `.npy` file per field.

use crate::column::Column;
use crate::error::Problem;
use crate::npy::Header;
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

fn damaged(error: zip::result::ZipError) -> Problem {
    match error {
        zip::result::ZipError::Io(error) => Problem::Io(error),
        other => Problem::Archive(format!("damaged archive: {other}")),
    }
}
