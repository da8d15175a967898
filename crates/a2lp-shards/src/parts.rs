//! The input and output of a run, part by part.

use crate::error::ShardError;
use crate::job::Job;
use a2lp::{Classes, PseudoLabels};
use a2lp_data::{FeatureFile, FieldNames, LabelTable, Problem};
use std::path::{Path, PathBuf};

/// Takes consecutive rows.
pub type Sink<'a> = &'a mut dyn FnMut(&[f32]) -> Result<(), ShardError>;

/// The parts of a run: those of the source, then those of the target.
pub trait Parts: Send + Sync {
    /// Reads the features of a part, row after row.
    fn read(&self, part: usize, sink: Sink<'_>) -> Result<(), ShardError>;
    /// Writes the labels of a target part, whole or not at all.
    fn write(&self, part: usize, labels: &PartLabels<'_>) -> Result<(), ShardError>;
}

/// The labels of the items of one part.
pub struct PartLabels<'a> {
    /// The class list.
    pub classes: &'a Classes,
    /// The labels.
    pub labels: &'a PseudoLabels,
    /// Number of the first item, counted over all parts of the target.
    pub first: usize,
    /// Write the probability of every class?
    pub probabilities: bool,
}

impl PartLabels<'_> {
    /// Writes them as a labels file.
    pub fn write(&self, ids: Option<&[String]>, path: &Path) -> Result<(), ShardError> {
        let rows: Vec<usize> = (self.first..self.first + self.labels.len()).collect();
        let table = LabelTable {
            rows: Some(&rows),
            ids,
            probabilities: self.probabilities,
            ..LabelTable::new(self.classes, self.labels)
        };
        Ok(table.write(path, true)?)
    }
}

/// Files on this machine.
pub struct LocalParts {
    inputs: Vec<PathBuf>,
    /// Where the labels of each target part go.
    pub outputs: Vec<PathBuf>,
    names: FieldNames,
}

/// The ending of labels for features with this one: Parquet stays Parquet, all else is CSV.
fn labels_ending(path: &Path) -> &'static str {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("parquet" | "pq") => "parquet",
        _ => "csv",
    }
}

/// Names of labels files for these parts: those of the parts themselves, with a number in front if two are the same.
pub fn labels_names(targets: &[PathBuf]) -> Vec<String> {
    let name = |path: &PathBuf| {
        let stem = path.file_stem().map_or("part".into(), |stem| stem.to_string_lossy().into_owned());
        format!("{stem}.{}", labels_ending(path))
    };
    let names: Vec<String> = targets.iter().map(name).collect();
    let mut distinct = names.clone();
    distinct.sort_unstable();
    distinct.dedup();
    match distinct.len() == names.len() {
        true => names,
        false => names.iter().enumerate().map(|(at, name)| format!("{at:05}-{name}")).collect(),
    }
}

impl LocalParts {
    /// These parts, whose labels go into the folder `out`.
    pub fn new(sources: &[PathBuf], targets: &[PathBuf], out: &Path, names: FieldNames) -> Self {
        let outputs = labels_names(targets).iter().map(|name| out.join(name)).collect();
        LocalParts { inputs: [sources, targets].concat(), outputs, names }
    }

    /// Sizes and times of the input files: other files have others.
    pub fn fingerprint(&self) -> String {
        let about = |path: &PathBuf| {
            let about = std::fs::metadata(path);
            let changed = about.as_ref().ok().and_then(|about| about.modified().ok());
            let changed = changed.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
            let length = about.map_or(0, |about| about.len());
            format!("{} {length} {}", path.display(), changed.map_or(0, |time| time.as_nanos()))
        };
        self.inputs.iter().map(about).collect::<Vec<_>>().join("\n")
    }

    fn open(&self, part: usize) -> Result<FeatureFile, ShardError> {
        Ok(FeatureFile::open_set(&self.inputs[part..=part], &self.names)?)
    }
}

impl Parts for LocalParts {
    fn read(&self, part: usize, sink: Sink<'_>) -> Result<(), ShardError> {
        let mut failure = None;
        let read = self.open(part)?.stream(&mut |rows| {
            sink(rows).map_err(|error| {
                failure = Some(error);
                Problem::Stopped
            })
        });
        match (failure, read) {
            (Some(error), _) => Err(error),
            (None, read) => Ok(read?),
        }
    }

    fn write(&self, part: usize, labels: &PartLabels<'_>) -> Result<(), ShardError> {
        let ids = self.open(part)?.ids()?;
        let first_target = self.inputs.len() - self.outputs.len();
        // A run that goes on may write a part again: the bytes are the same.
        labels.write(ids.as_deref(), &self.outputs[part - first_target])
    }
}

impl Job {
    /// The error of a value that is not finite.
    pub(crate) fn not_finite(&self, row: usize, column: usize, value: f32) -> a2lp::Error {
        let (domain, row) = match row.checked_sub(self.source_rows()) {
            None => (a2lp::Domain::Source, row),
            Some(row) => (a2lp::Domain::Target, row),
        };
        a2lp::Error::NotFinite { domain, row, column, value }
    }
}
