//! Pictures and texts of the items: from a folder, from the target file, or from the paths that the ids are.

use super::past_run::PastRun;
use crate::args::ReviewArgs;
use a2lp_data::{FieldNames, read_all_pictures, read_ids};
use a2lp_review::{Looks, Pictures, Task, find_pictures};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// Most bytes of a file whose images are kept in memory.
const MAX_ARRAY_BYTES: u64 = 2 << 30;

pub(super) fn find(args: &ReviewArgs, run: &PastRun) -> anyhow::Result<Looks> {
    let texts = args.text.as_deref().map(|text| read_texts(text, &run.task)).transpose()?;
    Ok(Looks::new(pictures(args, run)?, texts))
}

fn pictures(args: &ReviewArgs, run: &PastRun) -> anyhow::Result<Pictures> {
    let task = &run.task;
    let items = task.domains.target_rows();
    if let Some(folder) = &args.images {
        let names = (0..items).map(|item| (task.row(item), task.ids.as_ref().map(|ids| ids[item].clone())));
        let files = find_pictures(folder, names).with_context(|| folder.display().to_string())?;
        let found = files.iter().flatten().count();
        match found {
            0 => bail!("{}: no file is named like an id or a row of the target", folder.display()),
            _ if found < items => {
                eprintln!("note: {} has pictures of {found} of {items} items", folder.display())
            }
            _ => {}
        }
        return Ok(Pictures::Files(files));
    }
    if let [target] = &run.target[..]
        && std::fs::metadata(target).is_ok_and(|file| file.len() <= MAX_ARRAY_BYTES)
        && let Some(mut all) = read_all_pictures(target).unwrap_or(None)
    {
        if let Some(rows) = &task.rows {
            all = rows.iter().filter_map(|&row| all.get(row).cloned()).collect();
        }
        if all.len() == items {
            return Ok(Pictures::Pixels(all));
        }
    }
    let ids = task.ids.as_deref().unwrap_or_default();
    match ids.first().is_some_and(|id| Path::new(id).is_file()) {
        true => Ok(Pictures::Files(ids.iter().map(|id| Some(PathBuf::from(id))).collect())),
        false => Ok(Pictures::None),
    }
}

/// A text for every row of the target.
fn read_texts(text: &str, task: &Task) -> anyhow::Result<Vec<String>> {
    let Some((file, column)) = text.rsplit_once(':') else {
        bail!("--text {text}: a file and a column are needed, for example reviews.csv:text");
    };
    let names = FieldNames { ids: Some(column.into()), ..FieldNames::default() };
    let all = read_ids(Path::new(file), &names)?;
    let items = task.domains.target_rows();
    let texts: Vec<String> = match &task.rows {
        Some(rows) => rows.iter().filter_map(|&row| all.get(row).cloned()).collect(),
        None => all,
    };
    if texts.len() != items {
        bail!("{file} has {} texts, but the target has {items} items; one per row is needed", texts.len());
    }
    Ok(texts)
}
