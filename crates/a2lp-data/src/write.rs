//! Writing files: whole or not at all, and never over another unless asked.

use crate::error::{DataError, Problem};
use std::borrow::Cow;
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

/// Arrays on their way into a file.
#[derive(Default)]
pub struct ArrayFile {
    fields: Vec<(String, Array)>,
}

/// An array as it will stand in a file.
enum Array {
    /// NumPy's name of the element type, the shape, the elements.
    Numbers(&'static str, Vec<usize>, Vec<u8>),
    Words(Vec<String>),
}

impl ArrayFile {
    /// No arrays yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn numbers(
        mut self,
        name: &str,
        descr: &'static str,
        shape: &[usize],
        bytes: impl Iterator<Item = u8>,
    ) -> Self {
        self.fields.push((name.into(), Array::Numbers(descr, shape.to_vec(), bytes.collect())));
        self
    }

    /// Adds a matrix of f32.
    pub fn matrix(self, name: &str, rows: usize, columns: usize, values: &[f32]) -> Self {
        self.numbers(name, "<f4", &[rows, columns], values.iter().flat_map(|v| v.to_le_bytes()))
    }

    /// Adds a vector of f32.
    pub fn vector(self, name: &str, values: &[f32]) -> Self {
        self.numbers(name, "<f4", &[values.len()], values.iter().flat_map(|v| v.to_le_bytes()))
    }

    /// Adds a vector of whole numbers.
    pub fn integers(self, name: &str, values: &[i64]) -> Self {
        self.numbers(name, "<i8", &[values.len()], values.iter().flat_map(|v| v.to_le_bytes()))
    }

    /// Adds a stack of grey images.
    pub fn images(self, name: &str, count: usize, side: usize, pixels: &[u8]) -> Self {
        self.numbers(name, "|u1", &[count, side, side], pixels.iter().copied())
    }

    /// Adds the fields of a sparse matrix as SciPy's `save_npz` names them.
    pub fn sparse(self, graph: &a2lp::NeighbourGraph) -> Self {
        let nodes = graph.nodes() as i64;
        let starts = graph.starts.iter().flat_map(|&s| (s as i64).to_le_bytes());
        let columns = graph.columns.iter().flat_map(|&c| i64::from(c).to_le_bytes());
        let weights = graph.weights.iter().flat_map(|w| w.to_le_bytes());
        let entries = [graph.columns.len()];
        self.numbers("indices", "<i8", &entries, columns)
            .numbers("indptr", "<i8", &[graph.starts.len()], starts)
            .numbers("format", "|S3", &[], b"csr".iter().copied())
            .integers("shape", &[nodes, nodes])
            .numbers("data", "<f4", &entries, weights)
    }

    /// Adds a vector of strings.
    pub fn strings<S: AsRef<str>>(mut self, name: &str, values: &[S]) -> Self {
        let words = values.iter().map(|value| value.as_ref().to_string()).collect();
        self.fields.push((name.into(), Array::Words(words)));
        self
    }

    /// Writes all arrays: into one archive (.npz), into one file with the words in its header (.safetensors), or the
    /// features into an .npy file and every other array beside it.
    pub fn write(&self, path: &Path, force: bool) -> Result<(), DataError> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("npy") => self.write_npy(path, force),
            Some("safetensors") => self.write_safetensors(path, force),
            _ => self.write_npz(path, force),
        }
    }

    /// As NumPy's `savez` does: stored, not compressed, and without the time of day.
    fn write_npz(&self, path: &Path, force: bool) -> Result<(), DataError> {
        let mut buffer = std::io::Cursor::new(Vec::new());
        let mut archive = zip::ZipWriter::new(&mut buffer);
        let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        let mut add = || -> zip::result::ZipResult<()> {
            for (name, array) in &self.fields {
                let bytes = array.npy();
                archive
                    .start_file(format!("{name}.npy"), options.large_file(bytes.len() > u32::MAX as usize))?;
                archive.write_all(&bytes)?;
            }
            Ok(())
        };
        add()
            .and_then(|()| archive.finish().map(drop))
            .map_err(|e| DataError::new(path, Problem::Archive(e.to_string())))?;
        write_atomically(path, force, |file| file.write_all(buffer.get_ref()))
    }

    /// The first array into the file itself, `labels` into `x.labels.npy` and so on; the first comes last, so that
    /// where it is, the others are.
    fn write_npy(&self, path: &Path, force: bool) -> Result<(), DataError> {
        for (at, (name, array)) in self.fields.iter().enumerate().rev() {
            let path = if at == 0 { path.to_path_buf() } else { path.with_extension(format!("{name}.npy")) };
            write_atomically(&path, force, |file| file.write_all(&array.npy()))?;
        }
        Ok(())
    }

    fn write_safetensors(&self, path: &Path, force: bool) -> Result<(), DataError> {
        let mut header = serde_json::Map::new();
        let (mut words, mut end) = (serde_json::Map::new(), 0);
        for (name, array) in &self.fields {
            match array {
                Array::Numbers(descr, shape, bytes) => {
                    let dtype = match *descr {
                        "<f4" => "F32",
                        "<i8" => "I64",
                        _ => "U8",
                    };
                    let offsets = [end, end + bytes.len()];
                    end += bytes.len();
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
        write_atomically(path, force, |file| {
            file.write_all(&(text.len() as u64).to_le_bytes())?;
            file.write_all(text.as_bytes())?;
            self.fields.iter().try_for_each(|(_, array)| match array {
                Array::Numbers(_, _, bytes) => file.write_all(bytes),
                Array::Words(_) => Ok(()),
            })
        })
    }
}

impl Array {
    /// The bytes of an `.npy` file.
    fn npy(&self) -> Vec<u8> {
        let (descr, shape, bytes) = match self {
            Array::Numbers(descr, shape, bytes) => {
                ((*descr).to_string(), shape.clone(), Cow::Borrowed(bytes))
            }
            Array::Words(words) => {
                let width = words.iter().map(|word| word.chars().count()).max().unwrap_or(0).max(1);
                let padded = |word: &String| -> Vec<u8> {
                    let characters = word.chars().chain(std::iter::repeat('\0')).take(width);
                    characters.flat_map(|c| (c as u32).to_le_bytes()).collect()
                };
                (format!("<U{width}"), vec![words.len()], Cow::Owned(words.iter().flat_map(padded).collect()))
            }
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
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(bytes.as_slice());
        file
    }
}
