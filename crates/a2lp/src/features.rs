//! Feature vectors: one row per item, f32, row-major. Hands on rows that are finite and, for the cosine
//! similarity, of unit length.

use crate::error::{Domain, Error};
use crate::known::KnownLabels;
use crate::labels::{ClassId, Classes, Labels};
use rayon::prelude::*;

/// Rows handled as one piece of parallel work.
pub(crate) const ROWS_PER_TASK: usize = 1024;

/// Rows whose part of a sum over all rows is added up on its own, wherever the rows are held. Sums of segments are then added
/// in order, so a cluster gets the same bits as one machine.
pub(crate) const SEGMENT: usize = 4 * ROWS_PER_TASK;

/// A dense n × d matrix of features.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeatureMatrix {
    values: Vec<f32>,
    rows: usize,
    columns: usize,
}

impl FeatureMatrix {
    /// Wraps row-major `values`. Only the shape is checked here; [`Domains`](crate::Domains) checks the values.
    pub fn new(rows: usize, columns: usize, values: Vec<f32>) -> Result<Self, Error> {
        if rows.checked_mul(columns) != Some(values.len()) {
            return Err(Error::Shape { values: values.len(), rows, columns });
        }
        Ok(FeatureMatrix { values, rows, columns })
    }

    /// A matrix from equally long rows.
    pub fn from_rows<R: AsRef<[f32]>>(rows: &[R]) -> Result<Self, Error> {
        let columns = rows.first().map_or(0, |r| r.as_ref().len());
        let values: Vec<f32> = rows.iter().flat_map(|r| r.as_ref().iter().copied()).collect();
        if rows.iter().any(|r| r.as_ref().len() != columns) {
            return Err(Error::Shape { values: values.len(), rows: rows.len(), columns });
        }
        Self::new(rows.len(), columns, values)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.columns..][..self.columns]
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The rows of `range`, as one slice.
    pub(crate) fn block(&self, range: std::ops::Range<usize>) -> &[f32] {
        &self.values[range.start * self.columns..range.end * self.columns]
    }

    /// These rows alone, in this order.
    pub(crate) fn gathered(&self, rows: &[u32]) -> Self {
        let values = rows.iter().flat_map(|&row| self.row(row as usize)).copied().collect();
        FeatureMatrix { values, rows: rows.len(), columns: self.columns }
    }

    /// Puts the rows of `below` under these.
    pub(crate) fn append(&mut self, below: &FeatureMatrix) {
        debug_assert!(self.rows == 0 || self.columns == below.columns);
        self.columns = below.columns;
        self.values.extend_from_slice(&below.values);
        self.rows += below.rows;
    }

    /// Puts one more row under these.
    pub(crate) fn append_row(&mut self, row: &[f32]) {
        debug_assert!(self.rows == 0 || self.columns == row.len());
        self.columns = row.len();
        self.values.extend_from_slice(row);
        self.rows += 1;
    }

    /// Replaces the first `count` rows by the (at most as many) rows of `head`, in place.
    pub(crate) fn replace_head(&mut self, count: usize, head: &FeatureMatrix) {
        debug_assert!(head.rows <= count && head.columns == self.columns);
        self.values[..head.values.len()].copy_from_slice(&head.values);
        self.values.copy_within(count * self.columns.., head.values.len());
        self.rows = self.rows - count + head.rows;
        self.values.truncate(self.rows * self.columns);
    }

    /// Scales every row to unit length and returns the lengths. A zero row stays zero.
    pub(crate) fn normalise_rows(&mut self) -> Vec<f64> {
        if self.columns == 0 {
            return vec![0.0; self.rows];
        }
        self.values.par_chunks_exact_mut(self.columns).with_min_len(64).map(normalise).collect()
    }

    /// Values that are known to fill the shape.
    pub(crate) fn from_parts(rows: usize, columns: usize, values: Vec<f32>) -> Self {
        debug_assert_eq!(rows * columns, values.len());
        FeatureMatrix { values, rows, columns }
    }

    /// The mean of these rows.
    pub(crate) fn mean(&self, range: std::ops::Range<usize>) -> Vec<f64> {
        let (columns, count) = (self.columns.max(1), range.len());
        // Blocks are summed in order, so that the number of threads does not show.
        let blocks: Vec<Vec<f64>> = self
            .block(range)
            .par_chunks(ROWS_PER_TASK * columns)
            .map(|block| {
                let mut sum = vec![0f64; columns];
                for row in block.chunks_exact(columns) {
                    sum.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
                }
                sum
            })
            .collect();
        let mut mean = vec![0f64; columns];
        for block in blocks {
            mean.iter_mut().zip(block).for_each(|(mean, sum)| *mean += sum / count as f64);
        }
        mean
    }

    /// Takes this vector off each of these rows.
    pub(crate) fn subtract(&mut self, range: std::ops::Range<usize>, vector: &[f64]) {
        let columns = self.columns.max(1);
        let rows = &mut self.values[range.start * columns..range.end * columns];
        rows.par_chunks_exact_mut(columns).with_min_len(64).for_each(|row| {
            row.iter_mut().zip(vector).for_each(|(value, off)| *value = (f64::from(*value) - off) as f32);
        });
    }

    /// Takes the mean of these rows off each of them.
    pub(crate) fn subtract_mean(&mut self, range: std::ops::Range<usize>) {
        let mean = self.mean(range.clone());
        self.subtract(range, &mean);
    }

    /// No value below zero?
    pub(crate) fn is_non_negative(&self) -> bool {
        self.values.par_chunks(1 << 14).all(|block| block.iter().fold(true, |all, &v| all & (v >= 0.0)))
    }

    /// The values, row after row.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// Rows that hold a NaN or an infinity, in order.
    pub fn invalid_rows(&self) -> Vec<usize> {
        let valid = |row: &usize| self.row(*row).iter().fold(true, |all, value| all & value.is_finite());
        (0..self.rows).into_par_iter().filter(|row| !valid(row)).collect()
    }

    /// Takes out these rows, given in order.
    pub fn remove_rows(&mut self, rows: &[usize]) {
        let mut to = 0;
        for row in (0..self.rows).filter(|row| rows.binary_search(row).is_err()) {
            self.values.copy_within(row * self.columns..(row + 1) * self.columns, to * self.columns);
            to += 1;
        }
        self.rows = to;
        self.values.truncate(to * self.columns);
    }

    /// Position and value of the first NaN or infinity.
    pub(crate) fn first_non_finite(&self) -> Option<(usize, usize, f32)> {
        const BLOCK: usize = 1 << 14;
        let finite = |block: &[f32]| block.iter().fold(true, |all, v| all & v.is_finite());
        let block = self.values.par_chunks(BLOCK).position_first(|block| !finite(block))?;
        let within = self.values[block * BLOCK..].iter().position(|v| !v.is_finite())?;
        let at = block * BLOCK + within;
        Some((at / self.columns, at % self.columns, self.values[at]))
    }
}

/// Scales one row to unit length; returns its length. f64 throughout, so that no square over- or underflows.
pub(crate) fn normalise(row: &mut [f32]) -> f64 {
    let norm = row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
    if norm > 0.0 {
        for value in row {
            *value = (f64::from(*value) / norm) as f32;
        }
    }
    norm
}

/// Source and target features, stacked, the labels of the source, and what a person said of target items: all a run may know.
///
/// The truth about the target has no place in this type; see [`TargetTruth`](crate::evaluation::TargetTruth).
#[derive(Clone, Debug)]
pub struct Domains {
    pub(crate) features: FeatureMatrix,
    pub(crate) source_rows: usize,
    pub(crate) source_labels: Labels,
    pub(crate) known: KnownLabels,
}

impl Domains {
    /// Stacks two matrices.
    pub fn new(source: FeatureMatrix, labels: Labels, target: FeatureMatrix) -> Result<Self, Error> {
        let source_rows = source.rows;
        for (domain, matrix) in [(Domain::Source, &source), (Domain::Target, &target)] {
            if matrix.rows == 0 || matrix.columns == 0 {
                return Err(Error::Empty(domain));
            }
        }
        if source.columns != target.columns {
            return Err(Error::Width { source_columns: source.columns, target_columns: target.columns });
        }
        let mut features = source;
        features.append(&target);
        Self::stacked(features, source_rows, labels)
    }

    /// Takes a matrix that already holds the source rows, then the target rows.
    pub fn stacked(
        features: FeatureMatrix,
        source_rows: usize,
        source_labels: Labels,
    ) -> Result<Self, Error> {
        if source_rows == 0 || features.columns == 0 {
            return Err(Error::Empty(Domain::Source));
        }
        if features.rows <= source_rows {
            return Err(Error::Empty(Domain::Target));
        }
        if source_labels.len() != source_rows {
            let labels = source_labels.len();
            return Err(Error::LabelCount { domain: Domain::Source, labels, rows: source_rows });
        }
        if let Some((row, column, value)) = features.first_non_finite() {
            let (domain, row) =
                if row < source_rows { (Domain::Source, row) } else { (Domain::Target, row - source_rows) };
            return Err(Error::NotFinite { domain, row, column, value });
        }
        Ok(Domains { features, source_rows, source_labels, known: KnownLabels::new() })
    }

    /// The same with target items whose class a person has named. Classes may be ones of which the source has no row.
    pub fn with_known(mut self, known: KnownLabels) -> Result<Self, Error> {
        known.check(self.target_rows(), self.source_labels.classes())?;
        self.known = known;
        Ok(self)
    }

    /// Number of source rows.
    pub fn source_rows(&self) -> usize {
        self.source_rows
    }

    /// Number of target rows.
    pub fn target_rows(&self) -> usize {
        self.features.rows - self.source_rows
    }

    /// The same with more classes, of which the source has no row. Classes that are there already stay.
    pub fn with_classes<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Result<Self, Error> {
        let classes = self.source_labels.classes();
        let mut all = classes.names().to_vec();
        all.extend(names.into_iter().filter(|name| classes.find(name).is_none()).map(str::to_string));
        let ids = self.source_labels.ids().to_vec();
        self.source_labels = Labels::from_ids(Classes::new(all)?, ids)?;
        Ok(self)
    }

    /// Target items whose class a person has named.
    pub fn known(&self) -> &KnownLabels {
        &self.known
    }

    /// Labels of the source rows.
    pub fn source_labels(&self) -> &Labels {
        &self.source_labels
    }

    /// Source rows, then target rows.
    pub fn features(&self) -> &FeatureMatrix {
        &self.features
    }
}

/// Σ weight·row / total, summed in order in f64.
pub(crate) fn weighted_mean<'a>(
    rows: impl Iterator<Item = (&'a [f32], f64)>,
    total: f64,
    columns: usize,
) -> Vec<f32> {
    let mut sum = vec![0f64; columns];
    for (row, weight) in rows {
        for (sum, &value) in sum.iter_mut().zip(row) {
            *sum += weight * f64::from(value);
        }
    }
    sum.into_iter().map(|s| (s / total) as f32).collect()
}

/// Mean of the raw rows of each class that has any (the paper's variant), and those classes.
pub(crate) fn class_centres(
    features: &FeatureMatrix,
    ids: &[ClassId],
    classes: usize,
) -> (FeatureMatrix, Vec<ClassId>) {
    let mut centres = FeatureMatrix::default();
    let mut of = Vec::new();
    for class in 0..classes as ClassId {
        let rows: Vec<usize> = (0..ids.len()).filter(|&row| ids[row] == class).collect();
        if !rows.is_empty() {
            let weighted = rows.iter().map(|&row| (features.row(row), 1.0));
            centres.append_row(&weighted_mean(weighted, rows.len() as f64, features.columns()));
            of.push(class);
        }
    }
    (centres, of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_extreme_values_is_scaled_without_overflow() {
        let mut big = [3e38f32, 0.0, 3e38];
        assert!((normalise(&mut big) - 3e38 * 2f64.sqrt()).abs() < 1e32);
        assert!((big[0] - 0.5f32.sqrt()).abs() < 1e-6);
        let mut tiny = [1e-45f32, 0.0, 0.0];
        normalise(&mut tiny);
        assert_eq!(tiny[0], 1.0);
    }

    #[test]
    fn invalid_rows_are_found_and_taken_out() {
        let bad = [[1.0, f32::NAN], [2.0, 2.0], [f32::INFINITY, 3.0], [4.0, 4.0], [5.0, f32::NEG_INFINITY]];
        let mut m = FeatureMatrix::from_rows(&bad).unwrap();
        assert_eq!(m.invalid_rows(), [0, 2, 4]);
        m.remove_rows(&[0, 2, 4]);
        assert_eq!((m.rows(), m.values()), (2, &[2.0, 2.0, 4.0, 4.0][..]));
    }

    #[test]
    fn replace_head_keeps_the_tail() {
        let mut m = FeatureMatrix::from_rows(&[[1.0], [2.0], [3.0], [4.0]]).unwrap();
        m.replace_head(3, &FeatureMatrix::from_rows(&[[9.0]]).unwrap());
        assert_eq!(m.values(), [9.0, 4.0]);
        assert_eq!(m.rows(), 2);
    }
}
