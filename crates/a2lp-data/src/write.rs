//! Writing files: whole or not at all, and never over another unless asked.

use crate::error::{DataError, Problem};
use std::io::{BufWriter, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;

/// Writes through a temporary file in the same folder that takes the final name only when it is complete.
pub fn write_atomically(
    path: &Path,
    force: bool,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), DataError> {
    let fail = |problem: Problem| DataError::new(path, problem);
    if !force && path.exists() {
        return Err(fail(Problem::Exists));
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".a2lp-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What a newly created file would have, less the umask.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder).map_err(|e| fail(e.into()))?;
    let mut writer = BufWriter::new(file);
    write(&mut writer).and_then(|()| writer.flush()).map_err(|e| fail(e.into()))?;
    let file = writer.into_inner().map_err(|e| fail(e.into_error().into()))?;
    file.as_file().sync_all().map_err(|e| fail(e.into()))?;
    if force {
        file.persist(path).map_err(|e| fail(e.error.into()))?;
    } else {
        file.persist_noclobber(path).map_err(|e| match e.error.kind() {
            std::io::ErrorKind::AlreadyExists => fail(Problem::Exists),
            _ => fail(e.error.into()),
        })?;
    }
    Ok(())
}

/// Arrays on their way into an `.npz` file.
#[derive(Default)]
pub struct ArrayFile {
    fields: Vec<(String, Vec<u8>)>,
}

impl ArrayFile {
    /// No arrays yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a matrix of f32.
    pub fn matrix(mut self, name: &str, rows: usize, columns: usize, values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes());
        self.fields.push((name.into(), npy("<f4", &format!("({rows}, {columns})"), bytes)));
        self
    }

    /// Adds a stack of grey images.
    pub fn images(mut self, name: &str, count: usize, side: usize, pixels: &[u8]) -> Self {
        let shape = format!("({count}, {side}, {side})");
        self.fields.push((name.into(), npy("|u1", &shape, pixels.iter().copied())));
        self
    }

    /// Adds the fields of a sparse matrix as SciPy's `save_npz` names them.
    pub fn sparse(self, graph: &a2lp::NeighbourGraph) -> Self {
        let vector = |length: usize| format!("({length},)");
        let nodes = graph.nodes() as i64;
        let shape = [nodes, nodes].into_iter().flat_map(i64::to_le_bytes);
        let starts = graph.starts.iter().flat_map(|&s| (s as i64).to_le_bytes());
        let columns = graph.columns.iter().flat_map(|&c| i64::from(c).to_le_bytes());
        let weights = graph.weights.iter().flat_map(|w| w.to_le_bytes());
        let entries = vector(graph.columns.len());
        let mut file = self;
        file.fields.push(("indices".into(), npy("<i8", &entries, columns)));
        file.fields.push(("indptr".into(), npy("<i8", &vector(graph.starts.len()), starts)));
        file.fields.push(("format".into(), npy("|S3", "()", *b"csr")));
        file.fields.push(("shape".into(), npy("<i8", "(2,)", shape)));
        file.fields.push(("data".into(), npy("<f4", &entries, weights)));
        file
    }

    /// Adds a vector of strings.
    pub fn strings<S: AsRef<str>>(mut self, name: &str, values: &[S]) -> Self {
        let width = values.iter().map(|v| v.as_ref().chars().count()).max().unwrap_or(0).max(1);
        let bytes = values.iter().flat_map(|value| {
            let padding = std::iter::repeat('\0');
            value.as_ref().chars().chain(padding).take(width).flat_map(|c| (c as u32).to_le_bytes())
        });
        self.fields.push((name.into(), npy(&format!("<U{width}"), &format!("({},)", values.len()), bytes)));
        self
    }

    /// Writes the archive as NumPy's `savez` does: stored, not compressed, and without the time of day.
    pub fn write(&self, path: &Path, force: bool) -> Result<(), DataError> {
        let mut buffer = std::io::Cursor::new(Vec::new());
        let mut archive = zip::ZipWriter::new(&mut buffer);
        let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        let mut add = || -> zip::result::ZipResult<()> {
            for (name, bytes) in &self.fields {
                archive
                    .start_file(format!("{name}.npy"), options.large_file(bytes.len() > u32::MAX as usize))?;
                archive.write_all(bytes)?;
            }
            Ok(())
        };
        add()
            .and_then(|()| archive.finish().map(drop))
            .map_err(|e| DataError::new(path, Problem::Archive(e.to_string())))?;
        write_atomically(path, force, |file| file.write_all(buffer.get_ref()))
    }
}

fn npy(descr: &str, shape: &str, data: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // The elements start at a multiple of 64 bytes.
    let padded = (10 + header.len() + 1).next_multiple_of(64);
    header.extend(std::iter::repeat_n(' ', padded - 11 - header.len()));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}
