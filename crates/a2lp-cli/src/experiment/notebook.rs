//! The folder of an experiment: its settings, one file per finished cell, and the results. A run that was interrupted
//! goes on where it stopped; a run with other settings does not mix with it.

use crate::output::write_json;
use a2lp_data::write_atomically;
use a2lp_report::Experiment;
use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::cell::{Cell, RefCell};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

pub(crate) struct Notebook {
    folder: PathBuf,
    settings: Value,
    bar: ProgressBar,
    kept: Cell<usize>,
    cells: RefCell<Map<String, Value>>,
}

impl Notebook {
    /// Opens the folder of an experiment of `cells` cells, or makes it.
    pub(crate) fn open(folder: &Path, settings: Value, cells: usize, force: bool) -> anyhow::Result<Self> {
        let file = folder.join("settings.json");
        if file.exists() {
            let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let same = serde_json::from_str::<Value>(&text).is_ok_and(|earlier| earlier == settings);
            let cells = folder.join("cells");
            if force && cells.exists() {
                std::fs::remove_dir_all(&cells).with_context(|| cells.display().to_string())?;
            } else if !force && !same {
                bail!(
                    "{} holds an experiment with other settings or on files that have changed; pass --force to start anew or --out for another folder",
                    folder.display()
                );
            }
        } else if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
            bail!(
                "{} is not empty and holds no experiment; choose another folder with --out",
                folder.display()
            );
        }
        std::fs::create_dir_all(folder.join("cells")).with_context(|| folder.display().to_string())?;
        write_json(&file, true, &settings)?;
        let bar = if std::io::stderr().is_terminal() && cells > 1 {
            let style = ProgressStyle::with_template("[{bar:32}] {pos} of {len}  {msg}  {eta} left");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
            ProgressBar::new(cells as u64).with_style(style)
        } else {
            ProgressBar::hidden()
        };
        let (kept, cells) = (Cell::new(0), RefCell::new(Map::new()));
        Ok(Notebook { folder: folder.to_path_buf(), settings, bar, kept, cells })
    }

    /// What the experiment was asked to do.
    pub(crate) fn settings(&self) -> &Value {
        &self.settings
    }

    /// Where everything goes.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The result of a cell: from its file if it was finished before, else worked out and kept.
    pub(crate) fn cell<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.bar.set_message(name.to_string());
        let path = self.folder.join("cells").join(format!("{}.json", file_name(name)));
        let result =
            match std::fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str(&text).ok()) {
                Some(finished) => {
                    self.kept.set(self.kept.get() + 1);
                    finished
                }
                None => {
                    let result = work().map_err(|error| match error.downcast_ref() {
                        Some(a2lp::Error::Cancelled) => anyhow::anyhow!(
                            "interrupted; finished cells are kept in {}, the same command goes on from there",
                            self.folder.display()
                        ),
                        _ => error.context(name.to_string()),
                    })?;
                    write_json(&path, true, &result)?;
                    result
                }
            };
        self.cells.borrow_mut().insert(name.to_string(), serde_json::to_value(&result)?);
        self.bar.inc(1);
        Ok(result)
    }

    /// Writes `results.json` and `results.csv` and tells where they are.
    pub(crate) fn finish(&self, shown: &Experiment) -> anyhow::Result<String> {
        self.bar.finish_and_clear();
        let results = json!({ "settings": self.settings, "cells": *self.cells.borrow(), "shown": shown });
        write_json(&self.folder.join("results.json"), true, &results)?;
        write_atomically(&self.folder.join("results.csv"), true, |file| {
            let mut csv = csv::Writer::from_writer(file);
            csv.write_record(&shown.header)?;
            shown.rows.iter().try_for_each(|row| csv.write_record(row))?;
            csv.flush()
        })?;
        let kept = match self.kept.get() {
            0 => String::new(),
            kept => format!(" ({kept} cells from an earlier run)"),
        };
        Ok(format!("results.csv and results.json in {}{kept}\n", self.folder.display()))
    }
}

/// Letters, digits and dashes.
fn file_name(cell: &str) -> String {
    let keep = |c: char| if c.is_alphanumeric() || c == '.' || c == '-' { c } else { '_' };
    cell.replace('→', "-to-").chars().map(keep).collect()
}
