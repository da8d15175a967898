//! Reading the input of `a2lp label`: shapes and labels first, features when the plan allows it.

use crate::args::LabelArgs;
use a2lp::evaluation::TargetTruth;
use a2lp::{CheckedParameters, Classes, Domains, FeatureMatrix, Labels, Shape};
use a2lp_data::{FeatureFile, read_class_names, read_ids, read_known, read_labels, stack, with_known_items};
use a2lp_report::record::{Input, Inputs};
use anyhow::{Context, anyhow, bail};
use std::path::{Path, PathBuf};

/// The input of a run, features still on disk.
pub(super) struct Opened {
    pub(super) source: FeatureFile,
    pub(super) target: FeatureFile,
    labels: Labels,
    labels_path: PathBuf,
    truth: Option<TargetTruth>,
    ids: Option<Vec<String>>,
}

/// The input of a run in memory, with the truth kept apart.
pub(super) struct Loaded {
    pub(super) domains: Domains,
    pub(super) truth: Option<TargetTruth>,
    pub(super) ids: Option<Vec<String>>,
    pub(super) inputs: Inputs,
}

impl Loaded {
    /// The rows of the target's files that the items are, where they are not simply all of them.
    pub(super) fn target_rows(&self) -> Option<Vec<usize>> {
        let Input { rows, skipped_rows, .. } = &self.inputs.target;
        let kept = || (0..*rows).filter(|row| skipped_rows.binary_search(row).is_err()).collect();
        (!skipped_rows.is_empty()).then(kept)
    }

    /// The same with labels that a person gave to target items.
    fn told(mut self, path: &Path) -> anyhow::Result<Self> {
        let (known, rows) = (read_known(path)?, self.target_rows());
        let told = with_known_items(self.domains, known, rows.as_deref(), self.ids.as_deref());
        let (domains, new) = told.map_err(|message| anyhow!("{}: {message}", path.display()))?;
        let count = domains.known().len();
        eprintln!("note: {}: {count} target items have a known label", path.display());
        if let [first, ..] = &new[..] {
            eprintln!("note: {} of their classes are new to the source ({first}…)", new.len());
        }
        self.truth = self.truth.map(|truth| truth.within(domains.source_labels().classes()));
        self.domains = domains;
        Ok(self)
    }
}

/// Source and target with features still on disk, and the labels of the source.
pub(super) struct LabelledSource {
    pub(super) source: FeatureFile,
    pub(super) target: FeatureFile,
    pub(super) labels: Labels,
    labels_path: PathBuf,
    names: Option<Vec<String>>,
}

/// Opens what every run needs.
pub(super) fn open_features(args: &LabelArgs) -> anyhow::Result<LabelledSource> {
    let fields = args.columns.names();
    let from_stdin = args.source.iter().chain(&args.target).filter(|path| *path == Path::new("-"));
    if from_stdin.count() > 1 {
        bail!("only one set of features can come from standard input");
    }
    let mut source = FeatureFile::open_set(&args.source, &fields)?;
    let target = FeatureFile::open_set(&args.target, &fields)?;
    if source.columns() != target.columns() {
        bail!(
            "{} has {} columns, {} has {}; both domains need features of the same extractor",
            source.path().display(),
            source.columns(),
            target.path().display(),
            target.columns()
        );
    }
    refuse_empty(&source)?;
    refuse_empty(&target)?;

    let names = match &args.class_names {
        Some(path) => Some(read_class_names(path)?),
        None => source.class_names()?,
    };
    let labels_path = args.source_labels.clone().unwrap_or_else(|| source.path().to_path_buf());
    let labels = match &args.source_labels {
        Some(path) => read_labels(path, &fields)?,
        None => source.labels()?.with_context(|| {
            format!("{} holds no labels; give them with --source-labels", labels_path.display())
        })?,
    };
    check_count(&labels_path, labels.len(), "labels", &source)?;
    let labels =
        labels.into_class_names(names.as_deref()).with_context(|| labels_path.display().to_string())?;
    let labels = match &names {
        Some(names) => Labels::within(Classes::new(names.clone())?, &labels)?,
        None => Labels::new(&labels),
    };
    Ok(LabelledSource { source, target, labels, labels_path, names })
}

pub(super) fn open(args: &LabelArgs) -> anyhow::Result<Opened> {
    let fields = args.columns.names();
    let LabelledSource { source, mut target, labels, labels_path, names } = open_features(args)?;
    let ids = match &args.target_ids {
        Some(path) => {
            let ids = read_ids(path, &fields)?;
            check_count(path, ids.len(), "ids", &target)?;
            Some(ids)
        }
        None => target.ids()?,
    };
    let truth = match &args.eval_labels {
        Some(path) => {
            let truth = read_labels(path, &fields)?;
            check_count(path, truth.len(), "labels", &target)?;
            Some(TargetTruth::new(labels.classes(), &truth.into_known_names(names.as_deref())))
        }
        None => None,
    };
    if let Some(truth) = &truth {
        note_unknown_classes(truth);
    }
    Ok(Opened { source, target, labels, labels_path, truth, ids })
}

/// Refuses a file without rows or without columns.
pub(crate) fn refuse_empty(file: &FeatureFile) -> anyhow::Result<()> {
    let (rows, columns) = (file.rows(), file.columns());
    if rows == 0 || columns == 0 {
        bail!("{}: {rows} rows of {columns} features; at least one of each is needed", file.path().display());
    }
    Ok(())
}

/// A word on classes that only the truth has.
pub(crate) fn note_unknown_classes(truth: &TargetTruth) {
    if let [first, ..] = truth.unknown_classes() {
        let count = truth.unknown_classes().len();
        eprintln!(
            "note: --eval-labels has {count} classes that the source lacks ({first}…); their items count as wrong"
        );
    }
}

impl Opened {
    pub(super) fn shape(&self) -> Shape {
        Shape {
            source_rows: self.source.rows(),
            target_rows: self.target.rows(),
            columns: self.source.columns(),
            classes: self.labels.classes().len(),
        }
    }

    /// Reads the features.
    pub(super) fn load(self, args: &LabelArgs, parameters: &CheckedParameters) -> anyhow::Result<Loaded> {
        let Opened { source, target, mut labels, labels_path, mut truth, mut ids } = self;
        let (mut source_input, mut target_input) = (input(&source, args), input(&target, args));
        let mut source_rows = source.rows();
        let mut files = [source, target];
        let mut features = stack(&mut files)?;
        // Before rows are left out, so that row numbers match the files.
        if parameters.similarity().scales_rows() {
            note_zeros(&features, source_rows, &files);
        }
        let invalid = features.invalid_rows();
        if !invalid.is_empty() {
            check_may_skip(args, &features, &invalid, source_rows, &files)?;
            let split = invalid.partition_point(|&row| row < source_rows);
            source_input.skipped_rows = invalid[..split].to_vec();
            target_input.skipped_rows = invalid[split..].iter().map(|row| row - source_rows).collect();
            features.remove_rows(&invalid);
            source_rows -= split;
            labels = labels.without_rows(&source_input.skipped_rows);
            truth = truth.map(|truth| truth.without_rows(&target_input.skipped_rows));
            if let Some(ids) = &mut ids {
                a2lp::remove_rows(ids, &target_input.skipped_rows);
            }
            note_skipped(&source_input);
            note_skipped(&target_input);
        }
        let inputs = Inputs { source: source_input, source_labels: labels_path, target: target_input };
        let domains = Domains::stacked(features, source_rows, labels)?;
        let mut loaded = Loaded { domains, truth, ids, inputs };
        if let Some(path) = &args.known {
            loaded = loaded.told(path)?;
        }
        Ok(loaded)
    }
}

/// Refuses rows with NaN or infinities unless they may be left out.
fn check_may_skip(
    args: &LabelArgs,
    features: &FeatureMatrix,
    invalid: &[usize],
    source_rows: usize,
    files: &[FeatureFile; 2],
) -> anyhow::Result<()> {
    let row = invalid[0];
    if !args.skip_invalid {
        let (path, at) = match row.checked_sub(source_rows) {
            None => files[0].locate(row),
            Some(row) => files[1].locate(row),
        };
        let column = features.row(row).iter().position(|value| !value.is_finite()).unwrap_or(0);
        let others = match invalid.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more rows hold NaN or infinities"),
        };
        bail!(
            "{}: row {at}, column {column} is {}{others}; repair such rows, or leave them out with --skip-invalid",
            path.display(),
            features.row(row)[column],
        );
    }
    if args.graph.is_some() {
        bail!(
            "--graph is over all rows, so none can be left out; repair the features, or search anew without --graph"
        );
    }
    Ok(())
}

/// Names rows of zeros: they have no direction, so the cosine similarity finds no neighbours for them.
fn note_zeros(features: &FeatureMatrix, source_rows: usize, files: &[FeatureFile; 2]) {
    let zero = |row: &usize| features.row(*row).iter().all(|&value| value == 0.0);
    let zeros: Vec<usize> = (0..features.rows()).filter(zero).collect();
    let split = zeros.partition_point(|&row| row < source_rows);
    for (rows, file, first) in [(&zeros[..split], &files[0], 0), (&zeros[split..], &files[1], source_rows)] {
        if let Some(&row) = rows.first() {
            let (path, row) = file.locate(row - first);
            eprintln!(
                "note: {}: {} rows are all zeros, the first is row {row}; by cosine similarity they have no neighbours",
                path.display(),
                rows.len()
            );
        }
    }
}

/// Lists rows that were left out, at most twenty of them.
fn note_skipped(input: &Input) {
    const SHOWN: usize = 20;
    let rows = &input.skipped_rows;
    if rows.is_empty() {
        return;
    }
    let shown: Vec<String> = rows.iter().take(SHOWN).map(usize::to_string).collect();
    let more = if rows.len() > SHOWN { ", … (all are in the run record)" } else { "" };
    eprintln!(
        "note: {}: {} of {} rows hold NaN or infinities and are left out: {}{more}",
        input.path.display(),
        rows.len(),
        input.rows,
        shown.join(", ")
    );
}

fn input(file: &FeatureFile, args: &LabelArgs) -> Input {
    let mut paths = file.paths().map(Path::to_path_buf);
    Input {
        path: paths.next().unwrap_or_default(),
        rows: file.rows(),
        columns: file.columns(),
        element_type: file.element().to_string(),
        feature_column: args.columns.names().features,
        more_files: paths.collect(),
        skipped_rows: Vec::new(),
    }
}

fn check_count(path: &Path, count: usize, what: &str, features: &FeatureFile) -> anyhow::Result<()> {
    if count != features.rows() {
        bail!(
            "{} has {count} {what}, but {} has {} rows; one per row is needed",
            path.display(),
            features.path().display(),
            features.rows()
        );
    }
    Ok(())
}
