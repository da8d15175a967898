//! The input and output of a run, part by part.

use crate::error::ShardError;
use crate::job::Job;
use a2lp::{Classes, PseudoLabels};
use a2lp_data::{FeatureFile, FieldNames, LabelTable, Problem};
use std::path::PathBuf;

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

/// Files on this machine.
pub struct LocalParts {
    /// The files of the source, then those of the target.
    pub inputs: Vec<PathBuf>,
    /// Where the labels of each target part go.
    pub outputs: Vec<PathBuf>,
    /// Names of the columns that are read.
    pub names: FieldNames,
}

impl LocalParts {
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
        let rows: Vec<usize> = (labels.first..labels.first + labels.labels.len()).collect();
        let table = LabelTable {
            rows: Some(&rows),
            ids: ids.as_deref(),
            probabilities: labels.probabilities,
            ..LabelTable::new(labels.classes, labels.labels)
        };
        // A run that goes on may write a part again: the bytes are the same.
        Ok(table.write(&self.outputs[part - first_target], true)?)
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
