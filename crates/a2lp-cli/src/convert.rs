//! `a2lp convert`: feature files in, one feature file of another format out.

use crate::Outcome;
use crate::args::ConvertArgs;
use crate::output::refuse_existing;
use a2lp::FeatureMatrix;
use a2lp_data::{
    ArrayFile, Column, FeatureFile, Format, TableColumn, TableFile, read_ids, read_labels, write_atomically,
};
use anyhow::{Context, bail};
use std::io::Write;
use std::path::Path;

pub(crate) fn run(args: &ConvertArgs) -> anyhow::Result<Outcome> {
    let format = Format::to_write(&args.out)?;
    refuse_existing(&args.out, args.force)?;
    let names = args.columns.names();
    let mut file = FeatureFile::open_set(&args.files, &names)?;
    let (rows, columns) = (file.rows(), file.columns());
    let labels = match &args.labels {
        Some(path) => Some(read_labels(path, &names)?),
        None => match (file.labels()?, file.class_names()?) {
            (Some(labels), Some(classes)) => {
                let named = labels.into_class_names(Some(&classes));
                Some(Column::Strings(named.with_context(|| file.path().display().to_string())?))
            }
            (labels, _) => labels,
        },
    };
    let ids = match &args.ids {
        Some(path) => Some(read_ids(path, &names)?),
        None => file.ids()?,
    };
    for (what, count) in [("labels", labels.as_ref().map(Column::len)), ("ids", ids.as_ref().map(Vec::len))] {
        if let Some(count) = count.filter(|&count| count != rows) {
            bail!("{count} {what} for {rows} rows of features; one per row is needed");
        }
    }
    let features = file.read()?;
    let table = Table { features: &features, labels: labels.as_ref(), ids: ids.as_deref() };
    match format {
        Format::Csv => table.write_csv(&args.out, args.force)?,
        Format::Parquet | Format::Arrow => table.write_table(&args.out, args.force)?,
        _ => table.write_arrays(&args.out, args.force)?,
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

    fn write_table(&self, path: &Path, force: bool) -> anyhow::Result<()> {
        fn words(words: &[String]) -> Vec<Option<&str>> {
            words.iter().map(|word| Some(word.as_str())).collect()
        }
        let mut table = TableFile::new();
        if let Some(ids) = self.ids {
            table = table.column("id", TableColumn::Words(words(ids)));
        }
        match self.labels {
            Some(Column::Integers(values)) => table = table.column("label", TableColumn::Integers(values)),
            Some(Column::Strings(values)) => table = table.column("label", TableColumn::Words(words(values))),
            None => {}
        }
        let vectors = TableColumn::Vectors(self.features.columns(), self.features.values());
        Ok(table.column("features", vectors).write(path, force)?)
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
