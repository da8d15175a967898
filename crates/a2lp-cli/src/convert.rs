//! `a2lp convert`: feature files in, one feature file of another format out.

use crate::Outcome;
use crate::args::ConvertArgs;
use crate::output::refuse_existing;
use a2lp::FeatureMatrix;
use a2lp_data::{ArrayFile, Column, FeatureFile, read_ids, read_labels, stack, write_atomically};
use anyhow::{Context, bail};
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &ConvertArgs) -> anyhow::Result<Outcome> {
    let ending = args.out.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    if !["npz", "npy", "safetensors", "csv"].contains(&ending) {
        bail!("{}: features are written as .npz, .npy, .safetensors or .csv", args.out.display());
    }
    refuse_existing(&args.out, args.force)?;
    let mut files = open_all(&args.files)?;
    let columns = files[0].columns();
    let rows: usize = files.iter().map(FeatureFile::rows).sum();
    let labels = match &args.labels {
        Some(path) => Some(read_labels(path)?),
        None => together(&mut files, "labels", |file| {
            let names = file.class_names()?;
            let labels = file.labels()?;
            Ok(match names {
                Some(names) => labels
                    .map(|labels| labels.into_class_names(Some(&names)))
                    .transpose()?
                    .map(Column::Strings),
                None => labels,
            })
        })?,
    };
    let ids = match &args.ids {
        Some(path) => Some(read_ids(path)?),
        None => together(&mut files, "ids", |file| Ok(file.ids()?.map(Column::Strings)))?
            .map(Column::into_strings),
    };
    for (what, count) in [("labels", labels.as_ref().map(Column::len)), ("ids", ids.as_ref().map(Vec::len))] {
        if let Some(count) = count.filter(|&count| count != rows) {
            bail!("{count} {what} for {rows} rows of features; one per row is needed");
        }
    }
    let features = stack(&mut files)?;
    let table = Table { features: &features, labels: labels.as_ref(), ids: ids.as_deref() };
    if ending == "csv" {
        table.write_csv(&args.out, args.force)?
    } else {
        table.write_arrays(&args.out, args.force)?
    }
    let with = |what: &str, there: bool| if there { format!(", {what}") } else { String::new() };
    writeln!(
        std::io::stdout(),
        "{rows} rows of {columns} features{}{} in {}",
        with("labels", labels.is_some()),
        with("ids", ids.is_some()),
        args.out.display()
    )?;
    Ok(Outcome::Done)
}

/// Opens files whose features belong together: of one width. There is at least one.
pub(crate) fn open_all(paths: &[PathBuf]) -> anyhow::Result<Vec<FeatureFile>> {
    let files = paths.iter().map(|path| FeatureFile::open(path)).collect::<Result<Vec<_>, _>>()?;
    let columns = files[0].columns();
    if let Some(other) = files.iter().find(|file| file.columns() != columns) {
        bail!(
            "{} has {columns} columns, {} has {}; all files need features of the same extractor",
            paths[0].display(),
            other.path().display(),
            other.columns()
        );
    }
    Ok(files)
}

/// A column of all files, one below the other; numbers only where all are numbers.
fn together(
    files: &mut [FeatureFile],
    what: &str,
    column: impl Fn(&mut FeatureFile) -> anyhow::Result<Option<Column>>,
) -> anyhow::Result<Option<Column>> {
    let mut parts = Vec::new();
    for file in files.iter_mut() {
        let part = column(file).with_context(|| file.path().display().to_string())?;
        parts.push((file.path().to_path_buf(), part));
    }
    if parts.iter().all(|(_, part)| part.is_none()) {
        return Ok(None);
    }
    if let Some((path, _)) = parts.iter().find(|(_, part)| part.is_none()) {
        bail!("{} has no {what}, but another file has; give them with --{what}", path.display());
    }
    let parts: Vec<Column> = parts.into_iter().filter_map(|(_, part)| part).collect();
    let numbers = |part: &Column| match part {
        Column::Integers(values) => Some(values.clone()),
        Column::Strings(_) => None,
    };
    Ok(Some(match parts.iter().map(numbers).collect::<Option<Vec<_>>>() {
        Some(numbers) => Column::Integers(numbers.concat()),
        None => Column::Strings(parts.into_iter().flat_map(Column::into_strings).collect()),
    }))
}

/// Features on their way into a file.
struct Table<'a> {
    features: &'a FeatureMatrix,
    labels: Option<&'a Column>,
    ids: Option<&'a [String]>,
}

impl Table<'_> {
    fn write_arrays(&self, path: &Path, force: bool) -> anyhow::Result<()> {
        let (rows, columns) = (self.features.rows(), self.features.columns());
        let mut arrays = ArrayFile::new().matrix("features", rows, columns, self.features.values());
        match self.labels {
            Some(Column::Integers(values)) => arrays = arrays.integers("labels", values),
            Some(Column::Strings(values)) => arrays = arrays.strings("labels", values),
            None => {}
        }
        if let Some(ids) = self.ids {
            arrays = arrays.strings("ids", ids);
        }
        Ok(arrays.write(path, force)?)
    }

    /// Numbers are written so that reading them gives the same bits.
    fn write_csv(&self, path: &Path, force: bool) -> anyhow::Result<()> {
        let labels = self.labels.cloned().map(Column::into_strings);
        write_atomically(path, force, |file| {
            let mut csv = csv::Writer::from_writer(file);
            let header = self.ids.map(|_| "id".to_string()).into_iter();
            let header = header.chain(labels.as_ref().map(|_| "label".to_string()));
            csv.write_record(header.chain((0..self.features.columns()).map(|at| format!("f{at}"))))?;
            let mut record = csv::StringRecord::new();
            for row in 0..self.features.rows() {
                record.clear();
                self.ids.iter().for_each(|ids| record.push_field(&ids[row]));
                labels.iter().for_each(|labels| record.push_field(&labels[row]));
                self.features.row(row).iter().for_each(|value| record.push_field(&value.to_string()));
                csv.write_record(&record)?;
            }
            csv.flush()
        })?;
        Ok(())
    }
}
