//! Features on disk: shape first, values later, straight into the matrix a run works on.

use crate::column::Column;
use crate::csv_file::{CsvTable, ID_NAMES, LABEL_NAMES};
use crate::error::{DataError, Problem};
use crate::format::Format;
use crate::npy::{ElementType, Header};
use crate::npz::Npz;
use crate::safetensors::SafetensorsFile;
use a2lp::FeatureMatrix;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// An open file of features, whose shape is known and whose values are still on disk.
pub struct FeatureFile {
    path: PathBuf,
    rows: usize,
    columns: usize,
    element: ElementType,
    content: Content,
}

enum Content {
    Npy { header: Header, reader: BufReader<File> },
    Npz { npz: Npz, field: String },
    Safetensors { file: SafetensorsFile, field: String },
    Csv(CsvTable),
}

impl FeatureFile {
    /// Opens a file and checks that it is as long as it claims.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        Self::open_any(path).map_err(|problem| DataError::new(path, problem))
    }

    fn open_any(path: &Path) -> Result<Self, Problem> {
        let format = Format::detect(path).map_err(|error| error.problem)?;
        let ((rows, columns), element, content) = match format {
            Format::Npy => {
                let (header, reader) = Header::open(path)?;
                (header.matrix_shape()?, header.element, Content::Npy { header, reader })
            }
            Format::Npz => {
                let mut npz = Npz::open(path)?;
                let field = npz.feature_field()?;
                let (header, _) = npz.array(&field)?;
                (header.matrix_shape()?, header.element, Content::Npz { npz, field })
            }
            Format::Safetensors => {
                let file = SafetensorsFile::open(path)?;
                let field = file.feature_field()?;
                let (header, _) = file.header(&field)?;
                (header.matrix_shape()?, header.element, Content::Safetensors { file, field })
            }
            Format::Csv => {
                let table = CsvTable::open(path)?;
                ((table.rows, table.features()), ElementType::Text, Content::Csv(table))
            }
            Format::Text => return Err(Problem::UnknownFormat),
        };
        Ok(FeatureFile { path: path.to_path_buf(), rows, columns, element, content })
    }

    /// Number of items.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Features per item.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Type of the values in the file.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Labels that stand in the same file, if any.
    pub fn labels(&mut self) -> Result<Option<Column>, DataError> {
        self.column("labels", LABEL_NAMES)
    }

    /// Ids that stand in the same file, if any.
    pub fn ids(&mut self) -> Result<Option<Vec<String>>, DataError> {
        Ok(self.column("ids", ID_NAMES)?.map(Column::into_strings))
    }

    /// Class names that stand in the same file, if any.
    pub fn class_names(&mut self) -> Result<Option<Vec<String>>, DataError> {
        Ok(self.column("class_names", &[])?.map(Column::into_strings))
    }

    fn column(&mut self, field: &str, names: &[&str]) -> Result<Option<Column>, DataError> {
        let read = |content: &mut Content| match content {
            Content::Npz { npz, .. } if npz.has(field) => {
                let (header, mut reader) = npz.array(field)?;
                header.read_column(&mut reader).map(Some)
            }
            Content::Safetensors { file, .. } => file.column(field),
            Content::Csv(table) if table.has_column(names) => table.read_column(names).map(Some),
            _ => Ok(None),
        };
        read(&mut self.content).map_err(|problem| DataError::new(&self.path, problem))
    }

    /// Reads all values, row-major, into `out`, which holds rows × columns.
    fn read_into(&mut self, out: &mut [f32]) -> Result<(), DataError> {
        let mut read = |content: &mut Content| match content {
            Content::Npy { header, reader } => header.read_matrix(reader, out),
            Content::Npz { npz, field } => {
                let (header, mut reader) = npz.array(field)?;
                header.read_matrix(&mut reader, out)
            }
            Content::Safetensors { file, field } => {
                let (header, reader) = file.tensor(field)?;
                header.read_matrix(reader, out)
            }
            Content::Csv(table) => table.read_features(out),
        };
        read(&mut self.content).map_err(|problem| DataError::new(&self.path, problem))
    }

    /// Reads the features.
    pub fn read(self) -> Result<FeatureMatrix, DataError> {
        stack(&mut [self])
    }
}

/// Reads files of equal width one below the other into one matrix, allocated once.
///
/// # Panics
/// When the widths differ; compare [`FeatureFile::columns`] first.
pub fn stack(files: &mut [FeatureFile]) -> Result<FeatureMatrix, DataError> {
    let columns = files.first().map_or(0, FeatureFile::columns);
    assert!(files.iter().all(|file| file.columns == columns), "stacked files have one width");
    let rows: usize = files.iter().map(FeatureFile::rows).sum();
    let mut values: Vec<f32> = Vec::new();
    let count = rows.checked_mul(columns).filter(|&count| values.try_reserve_exact(count).is_ok());
    let (Some(count), Some(first)) = (count, files.first()) else {
        let path = files.first().map(FeatureFile::path).unwrap_or(Path::new(""));
        return Err(DataError::new(path, Problem::Memory(rows as u128 * columns as u128 * 4)));
    };
    let first = first.path.clone();
    values.resize(count, 0.0);
    let mut rest = &mut values[..];
    for file in files {
        let (part, below) = rest.split_at_mut(file.rows * columns);
        file.read_into(part)?;
        rest = below;
    }
    FeatureMatrix::new(rows, columns, values)
        .map_err(|error| DataError::new(&first, Problem::Table(error.to_string())))
}
