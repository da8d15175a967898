//! Which reader a file needs: by its first bytes, then by its name.

use crate::csv_file::STDIN;
use crate::error::{DataError, Problem};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One NumPy array.
    Npy,
    /// A zip of NumPy arrays.
    Npz,
    /// Tensors behind a JSON header.
    Safetensors,
    /// Columns in compressed pages.
    Parquet,
    /// Columns as they stand in memory: Arrow IPC, Feather.
    Arrow,
    /// HDF5, which MATLAB's files are since version 7.3.
    Hdf5,
    /// MATLAB's files of version 5 to 7.
    Mat,
    /// Comma-separated values.
    Csv,
    /// One value per line.
    Text,
}

impl Format {
    /// Decides by content first, then by extension.
    pub fn detect(path: &Path) -> Result<Self, DataError> {
        let fail = |problem: Problem| DataError::new(path, problem);
        if path == Path::new(STDIN) {
            return Ok(Format::Csv);
        }
        let mut head = Vec::new();
        let file = File::open(path).map_err(|e| fail(e.into()))?;
        if file.metadata().is_ok_and(|about| about.is_dir()) {
            return Err(fail(Problem::Unsupported(
                "a folder; name the files in it, or a pattern: 'folder/*.parquet'".into(),
            )));
        }
        file.take(19).read_to_end(&mut head).map_err(|e| fail(e.into()))?;
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
        if matches!(extension.as_str(), "pt" | "pth" | "pkl" | "pickle") {
            return Err(fail(Problem::pickle(path)));
        }
        match &head[..] {
            [] => Err(fail(Problem::Empty)),
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Ok(Format::Npy),
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Ok(Format::Npz),
            b"MATLAB 5.0 MAT-file" => Ok(Format::Mat),
            b"MATLAB 7.3 MAT-file" | [0x89, b'H', b'D', b'F', b'\r', b'\n', 0x1a, b'\n', ..] => {
                Ok(Format::Hdf5)
            }
            [b'P', b'A', b'R', b'1', ..] => Ok(Format::Parquet),
            [b'P', b'A', b'R', b'E', ..] => {
                Err(fail(Problem::Unsupported("an encrypted Parquet file".into())))
            }
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Ok(Format::Arrow),
            [b'F', b'E', b'A', b'1', ..] => Err(fail(Problem::Unsupported(
                "Feather of version 1; write it anew with pyarrow.feather.write_feather".into(),
            ))),
            [0x80, 2..=5, ..] => Err(fail(Problem::pickle(path))),
            _ => match extension.as_str() {
                "csv" => Ok(Format::Csv),
                "safetensors" => Ok(Format::Safetensors),
                "txt" => Ok(Format::Text),
                "npy" => Err(fail(Problem::Header("the file does not begin with \\x93NUMPY".into()))),
                "npz" => Err(fail(Problem::Archive("not a zip archive".into()))),
                // A stream has no signature; Hugging Face's datasets are such files.
                "arrow" | "arrows" | "feather" => Ok(Format::Arrow),
                "parquet" => Err(fail(Problem::damaged("Parquet", "it does not begin with PAR1"))),
                "h5" | "hdf5" => Err(fail(Problem::damaged("HDF5", "it does not begin with its signature"))),
                "mat" => Err(fail(Problem::Unsupported(
                    "a MATLAB file of version 4, or of another program; save it with -v7".into(),
                ))),
                _ => Err(fail(Problem::UnknownFormat)),
            },
        }
    }
}
