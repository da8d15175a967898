//! The labels file.

use a2lp::{Classes, PseudoLabels};
use a2lp_data::{ArrayFile, DataError, Format, TableColumn, TableFile, write_atomically};
use serde_json::json;
use std::io::Write;
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

/// What a labels file can be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LabelFormat {
    Csv,
    JsonLines,
    Npz,
    /// Parquet or Arrow.
    Table,
    LabelStudio,
}

impl LabelFormat {
    /// By the ending of the name; without one it is CSV.
    fn of(path: &Path) -> anyhow::Result<Self> {
        match path.extension().and_then(|ending| ending.to_str()) {
            None | Some("csv") => Ok(LabelFormat::Csv),
            Some("jsonl") => Ok(LabelFormat::JsonLines),
            Some("npz") => Ok(LabelFormat::Npz),
            Some("json") => Ok(LabelFormat::LabelStudio),
            Some(_) if matches!(Format::of_ending(path), Some(Format::Parquet | Format::Arrow)) => {
                Format::to_write(path)?;
                Ok(LabelFormat::Table)
            }
            Some(_) => anyhow::bail!(
                "{}: labels are written as .csv, .parquet, .arrow, .feather, .jsonl (JSON lines), .npz, or .json (tasks for Label Studio)",
                path.display()
            ),
        }
    }
}

/// Refuses a labels file that could not be written, before there is anything to write.
pub(crate) fn check_labels_path(path: &Path, force: bool) -> anyhow::Result<()> {
    LabelFormat::of(path)?;
    refuse_existing(path, force)
}

/// Refuses before any work when an output is in the way.
pub(crate) fn refuse_existing(path: &Path, force: bool) -> anyhow::Result<()> {
    if path.exists() && !force {
        anyhow::bail!("{} exists already; pass --force to replace it", path.display());
    }
    Ok(())
}

/// The labels of a target on their way into a file, one row per item.
pub(crate) struct LabelTable<'a> {
    pub(crate) classes: &'a Classes,
    pub(crate) labels: &'a PseudoLabels,
    /// Row of each item, where rows were left out.
    pub(crate) rows: Option<&'a [usize]>,
    pub(crate) ids: Option<&'a [String]>,
    /// Views of a consensus that gave each item its label.
    pub(crate) votes: Option<&'a [usize]>,
    /// Write the probability of every class as well?
    pub(crate) probabilities: bool,
}

impl LabelTable<'_> {
    /// Writes it, in the format that the ending of `path` names.
    pub(crate) fn write(&self, path: &Path, force: bool) -> anyhow::Result<()> {
        match LabelFormat::of(path)? {
            LabelFormat::Csv => write_atomically(path, force, |file| self.csv(file))?,
            LabelFormat::JsonLines => write_atomically(path, force, |file| self.json_lines(file))?,
            LabelFormat::Npz => self.write_arrays(path, force)?,
            LabelFormat::Table => self.write_table(path, force)?,
            LabelFormat::LabelStudio => write_compact_json(path, force, &self.tasks())?,
        }
        Ok(())
    }

    fn row(&self, item: usize) -> usize {
        self.rows.map_or(item, |rows| rows[item])
    }

    fn name(&self, item: usize) -> Option<&str> {
        self.labels.labels()[item].map(|class| self.classes.name(class))
    }

    fn csv(&self, file: &mut dyn Write) -> std::io::Result<()> {
        let labels = self.labels;
        let mut csv = csv::Writer::from_writer(file);
        let mut header = vec!["row".to_string()];
        header.extend(self.ids.map(|_| "id".to_string()));
        header.extend(["label", "confidence", "margin", "status"].map(String::from));
        header.extend(self.votes.map(|_| "votes".to_string()));
        if self.probabilities {
            header.extend(self.classes.names().iter().map(|name| format!("p_{name}")));
        }
        csv.write_record(&header)?;
        let mut record = csv::StringRecord::new();
        for item in 0..labels.len() {
            record.clear();
            record.push_field(&self.row(item).to_string());
            if let Some(ids) = self.ids {
                record.push_field(&ids[item]);
            }
            record.push_field(self.name(item).unwrap_or(""));
            record.push_field(&format!("{:.6}", labels.confidence()[item]));
            record.push_field(&format!("{:.6}", labels.margin()[item]));
            record.push_field(labels.status()[item].as_str());
            if let Some(votes) = self.votes {
                record.push_field(&votes[item].to_string());
            }
            if self.probabilities {
                labels.probabilities(item).iter().for_each(|p| record.push_field(&format!("{p:.8}")));
            }
            csv.write_record(&record)?;
        }
        csv.flush()
    }

    fn json_lines(&self, file: &mut dyn Write) -> std::io::Result<()> {
        let labels = self.labels;
        for item in 0..labels.len() {
            let mut line = serde_json::Map::new();
            line.insert("row".into(), self.row(item).into());
            if let Some(ids) = self.ids {
                line.insert("id".into(), ids[item].as_str().into());
            }
            line.insert("label".into(), self.name(item).into());
            line.insert("confidence".into(), labels.confidence()[item].into());
            line.insert("margin".into(), labels.margin()[item].into());
            line.insert("status".into(), labels.status()[item].as_str().into());
            if let Some(votes) = self.votes {
                line.insert("votes".into(), votes[item].into());
            }
            if self.probabilities {
                let named = self.classes.names().iter().zip(labels.probabilities(item));
                let named: serde_json::Map<_, _> = named.map(|(name, &p)| (name.clone(), p.into())).collect();
                line.insert("probabilities".into(), named.into());
            }
            serde_json::to_writer(&mut *file, &line)?;
            file.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Label numbers are positions in `class_names`, -1 where there is none.
    fn write_arrays(&self, path: &Path, force: bool) -> Result<(), DataError> {
        let labels = self.labels;
        let numbers: Vec<i64> = labels.labels().iter().map(|label| label.map_or(-1, i64::from)).collect();
        let status: Vec<&str> = labels.status().iter().map(|status| status.as_str()).collect();
        let (rows, votes, all) = (self.row_numbers(), self.vote_numbers(), self.all_probabilities());
        let mut arrays = ArrayFile::new()
            .integers("labels", &numbers)
            .strings("class_names", self.classes.names())
            .vector("confidence", labels.confidence())
            .vector("margin", labels.margin())
            .strings("status", &status);
        if self.rows.is_some() {
            arrays = arrays.integers("rows", &rows);
        }
        if let Some(ids) = self.ids {
            arrays = arrays.strings("ids", ids);
        }
        if self.votes.is_some() {
            arrays = arrays.integers("votes", &votes);
        }
        if self.probabilities {
            arrays = arrays.matrix("probabilities", labels.len(), self.classes.len(), &all);
        }
        arrays.write(path, force)
    }

    fn write_table(&self, path: &Path, force: bool) -> Result<(), DataError> {
        let labels = self.labels;
        let (rows, votes, all) = (self.row_numbers(), self.vote_numbers(), self.all_probabilities());
        let mut table = TableFile::new().column("row", TableColumn::Integers(&rows));
        if let Some(ids) = self.ids {
            table = table.column("id", TableColumn::Words(ids.iter().map(|id| Some(id.as_str())).collect()));
        }
        let names = (0..labels.len()).map(|item| self.name(item)).collect();
        let status = labels.status().iter().map(|status| Some(status.as_str())).collect();
        table = table
            .column("label", TableColumn::Words(names))
            .column("confidence", TableColumn::Floats(labels.confidence()))
            .column("margin", TableColumn::Floats(labels.margin()))
            .column("status", TableColumn::Words(status));
        if self.votes.is_some() {
            table = table.column("votes", TableColumn::Integers(&votes));
        }
        if self.probabilities {
            for (class, name) in self.classes.names().iter().enumerate() {
                let column = TableColumn::Strided(self.classes.len(), all.get(class..).unwrap_or(&[]));
                table = table.column(&format!("p_{name}"), column);
            }
        }
        table.write(path, force)
    }

    fn row_numbers(&self) -> Vec<i64> {
        (0..self.labels.len()).map(|item| self.row(item) as i64).collect()
    }

    fn vote_numbers(&self) -> Vec<i64> {
        self.votes.unwrap_or_default().iter().map(|&votes| votes as i64).collect()
    }

    /// Item after item, where they are asked for.
    fn all_probabilities(&self) -> Vec<f32> {
        let items = if self.probabilities { self.labels.len() } else { 0 };
        (0..items).flat_map(|item| self.labels.probabilities(item)).copied().collect()
    }

    /// Tasks with what we think of them, for people to check: the least certain first.
    fn tasks(&self) -> Vec<serde_json::Value> {
        let labels = self.labels;
        let mut order: Vec<usize> = (0..labels.len()).collect();
        order.sort_by(|&a, &b| labels.confidence()[a].total_cmp(&labels.confidence()[b]));
        let task = |item: usize| {
            let row = self.row(item);
            let id = self.ids.map_or_else(|| row.to_string(), |ids| ids[item].clone());
            let predictions: Vec<_> = self
                .name(item)
                .map(|name| {
                    json!({
                        "model_version": concat!("a2lp ", env!("CARGO_PKG_VERSION")),
                        "score": labels.confidence()[item],
                        "result": [{
                            "from_name": "label", "to_name": "item", "type": "choices", "value": { "choices": [name] },
                        }],
                    })
                })
                .into_iter()
                .collect();
            let status = labels.status()[item].as_str();
            json!({ "data": { "item": id, "row": row, "status": status }, "predictions": predictions })
        };
        order.into_iter().map(task).collect()
    }
}

/// Pretty JSON with a line break at the end.
pub(crate) fn write_json(path: &Path, force: bool, value: &impl serde::Serialize) -> Result<(), DataError> {
    write_atomically(path, force, |file| {
        serde_json::to_writer_pretty(&mut *file, value)?;
        file.write_all(b"\n")
    })
}
