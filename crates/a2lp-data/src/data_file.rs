//! What every format can do, and the door through which all of them are opened.

use crate::arrays::ArrayFileReader;
use crate::column::Column;
use crate::csv_file::CsvTable;
use crate::error::Problem;
use crate::format::Format;
use crate::names::{FieldNames, Wanted};
use crate::npy::{ElementType, NpyFile};
use crate::npz::Npz;
use crate::rows::Rows;
use crate::safetensors::SafetensorsFile;
#[cfg(feature = "tables")]
use crate::{arrow_file::ArrowFile, hdf5_file::Hdf5, parquet_file::ParquetFile, table::Table};
use crate::{mat_file::MatFile, text};
use std::path::Path;

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
    /// Labels, ids or class names, if there are any. `alone`: the file was given for their sake, so that the only column
    /// there is will do, and none is an error.
    fn column(&mut self, wanted: Wanted, alone: bool) -> Result<Option<Column>, Problem>;
}

/// Opens a file of any format.
pub(crate) fn open(path: &Path, names: &FieldNames) -> Result<Box<dyn DataFile>, Problem> {
    let names = names.clone();
    let format = Format::detect(path).map_err(|error| error.problem)?;
    format.check_built()?;
    Ok(match format {
        Format::Npy => Box::new(ArrayFileReader { arrays: NpyFile::open(path)?, names }),
        Format::Npz => Box::new(ArrayFileReader { arrays: Npz::open(path)?, names }),
        Format::Safetensors => Box::new(ArrayFileReader { arrays: SafetensorsFile::open(path)?, names }),
        #[cfg(feature = "tables")]
        Format::Hdf5 => Box::new(ArrayFileReader { arrays: Hdf5::open(path)?, names }),
        Format::Mat => Box::new(ArrayFileReader { arrays: MatFile::open(path)?, names }),
        #[cfg(feature = "tables")]
        Format::Parquet => Box::new(Table::new(ParquetFile::open(path)?, names)),
        #[cfg(feature = "tables")]
        Format::Arrow => Box::new(Table::new(ArrowFile::open(path)?, names)),
        #[cfg(not(feature = "tables"))]
        Format::Hdf5 | Format::Parquet | Format::Arrow => unreachable!("refused by check_built"),
        Format::Csv => Box::new(CsvTable::open(path, names)?),
        Format::Text => Box::new(text::Lines::open(path)),
    })
}
