//! Features on disk: shape first, values later, straight into the matrix a run works on.

use crate::column::Column;
use crate::error::{DataError, Problem};
use crate::formats::ElementType;
use crate::formats::STDIN;
use crate::formats::{self, DataFile, Format};
use crate::names::{Field, FieldNames};
use crate::rows::Rows;
use a2lp::FeatureMatrix;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// An open set of features, usually one file, whose shape is known and whose values are still on disk.
pub struct FeatureFile {
    parts: Vec<Part>,
    columns: usize,
    element: ElementType,
}

/// One file of a set.
struct Part {
    path: PathBuf,
    file: Box<dyn DataFile>,
    rows: usize,
    /// Size and time of the file when it was opened.
    seen: Option<(u64, SystemTime)>,
}

impl Part {
    /// Asks the file. If it was written to meanwhile, the answer is an error.
    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut dyn DataFile) -> Result<T, Problem>,
    ) -> Result<T, DataError> {
        let answer = question(self.file.as_mut());
        let answer = if look(&self.path) == self.seen { answer } else { Err(Problem::Changed) };
        answer.map_err(|problem| DataError::new(&self.path, problem))
    }
}

fn look(path: &Path) -> Option<(u64, SystemTime)> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.len(), about.modified().ok()?))
}

/// The files that a path stands for: itself, the files of features in a folder, or those that match it as a pattern (`*`, `?`, `[…]`),
/// in the order of their names.
pub fn expand(path: &Path) -> Result<Vec<PathBuf>, DataError> {
    if path.is_dir() {
        return files_in(path);
    }
    let text = path.to_string_lossy();
    if path == Path::new(STDIN) || path.exists() || !text.contains(['*', '?', '[']) {
        return Ok(vec![path.to_path_buf()]);
    }
    let fail = |message: String| DataError::new(path, Problem::Unsupported(message));
    let found = glob::glob(&text).map_err(|error| fail(format!("not a pattern: {error}")))?;
    let found: Vec<PathBuf> = found.collect::<Result<_, _>>().map_err(|error| fail(error.to_string()))?;
    if found.is_empty() {
        return Err(fail("no file matches this pattern".into()));
    }
    Ok(found)
}

/// The files of features in a folder; hidden files are left out.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let fail = |problem: Problem| DataError::new(folder, problem);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| fail(error.into()))? {
        let path = entry.map_err(|error| fail(error.into()))?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['.', '_']));
        let is_features = Format::of_ending(&path).is_some_and(|format| format != Format::Text);
        if !is_hidden && path.is_file() && is_features {
            files.push(path);
        }
    }
    files.sort_unstable();
    match files.is_empty() {
        true => Err(fail(Problem::Unsupported(
            "a folder without files of features; of images, `a2lp extract` makes them".into(),
        ))),
        false => Ok(files),
    }
}

impl FeatureFile {
    /// Opens a file, or all files that match a pattern, and checks that they are as long as they claim.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        Self::open_set(&[path.to_path_buf()], &FieldNames::default())
    }

    /// Opens files, or patterns of files, as one set: the rows of the first, then of the second, and so on.
    pub fn open_set(paths: &[PathBuf], names: &FieldNames) -> Result<Self, DataError> {
        let mut set = FeatureFile { parts: Vec::new(), columns: 0, element: ElementType::Text };
        for path in paths {
            for path in expand(path)? {
                set.add(&path, names).map_err(|problem| DataError::new(&path, problem))?;
            }
        }
        Ok(set)
    }

    fn add(&mut self, path: &Path, names: &FieldNames) -> Result<(), Problem> {
        let seen = look(path);
        let mut file = formats::open(path, names)?;
        let shape = file.shape()?;
        if let Some((bytes, _)) = seen {
            Problem::check_expansion(shape.rows as u128 * shape.columns as u128 * 4, bytes)?;
        }
        match self.parts.first() {
            None => (self.columns, self.element) = (shape.columns, shape.element),
            Some(first) if shape.columns != self.columns => {
                return Err(Problem::Table(format!(
                    "{} features a row where {} has {}; files of one set need features of the same extractor",
                    shape.columns,
                    first.path.display(),
                    self.columns
                )));
            }
            Some(_) => {}
        }
        self.parts.push(Part { path: path.to_path_buf(), file, rows: shape.rows, seen });
        Ok(())
    }

    /// Number of items.
    pub fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.rows).sum()
    }

    /// Features per item.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Type of the values in the (first) file.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Most bytes held while the features are read, besides the features.
    pub fn reading_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.file.reading_bytes()).max().unwrap_or(0)
    }

    /// Where the (first) file is.
    pub fn path(&self) -> &Path {
        self.parts.first().map_or(Path::new(""), |part| &part.path)
    }

    /// Where all files are.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().map(|part| part.path.as_path())
    }

    /// The file that a row comes from, and its number there.
    pub fn locate(&self, row: usize) -> (&Path, usize) {
        let mut row = row;
        for part in &self.parts {
            if row < part.rows {
                return (&part.path, row);
            }
            row -= part.rows;
        }
        (self.path(), row)
    }

    /// Labels in the same files, if any. If the files have different class lists, the labels are names.
    pub fn labels(&mut self) -> Result<Option<Column>, DataError> {
        let lists = self.class_lists()?;
        let differ = lists.iter().any(|list| *list != lists[0]);
        let mut labels = self.columns_of(Field::Labels)?;
        for ((labels, names), part) in labels.iter_mut().zip(lists).zip(&self.parts).filter(|_| differ) {
            let named = labels.take().map(|labels| labels.into_class_names(names.as_deref())).transpose();
            *labels = named.map_err(|problem| DataError::new(&part.path, problem))?.map(Column::Strings);
        }
        self.together(labels, "labels")
    }

    /// Ids in the same files, if any.
    pub fn ids(&mut self) -> Result<Option<Vec<String>>, DataError> {
        let ids = self.columns_of(Field::Ids)?;
        Ok(self.together(ids, "ids")?.map(Column::into_strings))
    }

    fn columns_of(&mut self, wanted: Field) -> Result<Vec<Option<Column>>, DataError> {
        self.parts.iter_mut().map(|part| part.ask(|file| file.column(wanted, false))).collect()
    }

    /// One value per row, in every file or in none.
    fn together(&self, columns: Vec<Option<Column>>, what: &str) -> Result<Option<Column>, DataError> {
        if columns.iter().all(Option::is_none) {
            return Ok(None);
        }
        for (part, column) in self.parts.iter().zip(&columns) {
            let wrong = match column.as_ref().map(Column::len) {
                Some(count) if count == part.rows => continue,
                Some(count) => format!("{count} {what} for {} rows; one per row is needed", part.rows),
                None => format!("it has no {what}, but another file of the set has"),
            };
            return Err(DataError::new(&part.path, Problem::Table(wrong)));
        }
        Ok(columns.into_iter().flatten().reduce(Column::below))
    }

    /// Class names in the same file, if any; of a set, if all files have the same list.
    pub fn class_names(&mut self) -> Result<Option<Vec<String>>, DataError> {
        let mut lists = self.class_lists()?;
        lists.dedup();
        Ok(if lists.len() == 1 { lists.pop().flatten() } else { None })
    }

    fn class_lists(&mut self) -> Result<Vec<Option<Vec<String>>>, DataError> {
        let list = |part: &mut Part| {
            let names = part.ask(|file| file.column(Field::ClassNames, false))?;
            Ok(names.map(Column::into_strings))
        };
        self.parts.iter_mut().map(list).collect()
    }

    /// Passes the features on in order, in pieces of any size, instead of keeping them. An error of `sink` ends it.
    pub fn stream(&mut self, sink: &mut dyn FnMut(&[f32]) -> Result<(), Problem>) -> Result<(), DataError> {
        let columns = self.columns;
        for part in &mut self.parts {
            let mut values = Vec::new();
            let mut rows = Rows::streamed(&mut values, part.rows * columns, &mut *sink);
            part.ask(|file| file.read_rows(&mut rows))?;
            rows.finish().map_err(|problem| DataError::new(&part.path, problem))?;
        }
        Ok(())
    }

    /// Rows of every file.
    pub fn part_rows(&self) -> Vec<usize> {
        self.parts.iter().map(|part| part.rows).collect()
    }

    /// Reads the features.
    pub fn read(self) -> Result<FeatureMatrix, DataError> {
        stack(&mut [self])
    }
}

/// Reads sets of equal width one below the other into one matrix, allocated once.
///
/// # Panics
/// When the widths differ; compare [`FeatureFile::columns`] first.
pub fn stack(files: &mut [FeatureFile]) -> Result<FeatureMatrix, DataError> {
    let columns = files.first().map_or(0, FeatureFile::columns);
    assert!(files.iter().all(|file| file.columns == columns), "stacked files have one width");
    let first = files.first().map_or(PathBuf::new(), |file| file.path().to_path_buf());
    let fail = |problem| DataError::new(&first, problem);
    let rows: usize = files.iter().map(FeatureFile::rows).sum();
    let total =
        rows.checked_mul(columns).ok_or_else(|| fail(Problem::Memory(4 * rows as u128 * columns as u128)))?;
    let mut values: Vec<f32> = Vec::new();
    for part in files.iter_mut().flat_map(|file| &mut file.parts) {
        let mut rows = Rows::new(&mut values, part.rows * columns, total);
        part.ask(|file| file.read_rows(&mut rows))?;
        rows.finish().map_err(|problem| DataError::new(&part.path, problem))?;
    }
    FeatureMatrix::new(rows, columns, values).map_err(|error| fail(Problem::Table(error.to_string())))
}
