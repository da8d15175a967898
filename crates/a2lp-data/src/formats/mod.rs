//! File formats, one file each, and the table that says how each one is recognised, opened and written.
//!
//! To add a format: a file here with its reader and, if it has one, its writer; a variant of [`Format`]; and its row in
//! [`FORMATS`]. Formats that hold arrays by name share `arrays`, formats that hold columns share `table`.

mod arrays;
#[cfg(feature = "tables")]
mod arrow_blocks;
#[cfg(feature = "tables")]
mod arrow_file;
#[cfg(feature = "tables")]
mod batches;
mod csv_file;
mod elements;
#[cfg(feature = "tables")]
mod hdf5_file;
mod mat_file;
mod npy;
mod npz;
#[cfg(feature = "tables")]
mod parquet_file;
mod safetensors;
#[cfg(feature = "tables")]
mod table;
mod text;
#[cfg(feature = "tables")]
mod thrift;

pub(crate) use csv_file::STDIN;
pub use elements::ElementType;
pub(crate) use elements::Header;
pub(crate) use npz::Npz;
pub use npz::read_graph;

use crate::column::Column;
use crate::error::{DataError, Problem};
use crate::names::{Field, FieldNames};
use crate::rows::Rows;
use crate::write::{Array, ArrayFile, Output, TableFile};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// One NumPy array.
    Npy,
    /// A zip of NumPy arrays.
    Npz,
    /// Tensors behind a JSON header.
    Safetensors,
    /// Columns in compressed pages.
    Parquet,
    /// Columns in their memory layout: Arrow IPC, Feather.
    Arrow,
    /// HDF5, which MATLAB has used since version 7.3.
    Hdf5,
    /// MATLAB's versions 5 to 7.
    Mat,
    /// Comma-separated values.
    Csv,
    /// One value per line.
    Text,
}

/// Everything about a format.
struct Row {
    format: Format,
    /// Its name in messages.
    name: &'static str,
    /// Of file names, the usual one first.
    endings: &'static [&'static str],
    recognised: Recognised,
    /// `None` if this build lacks the format's feature.
    open: Option<Open>,
    write: Writer,
    /// The feature of this crate that it needs.
    feature: Option<&'static str>,
}

/// How a file is known to be of a format.
enum Recognised {
    /// By its ending alone.
    ByEnding,
    /// By its first bytes, or by its ending if it begins with anything else.
    EitherWay(&'static [&'static [u8]]),
    /// By its first bytes; the message says what is wrong with a file that has only the ending.
    ByContent(&'static [&'static [u8]], &'static str),
}

type Open = fn(&Path, FieldNames) -> Result<Box<dyn DataFile>, Problem>;

/// How a format is written.
pub(crate) enum Writer {
    /// It is only read, or this build lacks its feature.
    None,
    Csv,
    /// Arrays by name in one file.
    Arrays(fn(&ArrayFile, &mut dyn Output) -> std::io::Result<()>),
    /// One array; further ones go into files beside it.
    OneArray(fn(&Array, &mut dyn Write) -> std::io::Result<()>),
    /// Columns.
    #[cfg_attr(not(feature = "tables"), expect(dead_code))]
    Table(fn(&TableFile, &mut dyn Output) -> std::io::Result<()>),
}

const TABLES: Option<&str> = Some("tables");

/// `Some` reader if the feature `tables` is there.
#[cfg(feature = "tables")]
macro_rules! with_tables {
    ($open:expr) => {
        Some($open)
    };
    (write $writer:expr) => {
        $writer
    };
}

#[cfg(not(feature = "tables"))]
macro_rules! with_tables {
    ($open:expr) => {
        None
    };
    (write $writer:expr) => {
        Writer::None
    };
}

/// Every format, in the order in which messages list them.
const FORMATS: [Row; 9] = [
    Row {
        format: Format::Npy,
        name: "NumPy",
        endings: &["npy"],
        recognised: Recognised::ByContent(&[b"\x93NUMPY"], "it does not begin with \\x93NUMPY"),
        open: Some(|path, names| arrays::boxed(npy::NpyFile::open(path)?, names)),
        write: Writer::OneArray(npy::write),
        feature: None,
    },
    Row {
        format: Format::Npz,
        name: "NumPy archive",
        endings: &["npz"],
        recognised: Recognised::ByContent(&[b"PK\x03\x04", b"PK\x05\x06"], "it is not a zip archive"),
        open: Some(|path, names| arrays::boxed(Npz::open(path)?, names)),
        write: Writer::Arrays(npz::write),
        feature: None,
    },
    Row {
        format: Format::Csv,
        name: "CSV",
        endings: &["csv"],
        recognised: Recognised::ByEnding,
        open: Some(|path, names| Ok(Box::new(csv_file::CsvTable::open(path, names)?))),
        write: Writer::Csv,
        feature: None,
    },
    Row {
        format: Format::Safetensors,
        name: "safetensors",
        endings: &["safetensors"],
        recognised: Recognised::ByEnding,
        open: Some(|path, names| arrays::boxed(safetensors::SafetensorsFile::open(path)?, names)),
        write: Writer::Arrays(safetensors::write),
        feature: None,
    },
    Row {
        format: Format::Mat,
        name: "MATLAB",
        endings: &["mat"],
        recognised: Recognised::ByContent(
            &[b"MATLAB 5.0 MAT-file"],
            "it is of version 4 or of another program; save it with -v7",
        ),
        open: Some(|path, names| arrays::boxed(mat_file::MatFile::open(path)?, names)),
        write: Writer::Arrays(mat_file::write),
        feature: None,
    },
    Row {
        format: Format::Parquet,
        name: "Parquet",
        endings: &["parquet"],
        recognised: Recognised::ByContent(&[b"PAR1"], "it does not begin with PAR1"),
        open: with_tables!(|path, names| table::boxed(parquet_file::ParquetFile::open(path)?, names)),
        write: with_tables!(write Writer::Table(parquet_file::write)),
        feature: TABLES,
    },
    Row {
        format: Format::Arrow,
        name: "Arrow",
        // Hugging Face's datasets call streams `.arrows`. A stream has no signature.
        endings: &["arrow", "feather", "arrows"],
        recognised: Recognised::EitherWay(&[b"ARROW1"]),
        open: with_tables!(|path, names| table::boxed(arrow_file::ArrowFile::open(path)?, names)),
        write: with_tables!(write Writer::Table(arrow_file::write)),
        feature: TABLES,
    },
    Row {
        format: Format::Hdf5,
        name: "HDF5",
        endings: &["h5", "hdf5"],
        recognised: Recognised::ByContent(
            &[b"\x89HDF\r\n\x1a\n", b"MATLAB 7.3 MAT-file"],
            "it does not begin with the signature of HDF5",
        ),
        open: with_tables!(|path, names| arrays::boxed(hdf5_file::Hdf5::open(path)?, names)),
        write: with_tables!(write Writer::Arrays(hdf5_file::write)),
        feature: TABLES,
    },
    Row {
        format: Format::Text,
        name: "text",
        endings: &["txt"],
        recognised: Recognised::ByEnding,
        open: Some(|path, _| Ok(Box::new(text::Lines::open(path)))),
        write: Writer::None,
        feature: None,
    },
];

/// Longest signature.
const SIGNATURE_BYTES: u64 = 19;

/// Files that we know and do not read.
const REFUSED: [(&[u8], &str); 2] = [
    (b"PARE", "an encrypted Parquet file"),
    (b"FEA1", "Feather of version 1; write it anew with pyarrow.feather.write_feather"),
];

impl Format {
    fn row(self) -> &'static Row {
        // Every format has a row; a test sees to it.
        FORMATS.iter().find(|row| row.format == self).unwrap_or(&FORMATS[0])
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Does it hold a table of columns?
    pub fn is_table(self) -> bool {
        matches!(self, Format::Parquet | Format::Arrow)
    }

    /// Its endings (`.arrow, .feather, …`).
    pub fn endings(self) -> String {
        joined(self.row().endings)
    }

    /// The format of files with such an ending.
    pub fn of_ending(path: &Path) -> Option<Format> {
        let ending = path.extension().and_then(OsStr::to_str)?.to_ascii_lowercase();
        FORMATS.iter().find(|row| row.endings.contains(&ending.as_str())).map(|row| row.format)
    }

    /// The endings of all files that features can be read from (`.npy, .npz, …`).
    pub fn readable_endings() -> String {
        joined(FORMATS.iter().filter(|row| row.format != Format::Text).flat_map(|row| row.endings))
    }

    /// The endings of all files that features can be written to, also by builds with more features than this one.
    pub fn writable_endings() -> String {
        joined(FORMATS.iter().filter(|row| row.format.is_writable()).flat_map(|row| row.endings))
    }

    fn is_writable(self) -> bool {
        !matches!(self.row().write, Writer::None) || self.row().open.is_none()
    }

    /// Refuses a format whose feature this build lacks.
    fn check_built(self) -> Result<(), Problem> {
        match (self.row().open, self.row().feature) {
            (None, Some(feature)) => Err(Problem::LacksFeature { what: self.name(), feature }),
            _ => Ok(()),
        }
    }

    /// The format of a file that features are to be written to, by its ending.
    pub fn to_write(path: &Path) -> Result<Format, DataError> {
        let fail = |problem: Problem| DataError::new(path, problem);
        let format = Format::of_ending(path).filter(|format| format.is_writable());
        let format = format.ok_or_else(|| {
            fail(Problem::Unsupported(format!("features are written as {}", Format::writable_endings())))
        })?;
        format.check_built().map_err(fail)?;
        Ok(format)
    }

    /// How it is written.
    pub(crate) fn writer(self) -> &'static Writer {
        &self.row().write
    }

    /// Decides by content first, then by extension.
    pub fn detect(path: &Path) -> Result<Self, DataError> {
        Self::detect_problem(path).map_err(|problem| DataError::new(path, problem))
    }

    fn detect_problem(path: &Path) -> Result<Self, Problem> {
        if path == Path::new(STDIN) {
            return Ok(Format::Csv);
        }
        let mut head = Vec::new();
        let file = File::open(path)?;
        if file.metadata().is_ok_and(|about| about.is_dir()) {
            return Err(Problem::Unsupported(
                "a folder; name the files in it, or a pattern: 'folder/*.parquet'".into(),
            ));
        }
        file.take(SIGNATURE_BYTES).read_to_end(&mut head)?;
        if head.is_empty() {
            return Err(Problem::Empty);
        }
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
        let is_pickle = matches!(head[..], [0x80, 2..=5, ..]);
        if is_pickle || matches!(extension.as_str(), "pt" | "pth" | "pkl" | "pickle") {
            return Err(Problem::pickle(path));
        }
        if let Some((_, message)) = REFUSED.iter().find(|(signature, _)| head.starts_with(signature)) {
            return Err(Problem::Unsupported((*message).into()));
        }
        let begins = |row: &&Row| match row.recognised {
            Recognised::ByContent(signatures, _) | Recognised::EitherWay(signatures) => {
                signatures.iter().any(|signature| head.starts_with(signature))
            }
            Recognised::ByEnding => false,
        };
        if let Some(row) = FORMATS.iter().find(begins) {
            return Ok(row.format);
        }
        let format = Format::of_ending(path).ok_or(Problem::UnknownFormat)?;
        match format.row().recognised {
            Recognised::ByContent(_, message) => Err(Problem::damaged(format.name(), message)),
            _ => Ok(format),
        }
    }
}

fn joined<'a>(endings: impl IntoIterator<Item = &'a &'a str>) -> String {
    let endings: Vec<String> = endings.into_iter().map(|ending| format!(".{ending}")).collect();
    endings.join(", ")
}

/// Size and type of the features in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FeatureShape {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) element: ElementType,
}

/// An open file: features, or one value per row, or both. Values are still on disk.
pub(crate) trait DataFile {
    /// Size and type of the features.
    fn shape(&mut self) -> Result<FeatureShape, Problem>;
    /// Reads the features, from the first row on.
    fn read_rows(&mut self, rows: &mut Rows) -> Result<(), Problem>;
    /// Most bytes held while features are read, besides the features.
    fn reading_bytes(&self) -> u64 {
        0
    }
    /// Labels, ids or class names, if there are any. `alone`: the file was given for this column, so an only column is
    /// taken whatever its name, and none is an error.
    fn column(&mut self, wanted: Field, alone: bool) -> Result<Option<Column>, Problem>;
}

/// Opens a file of any format.
pub(crate) fn open(path: &Path, names: &FieldNames) -> Result<Box<dyn DataFile>, Problem> {
    let format = Format::detect_problem(path)?;
    format.check_built()?;
    match format.row().open {
        Some(open) => open(path, names.clone()),
        None => Err(Problem::UnknownFormat),
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
    fn every_signature_is_known_whatever_the_ending_and_fits_into_what_is_read() {
        let dir = tempfile::tempdir().unwrap();
        for row in &FORMATS {
            let (Recognised::ByContent(signatures, _) | Recognised::EitherWay(signatures)) = row.recognised
            else {
                continue;
            };
            for signature in signatures {
                assert!(signature.len() as u64 <= SIGNATURE_BYTES);
                let path = dir.path().join("x.csv");
                std::fs::write(&path, signature).unwrap();
                assert_eq!(Format::detect(&path).unwrap(), row.format);
            }
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
