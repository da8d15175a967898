//! Labels files, read again: what a review exported, or what a run wrote.

use crate::error::{DataError, Problem};
use crate::write::origin;
use serde_json::Value;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;

/// One row of a labels file.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelRow {
    /// The row of the item in the target's files.
    pub row: u64,
    /// Its label.
    pub label: Option<String>,
    /// The confidence of the label, with six decimals.
    pub confidence: f64,
    /// A person gave the label.
    pub is_from_person: bool,
    /// The label was accepted in a review; `None` if the file does not tell.
    pub accepted: Option<bool>,
}

/// Reads a labels file that is CSV or JSON lines.
pub fn read_label_rows(path: &Path) -> Result<Vec<LabelRow>, DataError> {
    let read = match path.extension().and_then(OsStr::to_str) {
        Some("csv") | None => read_csv(path),
        Some("jsonl") => read_json_lines(path),
        _ => Err(Problem::Unsupported("labels are read again from .csv and .jsonl only".into())),
    };
    read.map_err(|problem| DataError::new(path, problem))
}

fn read_csv(path: &Path) -> Result<Vec<LabelRow>, Problem> {
    let damaged = |error: csv::Error| Problem::Damaged { format: "CSV", message: error.to_string() };
    let mut csv = csv::Reader::from_path(path).map_err(damaged)?;
    let header = csv.headers().map_err(damaged)?.clone();
    let mut rows = Vec::new();
    for record in csv.records() {
        let record = record.map_err(damaged)?;
        let fields: HashMap<&str, &str> = header.iter().zip(&record).collect();
        rows.push(label_row(rows.len(), |name| fields.get(name).map(|field| field.to_string()))?);
    }
    Ok(rows)
}

fn read_json_lines(path: &Path) -> Result<Vec<LabelRow>, Problem> {
    let text = std::fs::read_to_string(path)?;
    let mut rows = Vec::new();
    for line in text.lines() {
        let value: Value = serde_json::from_str(line)
            .map_err(|error| Problem::Damaged { format: "JSON lines", message: error.to_string() })?;
        let field = |name: &str| match value.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => Some(String::new()),
            other => Some(other.to_string()),
        };
        rows.push(label_row(rows.len(), field)?);
    }
    Ok(rows)
}

fn label_row(at: usize, field: impl Fn(&str) -> Option<String>) -> Result<LabelRow, Problem> {
    let wrong =
        |name: &str| Problem::Row { row: at, message: format!("no usable `{name}`; is it a labels file?") };
    let confidence: f64 = field("confidence")
        .and_then(|text| text.parse().ok())
        .filter(|confidence| (0.0..=1.0).contains(confidence))
        .ok_or_else(|| wrong("confidence"))?;
    Ok(LabelRow {
        row: field("row").and_then(|text| text.parse().ok()).ok_or_else(|| wrong("row"))?,
        label: Some(field("label").ok_or_else(|| wrong("label"))?).filter(|label| !label.is_empty()),
        confidence: (confidence * 1e6).round_ties_even() / 1e6,
        is_from_person: field("origin").as_deref() == Some(origin(true)),
        accepted: field("accepted").map(|text| text == "true"),
    })
}
