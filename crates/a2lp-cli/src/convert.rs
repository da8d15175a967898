//! `a2lp convert`: feature files in, one feature file of another format out.

use crate::Outcome;
use crate::args::ConvertArgs;
use crate::output::refuse_existing;
use a2lp_data::{Column, FeatureFile, Format, LabelledFeatures, read_ids, read_labels};
use anyhow::{Context, bail};
use std::io::Write;

pub(crate) fn run(args: &ConvertArgs) -> anyhow::Result<Outcome> {
    Format::to_write(&args.out)?;
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
    let table = LabelledFeatures { features: &features, labels: labels.as_ref(), ids: ids.as_deref() };
    table.write(&args.out, args.force)?;
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
