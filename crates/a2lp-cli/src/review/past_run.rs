//! The run that made labels: found by its record, to be run again.

use crate::args::{Cli, Command, LabelArgs};
use crate::config;
use crate::label::{self, Prepared};
use crate::report::{read_record, title};
use a2lp::Labelling;
use a2lp_data::read_graph;
use a2lp_report::RunRecord;
use a2lp_review::{Task, fingerprint};
use anyhow::{Context, bail};
use clap::Parser;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run of `a2lp label`, with its data.
pub(super) struct PastRun {
    pub(super) task: Arc<Task>,
    /// The files of the target.
    pub(super) target: Vec<PathBuf>,
    record: RunRecord,
}

impl PastRun {
    /// Reads the record beside the labels, and the files that it names.
    pub(super) fn read(labels: &Path, threads: usize) -> anyhow::Result<Self> {
        let record = read_record(labels)?;
        let bytes = std::fs::read(labels).with_context(|| labels.display().to_string())?;
        let args = label_args(&record, labels)?;
        if args.source.iter().chain(&args.target).any(|path| path == Path::new("-")) {
            bail!(
                "the features came from standard input and are gone; a review needs the features of the run"
            );
        }
        let graph = args.graph.as_deref().map(read_graph).transpose()?;
        let Prepared { domains, parameters, rows, ids } =
            label::prepare_again(&args, threads).context("a review needs the data of the run")?;
        let task = Task {
            domains,
            parameters,
            graph,
            rows,
            ids,
            title: title(labels, record.inputs.as_ref()),
            fingerprint: fingerprint([bytes]),
        };
        Ok(PastRun { task: Arc::new(task), target: args.target, record })
    }

    /// Refuses a run that gives other labels than the file has, because its data changed.
    pub(super) fn check_same(&self, labelling: &Labelling) -> anyhow::Result<()> {
        let (now, then) = (&labelling.pseudo_labels, &self.record.summary);
        let last = self.record.rounds.last().map(|round| &round.class_counts);
        let is_same = now.len() == then.items
            && (now.mean_confidence() - then.mean_confidence).abs() < 1e-9
            && last == labelling.rounds.last().map(|round| &round.class_counts);
        if !is_same {
            bail!(
                "{} was made from other data or by another version: the run gives other labels now. Run `a2lp label` again",
                self.record.summary.out.display()
            );
        }
        Ok(())
    }
}

/// The options of the run, by the command line in its record. Its relative paths are meant from the folder that it ran in.
fn label_args(record: &RunRecord, labels: &Path) -> anyhow::Result<LabelArgs> {
    let folder = folder_of_run(labels, &record.summary.out);
    let words: Vec<OsString> = record.command.iter().map(OsString::from).collect();
    let is_label = words.get(1).is_some_and(|word| word == "label");
    if !is_label {
        bail!("{}: only labels of `a2lp label` can be reviewed", labels.display());
    }
    let parsed = config::expand(words).and_then(|words| Ok(Cli::try_parse_from(words)?));
    let parsed = parsed.with_context(|| format!("{}: its command cannot be run again", labels.display()))?;
    let Command::Label(mut args) = parsed.command else {
        bail!("{}: only labels of `a2lp label` can be reviewed", labels.display());
    };
    // What is true of the target is not for whoever reviews it.
    args.eval_labels = None;
    let LabelArgs { source, source_labels, target, target_ids, class_names, graph, known, .. } = &mut *args;
    let single = [source_labels, target_ids, class_names, graph, known].into_iter().flatten();
    for path in source.iter_mut().chain(target).chain(single) {
        if path.is_relative() && *path != Path::new("-") {
            *path = folder.join(&*path);
        }
    }
    Ok(*args)
}

/// The folder that a run ran in: the labels are at `out`, seen from there.
fn folder_of_run(labels: &Path, out: &Path) -> PathBuf {
    let mut folder = labels.to_path_buf();
    for part in out.components().rev() {
        if folder.components().next_back() != Some(part) || !folder.pop() {
            return PathBuf::new();
        }
    }
    folder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_meant_from_where_the_run_ran() {
        let folder = |labels: &str, out: &str| folder_of_run(Path::new(labels), Path::new(out));
        assert_eq!(folder("labels.csv", "labels.csv"), Path::new(""));
        assert_eq!(folder("/data/run/labels.csv", "labels.csv"), Path::new("/data/run"));
        assert_eq!(folder("/data/out/labels.csv", "out/labels.csv"), Path::new("/data"));
        assert_eq!(folder("/elsewhere/labels.csv", "out/labels.csv"), Path::new(""));
    }
}
