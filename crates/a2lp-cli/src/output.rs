//! The labels file.

use a2lp::{Classes, PseudoLabels};
use a2lp_data::{DataError, write_atomically};
use std::path::{Path, PathBuf};

/// Where the run record of an output goes.
pub(crate) fn record_path(out: &Path) -> PathBuf {
    beside(out, ".run.json")
}

/// Where the trace of an output goes: what a report draws.
pub(crate) fn trace_path(out: &Path) -> PathBuf {
    beside(out, ".trace.json")
}

fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Without line breaks: for programs to read.
pub(crate) fn write_compact_json(
    path: &Path,
    force: bool,
    value: &impl serde::Serialize,
) -> Result<(), DataError> {
    write_atomically(path, force, |file| {
        serde_json::to_writer(&mut *file, value)?;
        file.write_all(b"\n")
    })
}

/// One row per target item. `votes` are the views of a consensus that gave the item its label.
pub(crate) fn write_labels(
    path: &Path,
    force: bool,
    classes: &Classes,
    pseudo: &PseudoLabels,
    ids: Option<&[String]>,
    votes: Option<&[usize]>,
    probabilities: bool,
) -> Result<(), DataError> {
    write_atomically(path, force, |file| {
        let mut csv = csv::Writer::from_writer(file);
        let mut header = vec!["row".to_string()];
        header.extend(ids.map(|_| "id".to_string()));
        header.extend(["label", "confidence", "margin", "status"].map(String::from));
        header.extend(votes.map(|_| "votes".to_string()));
        if probabilities {
            header.extend(classes.names().iter().map(|name| format!("p_{name}")));
        }
        csv.write_record(&header)?;
        let mut record = csv::StringRecord::new();
        for item in 0..pseudo.len() {
            record.clear();
            record.push_field(&item.to_string());
            if let Some(ids) = ids {
                record.push_field(&ids[item]);
            }
            record.push_field(pseudo.labels()[item].map_or("", |class| classes.name(class)));
            record.push_field(&format!("{:.6}", pseudo.confidence()[item]));
            record.push_field(&format!("{:.6}", pseudo.margin()[item]));
            record.push_field(pseudo.status()[item].as_str());
            if let Some(votes) = votes {
                record.push_field(&votes[item].to_string());
            }
            if probabilities {
                pseudo.probabilities(item).iter().for_each(|p| record.push_field(&format!("{p:.8}")));
            }
            csv.write_record(&record)?;
        }
        csv.flush()
    })
}

/// Pretty JSON with a line break at the end.
pub(crate) fn write_json(path: &Path, force: bool, value: &impl serde::Serialize) -> Result<(), DataError> {
    write_atomically(path, force, |file| {
        serde_json::to_writer_pretty(&mut *file, value)?;
        file.write_all(b"\n")
    })
}
