//! Which reader a file needs: by its first bytes, then by its name.

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
    /// Comma-separated values.
    Csv,
    /// One value per line.
    Text,
}

impl Format {
    /// Decides by content first, then by extension.
    pub fn detect(path: &Path) -> Result<Self, DataError> {
        let fail = |problem: Problem| DataError::new(path, problem);
        let mut head = [0u8; 6];
        let mut file = File::open(path).map_err(|e| fail(e.into()))?;
        let mut length = 0;
        while length < head.len() {
            match file.read(&mut head[length..]).map_err(|e| fail(e.into()))? {
                0 => break,
                n => length += n,
            }
        }
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
        if matches!(extension.as_str(), "pt" | "pth" | "pkl" | "pickle") {
            return Err(fail(Problem::Pickle));
        }
        match &head[..length] {
            [] => Err(fail(Problem::Empty)),
            b"\x93NUMPY" => Ok(Format::Npy),
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Ok(Format::Npz),
            _ => match extension.as_str() {
                "csv" => Ok(Format::Csv),
                "safetensors" => Ok(Format::Safetensors),
                "txt" => Ok(Format::Text),
                "npy" => Err(fail(Problem::Header("the file does not begin with \\x93NUMPY".into()))),
                "npz" => Err(fail(Problem::Archive("not a zip archive".into()))),
                _ => Err(fail(Problem::UnknownFormat)),
            },
        }
    }
}
