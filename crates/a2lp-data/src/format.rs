//! Which reader a file needs: by its first bytes, then by its name.

use crate::csv_file::STDIN;
use crate::error::{DataError, Problem};
use std::ffi::OsStr;
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

/// What there is to know of a format beside its reader.
struct Row {
    format: Format,
    /// As messages call it.
    name: &'static str,
    /// Of file names, the usual one first.
    endings: &'static [&'static str],
    /// Can features be written in it?
    writes: bool,
    /// The feature of this crate that its code is behind.
    feature: Option<&'static str>,
}

const TABLES: Option<&str> = Some("tables");

/// Every format, in the order in which people are told of them.
const FORMATS: [Row; 9] = [
    Row { format: Format::Npy, name: "NumPy", endings: &["npy"], writes: true, feature: None },
    Row { format: Format::Npz, name: "NumPy archive", endings: &["npz"], writes: true, feature: None },
    Row { format: Format::Csv, name: "CSV", endings: &["csv"], writes: true, feature: None },
    Row {
        format: Format::Safetensors,
        name: "safetensors",
        endings: &["safetensors"],
        writes: true,
        feature: None,
    },
    Row { format: Format::Mat, name: "MATLAB", endings: &["mat"], writes: true, feature: None },
    Row { format: Format::Parquet, name: "Parquet", endings: &["parquet"], writes: true, feature: TABLES },
    // Hugging Face's datasets call streams `.arrows`.
    Row {
        format: Format::Arrow,
        name: "Arrow",
        endings: &["arrow", "feather", "arrows"],
        writes: true,
        feature: TABLES,
    },
    Row { format: Format::Hdf5, name: "HDF5", endings: &["h5", "hdf5"], writes: true, feature: TABLES },
    Row { format: Format::Text, name: "text", endings: &["txt"], writes: false, feature: None },
];

impl Format {
    fn row(self) -> &'static Row {
        // Every format has a row; a test sees to it.
        FORMATS.iter().find(|row| row.format == self).unwrap_or(&FORMATS[0])
    }

    /// As messages call it.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The format that files with such an ending are written in.
    pub fn of_ending(path: &Path) -> Option<Format> {
        let ending = path.extension().and_then(OsStr::to_str)?.to_ascii_lowercase();
        FORMATS.iter().find(|row| row.endings.contains(&ending.as_str())).map(|row| row.format)
    }

    /// The endings of files that features can be read from (`.npy, .npz, …`), or written to.
    pub fn endings(written: bool) -> String {
        let rows = FORMATS.iter().filter(|row| row.writes || !written);
        let endings: Vec<String> =
            rows.flat_map(|row| row.endings).map(|ending| format!(".{ending}")).collect();
        endings.join(", ")
    }

    /// Refuses a format that this build was made without.
    pub(crate) fn check_built(self) -> Result<(), Problem> {
        match self.row().feature {
            Some(feature) if !cfg!(feature = "tables") => {
                Err(Problem::LacksFeature { what: self.name(), feature })
            }
            _ => Ok(()),
        }
    }

    /// The format of a file that features are to be written to, by its ending.
    pub fn to_write(path: &Path) -> Result<Format, DataError> {
        let fail = |problem: Problem| DataError::new(path, problem);
        let format = Format::of_ending(path).filter(|format| format.row().writes);
        let format = format.ok_or_else(|| {
            fail(Problem::Unsupported(format!("features are written as {}", Format::endings(true))))
        })?;
        format.check_built().map_err(fail)?;
        Ok(format)
    }

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
            _ => match Format::of_ending(path) {
                // A stream of Arrow has no signature.
                Some(format @ (Format::Csv | Format::Safetensors | Format::Text | Format::Arrow)) => {
                    Ok(format)
                }
                Some(Format::Npy) => {
                    Err(fail(Problem::Header("the file does not begin with \\x93NUMPY".into())))
                }
                Some(Format::Npz) => Err(fail(Problem::Archive("not a zip archive".into()))),
                Some(Format::Parquet) => {
                    Err(fail(Problem::damaged("Parquet", "it does not begin with PAR1")))
                }
                Some(Format::Hdf5) => {
                    Err(fail(Problem::damaged("HDF5", "it does not begin with its signature")))
                }
                Some(Format::Mat) => Err(fail(Problem::Unsupported(
                    "a MATLAB file of version 4, or of another program; save it with -v7".into(),
                ))),
                None => Err(fail(Problem::UnknownFormat)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_row_and_endings_of_its_own() {
        let mut endings: Vec<&str> = FORMATS.iter().flat_map(|row| row.endings).copied().collect();
        endings.sort_unstable();
        let count = endings.len();
        endings.dedup();
        assert_eq!(endings.len(), count);
        for row in &FORMATS {
            assert_eq!(row.format.name(), row.name);
            let path = format!("x.{}", row.endings[0].to_uppercase());
            assert_eq!(Format::of_ending(Path::new(&path)), Some(row.format));
        }
    }

    #[test]
    fn a_format_that_was_left_out_is_named_with_its_feature() {
        let answer = Format::to_write(Path::new("x.parquet"));
        match cfg!(feature = "tables") {
            true => assert_eq!(answer.unwrap(), Format::Parquet),
            false => assert!(answer.unwrap_err().to_string().contains("feature `tables`")),
        }
        assert!(Format::to_write(Path::new("x.doc")).unwrap_err().to_string().contains(".npz"));
        assert!(Format::to_write(Path::new("x.txt")).is_err());
    }
}
