//! `a2lp inspect`: what is in a file, before anything is done with it.

use crate::Outcome;
use crate::args::InspectArgs;
use crate::table::render;
use a2lp::{FeatureMatrix, Labels};
use a2lp_data::{Column, FeatureFile, FieldNames, Format, Problem, read_labels};
use serde::Serialize;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

#[derive(Serialize)]
struct Report {
    file: String,
    features: Option<Features>,
    labels: Option<LabelCounts>,
}

#[derive(Serialize)]
struct Features {
    rows: usize,
    columns: usize,
    element_type: String,
    /// Smallest, mean and largest length of a row; rows with NaN or infinities apart.
    norms: [f64; 3],
    negative_values: usize,
    nan_values: usize,
    infinite_values: usize,
    /// The first rows that hold NaN or infinities.
    first_invalid_rows: Vec<usize>,
    invalid_rows: usize,
    zero_rows: usize,
    /// Rows equal to an earlier one.
    duplicate_rows: usize,
    /// The first such row and the one it repeats.
    first_duplicate: Option<[usize; 2]>,
}

#[derive(Serialize)]
struct LabelCounts {
    rows: usize,
    classes: usize,
    counts: Vec<(String, usize)>,
}

pub(crate) fn run(args: &InspectArgs) -> anyhow::Result<Outcome> {
    let mut report = Report { file: args.file.display().to_string(), features: None, labels: None };
    let names = args.columns.names();
    let is_features = match FeatureFile::open_set(std::slice::from_ref(&args.file), &names) {
        Ok(mut file) if file.columns() > 0 && !is_label_column(&args.file, &file, &names)? => {
            let labels = file.labels()?;
            let classes = file.class_names()?;
            report.labels = labels.map(|l| count(l, classes.as_deref())).transpose()?;
            let element_type = file.element().to_string();
            report.features = Some(measure(&file.read()?, element_type));
            true
        }
        Ok(_) => false,
        Err(error) => match error.problem {
            // A vector, a list of words: no features, so perhaps labels.
            Problem::Dimensions { .. }
            | Problem::ElementType(_)
            | Problem::UnknownFormat
            | Problem::Archive(_)
            | Problem::Table(_) => false,
            _ => return Err(error.into()),
        },
    };
    if !is_features {
        report.labels = Some(count(read_labels(&args.file, &names)?, None)?);
    }
    let text = if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { describe(&report) };
    std::io::stdout().write_all(text.as_bytes())?;
    let trouble = report.features.is_some_and(|f| f.invalid_rows > 0);
    Ok(if trouble { Outcome::LookAtIt } else { Outcome::Done })
}

/// A table of a single column that is not made of fractions is taken for labels.
fn is_label_column(path: &Path, file: &FeatureFile, names: &FieldNames) -> anyhow::Result<bool> {
    if path == Path::new("-") || file.columns() != 1 || Format::detect(file.path())? != Format::Csv {
        return Ok(false);
    }
    Ok(match read_labels(path, names)? {
        Column::Integers(_) => true,
        Column::Strings(values) => {
            values.iter().all(|v| v.parse::<i64>().is_ok() || v.parse::<f64>().is_err())
        }
    })
}

fn count(labels: Column, names: Option<&[String]>) -> anyhow::Result<LabelCounts> {
    let labels = Labels::new(&labels.into_class_names(names)?);
    let counts: Vec<(String, usize)> =
        labels.classes().names().iter().cloned().zip(labels.counts()).collect();
    Ok(LabelCounts { rows: labels.len(), classes: counts.len(), counts })
}

fn measure(matrix: &FeatureMatrix, element_type: String) -> Features {
    let mut features = Features {
        rows: matrix.rows(),
        columns: matrix.columns(),
        element_type,
        norms: [f64::INFINITY, 0.0, 0.0],
        negative_values: 0,
        nan_values: 0,
        infinite_values: 0,
        first_invalid_rows: Vec::new(),
        invalid_rows: 0,
        zero_rows: 0,
        duplicate_rows: 0,
        first_duplicate: None,
    };
    let mut seen: HashMap<u64, Vec<usize>> = HashMap::new();
    for at in 0..matrix.rows() {
        let row = matrix.row(at);
        features.negative_values += row.iter().filter(|v| **v < 0.0).count();
        features.nan_values += row.iter().filter(|v| v.is_nan()).count();
        features.infinite_values += row.iter().filter(|v| v.is_infinite()).count();
        if row.iter().any(|v| !v.is_finite()) {
            features.invalid_rows += 1;
            if features.first_invalid_rows.len() < 5 {
                features.first_invalid_rows.push(at);
            }
            continue;
        }
        let norm = row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
        features.norms[0] = features.norms[0].min(norm);
        features.norms[1] += norm;
        features.norms[2] = features.norms[2].max(norm);
        features.zero_rows += usize::from(norm == 0.0);
        let same_hash = seen.entry(hash(row)).or_default();
        if let Some(&first) = same_hash.iter().find(|&&earlier| matrix.row(earlier) == row) {
            features.duplicate_rows += 1;
            features.first_duplicate.get_or_insert([at, first]);
        } else {
            same_hash.push(at);
        }
    }
    let valid = matrix.rows() - features.invalid_rows;
    features.norms[1] /= valid.max(1) as f64;
    if valid == 0 {
        features.norms = [0.0; 3];
    }
    features
}

/// FNV-1a over the bits of a row; −0 counts as 0, as it does in comparisons.
fn hash(row: &[f32]) -> u64 {
    row.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &value| {
        (hash ^ u64::from((value + 0.0).to_bits())).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn describe(report: &Report) -> String {
    let mut text = format!("{}\n", report.file);
    if let Some(f) = &report.features {
        text += &format!("  features    {} rows × {} columns, {}\n", f.rows, f.columns, f.element_type);
        text += &format!("  row length  {:.4} to {:.4}, mean {:.4}\n", f.norms[0], f.norms[2], f.norms[1]);
        text += &format!("  negative    {} values\n", f.negative_values);
        let rows: Vec<String> = f.first_invalid_rows.iter().map(usize::to_string).collect();
        let more = if f.invalid_rows > rows.len() { ", …" } else { "" };
        text += &format!("  NaN or ±Inf {} values", f.nan_values + f.infinite_values);
        if f.invalid_rows > 0 {
            text += &format!(" in {} rows: {}{more}", f.invalid_rows, rows.join(", "));
        }
        text += &format!("\n  zero rows   {}\n  duplicates  {}", f.zero_rows, f.duplicate_rows);
        if let Some([row, first]) = f.first_duplicate {
            text += &format!(" (row {row} repeats row {first})");
        }
        text += "\n";
    }
    if let Some(labels) = &report.labels {
        text += &format!("  labels      {} rows, {} classes\n\n", labels.rows, labels.classes);
        let shown = labels.counts.len().min(100);
        let rows: Vec<Vec<String>> = labels.counts[..shown]
            .iter()
            .map(|(name, count)| vec![name.clone(), count.to_string()])
            .collect();
        text += &render(&["class", "rows"], &rows);
        if labels.counts.len() > shown {
            text += &format!("  … and {} more (--json lists all)\n", labels.counts.len() - shown);
        }
    }
    text
}
