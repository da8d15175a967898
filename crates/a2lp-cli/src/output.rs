//! Writing outputs: the files beside the labels, and the checks before any work starts.

pub(crate) use a2lp_data::refuse_existing;
use a2lp_data::{DataError, write_atomically};
use std::path::{Path, PathBuf};

/// The run record of an output.
pub(crate) fn record_path(out: &Path) -> PathBuf {
    beside(out, ".run.json")
}

/// The trace of an output, from which a report is drawn.
pub(crate) fn trace_path(out: &Path) -> PathBuf {
    beside(out, ".trace.json")
}

/// The journal of a review of these labels.
pub(crate) fn journal_path(out: &Path) -> PathBuf {
    beside(out, ".review.jsonl")
}

fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Refuses an output in a folder that does not exist.
pub(crate) fn check_folder(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        anyhow::bail!("{}: no such folder; make it first", folder.display());
    }
    Ok(())
}

/// Pretty JSON with a line break at the end.
pub(crate) fn write_json(path: &Path, force: bool, value: &impl serde::Serialize) -> Result<(), DataError> {
    write_atomically(path, force, |file| {
        serde_json::to_writer_pretty(&mut *file, value)?;
        file.write_all(b"\n")
    })
}

/// JSON without line breaks, for programs to read.
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
