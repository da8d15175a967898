//! A labels file: one row per target item, in the format that its ending names.
//!
//! [`LabelTable::columns`] is the one list of columns. Every format writes that list.

use super::{ArrayFile, TableColumn, TableFile, refuse_existing, write_atomically};
use crate::error::{DataError, Problem};
use crate::formats::Format;
use a2lp::{ClassId, Classes, Labelling, PseudoLabels};
use serde_json::json;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

/// The formats of a labels file.
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
    fn of(path: &Path) -> Result<Self, DataError> {
        let Some(ending) = path.extension().and_then(OsStr::to_str) else { return Ok(LabelFormat::Csv) };
        match (ending, Format::of_ending(path)) {
            ("jsonl", _) => Ok(LabelFormat::JsonLines),
            ("json", _) => Ok(LabelFormat::LabelStudio),
            (_, Some(Format::Csv)) => Ok(LabelFormat::Csv),
            (_, Some(Format::Npz)) => Ok(LabelFormat::Npz),
            (_, Some(format)) if format.is_table() => {
                Format::to_write(path)?;
                Ok(LabelFormat::Table)
            }
            _ => Err(DataError::new(
                path,
                Problem::Unsupported(format!("labels are written as {}", label_endings())),
            )),
        }
    }
}

/// The endings of labels files, for messages and help texts.
pub fn label_endings() -> String {
    let [csv, parquet, arrow, npz] =
        [Format::Csv, Format::Parquet, Format::Arrow, Format::Npz].map(Format::endings);
    format!("{csv}, {parquet}, {arrow}, {npz}, .jsonl (JSON lines) or .json (tasks for Label Studio)")
}

/// Where a label comes from, in files.
pub fn origin(is_from_person: bool) -> &'static str {
    if is_from_person { "person" } else { "propagated" }
}

/// A class chosen, as Label Studio has it.
pub fn choice(name: &str) -> serde_json::Value {
    json!({ "from_name": "label", "to_name": "item", "type": "choices", "value": { "choices": [name] } })
}

/// Refuses a labels file that could not be written, before there is anything to write.
pub fn check_labels_path(path: &Path, force: bool) -> Result<(), DataError> {
    LabelFormat::of(path)?;
    refuse_existing(path, force)
}

/// The labels of a target, to be written into a file.
pub struct LabelTable<'a> {
    /// The class list.
    pub classes: &'a Classes,
    /// The labels.
    pub labels: &'a PseudoLabels,
    /// Row of each item, where rows were left out.
    pub rows: Option<&'a [usize]>,
    /// Ids of the items.
    pub ids: Option<&'a [String]>,
    /// Views of a consensus that gave each item its label.
    pub votes: Option<Vec<usize>>,
    /// How much of the source points at each item.
    pub reach: Option<&'a [f32]>,
    /// Classes that unknown items look most like.
    pub nearest_labels: Option<&'a [Option<ClassId>]>,
    /// Where each label comes from: `propagated` or `person`.
    pub origin: Option<Vec<&'static str>>,
    /// Was the label of each item accepted in a review?
    pub accepted: Option<Vec<bool>>,
    /// Write the probability of every class as well?
    pub probabilities: bool,
}

/// A column of the file: a value for every item.
struct LabelColumn<'a> {
    name: &'static str,
    values: Values<'a>,
}

enum Values<'a> {
    Integers(Box<dyn Fn(usize) -> i64 + 'a>),
    Floats(&'a [f32]),
    Words(Box<dyn Fn(usize) -> Option<&'a str> + 'a>),
}

impl<'a> LabelTable<'a> {
    /// Everything that a run says of its items.
    pub fn of(labelling: &'a Labelling) -> Self {
        LabelTable {
            votes: labelling.votes(),
            reach: labelling.reach.as_ref().map(|reach| &reach.values[..]),
            nearest_labels: labelling.nearest_labels.as_deref(),
            origin: (!labelling.known.is_empty()).then(|| {
                let items = 0..labelling.pseudo_labels.len();
                items.map(|item| origin(labelling.known.get(item).is_some())).collect()
            }),
            ..Self::new(&labelling.classes, &labelling.pseudo_labels)
        }
    }

    /// The labels alone.
    pub fn new(classes: &'a Classes, labels: &'a PseudoLabels) -> Self {
        LabelTable {
            classes,
            labels,
            rows: None,
            ids: None,
            votes: None,
            reach: None,
            nearest_labels: None,
            origin: None,
            accepted: None,
            probabilities: false,
        }
    }

    /// Writes it, in the format that the ending of `path` names.
    pub fn write(&self, path: &Path, force: bool) -> Result<(), DataError> {
        match LabelFormat::of(path)? {
            LabelFormat::Csv => write_atomically(path, force, |file| self.csv(file))?,
            LabelFormat::JsonLines => write_atomically(path, force, |file| self.json_lines(file))?,
            LabelFormat::Npz => self.write_arrays(path, force)?,
            LabelFormat::Table => self.write_table(path, force)?,
            LabelFormat::LabelStudio => write_atomically(path, force, |file| {
                serde_json::to_writer(&mut *file, &self.tasks())?;
                file.write_all(b"\n")
            })?,
        }
        Ok(())
    }

    /// Every column but the probabilities.
    fn columns(&self) -> Vec<LabelColumn<'_>> {
        let LabelTable { classes, labels, rows, ids, reach, nearest_labels, .. } = *self;
        let integers = |name, value| LabelColumn { name, values: Values::Integers(value) };
        let words = |name, value| LabelColumn { name, values: Values::Words(value) };
        let floats = |name, values| LabelColumn { name, values: Values::Floats(values) };
        let mut columns =
            vec![integers("row", Box::new(move |item| rows.map_or(item, |rows| rows[item]) as i64))];
        columns.extend(ids.map(|ids| words("id", Box::new(|item| Some(&ids[item])))));
        columns.extend([
            words("label", Box::new(|item| labels.labels()[item].map(|class| classes.name(class)))),
            floats("confidence", labels.confidence()),
            floats("margin", labels.margin()),
            words("status", Box::new(|item| Some(labels.status()[item].as_str()))),
        ]);
        columns
            .extend(self.votes.as_ref().map(|votes| integers("votes", Box::new(|item| votes[item] as i64))));
        columns.extend(reach.map(|reach| floats("reach", reach)));
        columns.extend(nearest_labels.map(|nearest| {
            words("nearest_label", Box::new(|item| nearest[item].map(|class| classes.name(class))))
        }));
        columns
            .extend(self.origin.as_ref().map(|origin| words("origin", Box::new(|item| Some(origin[item])))));
        columns.extend(self.accepted.as_ref().map(|accepted| {
            words("accepted", Box::new(|item| Some(if accepted[item] { "true" } else { "false" })))
        }));
        columns
    }

    fn csv(&self, file: &mut dyn Write) -> std::io::Result<()> {
        let columns = self.columns();
        let mut csv = csv::Writer::from_writer(file);
        let mut header: Vec<String> = columns.iter().map(|column| column.name.to_string()).collect();
        if self.probabilities {
            header.extend(self.classes.names().iter().map(|name| format!("p_{name}")));
        }
        csv.write_record(&header)?;
        let mut record = csv::StringRecord::new();
        for item in 0..self.labels.len() {
            record.clear();
            for column in &columns {
                match &column.values {
                    Values::Integers(value) => record.push_field(&value(item).to_string()),
                    Values::Floats(values) => record.push_field(&format!("{:.6}", values[item])),
                    Values::Words(value) => record.push_field(value(item).unwrap_or("")),
                }
            }
            if self.probabilities {
                self.labels.probabilities(item).iter().for_each(|p| record.push_field(&format!("{p:.8}")));
            }
            csv.write_record(&record)?;
        }
        csv.flush()
    }

    fn json_lines(&self, file: &mut dyn Write) -> std::io::Result<()> {
        let columns = self.columns();
        for item in 0..self.labels.len() {
            let mut line = serde_json::Map::new();
            for column in &columns {
                let value: serde_json::Value = match &column.values {
                    Values::Integers(value) => value(item).into(),
                    Values::Floats(values) => values[item].into(),
                    Values::Words(value) => value(item).into(),
                };
                line.insert(column.name.into(), value);
            }
            if self.probabilities {
                let named = self.classes.names().iter().zip(self.labels.probabilities(item));
                let named: serde_json::Map<_, _> = named.map(|(name, &p)| (name.clone(), p.into())).collect();
                line.insert("probabilities".into(), named.into());
            }
            serde_json::to_writer(&mut *file, &line)?;
            file.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Label numbers are positions in `class_names`, -1 where there is none. `rows` is there only if rows were left out.
    fn write_arrays(&self, path: &Path, force: bool) -> Result<(), DataError> {
        let numbers: Vec<i64> =
            self.labels.labels().iter().map(|label| label.map_or(-1, i64::from)).collect();
        let mut columns = self.columns();
        columns.retain(|column| column.name != "label" && (column.name != "row" || self.rows.is_some()));
        let integers: Vec<Vec<i64>> = columns.iter().map(|column| self.integers(column)).collect();
        let words: Vec<Vec<&str>> = columns.iter().map(|column| self.words(column)).collect();
        let all = self.all_probabilities();
        let mut arrays =
            ArrayFile::new().integers("labels", &numbers).strings("class_names", self.classes.names());
        for ((column, integers), words) in columns.iter().zip(&integers).zip(&words) {
            let name = match column.name {
                "row" => "rows",
                "id" => "ids",
                name => name,
            };
            arrays = match column.values {
                Values::Integers(_) => arrays.integers(name, integers),
                Values::Floats(values) => arrays.vector(name, values),
                Values::Words(_) => arrays.strings(name, words),
            };
        }
        if self.probabilities {
            arrays = arrays.matrix("probabilities", self.labels.len(), self.classes.len(), &all);
        }
        arrays.write(path, force)
    }

    fn write_table(&self, path: &Path, force: bool) -> Result<(), DataError> {
        let (columns, all) = (self.columns(), self.all_probabilities());
        let integers: Vec<Vec<i64>> = columns.iter().map(|column| self.integers(column)).collect();
        let mut table = TableFile::new();
        for (column, integers) in columns.iter().zip(&integers) {
            let values = match &column.values {
                Values::Integers(_) => TableColumn::Integers(integers),
                Values::Floats(values) => TableColumn::Floats(values),
                Values::Words(value) => TableColumn::Words((0..self.labels.len()).map(value).collect()),
            };
            table = table.column(column.name, values);
        }
        if self.probabilities {
            for (class, name) in self.classes.names().iter().enumerate() {
                let column = TableColumn::Strided(self.classes.len(), all.get(class..).unwrap_or(&[]));
                table = table.column(&format!("p_{name}"), column);
            }
        }
        table.write(path, force)
    }

    /// The values of a column of integers.
    fn integers(&self, column: &LabelColumn) -> Vec<i64> {
        match &column.values {
            Values::Integers(value) => (0..self.labels.len()).map(value).collect(),
            _ => Vec::new(),
        }
    }

    /// The values of a column of words.
    fn words<'c>(&self, column: &LabelColumn<'c>) -> Vec<&'c str> {
        match &column.values {
            Values::Words(value) => (0..self.labels.len()).map(|item| value(item).unwrap_or("")).collect(),
            _ => Vec::new(),
        }
    }

    /// Item after item, where they are asked for.
    fn all_probabilities(&self) -> Vec<f32> {
        let items = if self.probabilities { self.labels.len() } else { 0 };
        (0..items).flat_map(|item| self.labels.probabilities(item)).copied().collect()
    }

    /// Tasks for people to check, with our labels as predictions, the least certain first.
    fn tasks(&self) -> Vec<serde_json::Value> {
        let labels = self.labels;
        let mut order: Vec<usize> = (0..labels.len()).collect();
        order.sort_by(|&a, &b| labels.confidence()[a].total_cmp(&labels.confidence()[b]));
        let task = |item: usize| {
            let row = self.rows.map_or(item, |rows| rows[item]);
            let id = self.ids.map_or_else(|| row.to_string(), |ids| ids[item].clone());
            let label = labels.labels()[item].map(|class| self.classes.name(class));
            let predictions: Vec<_> = label
                .map(|name| {
                    json!({
                        "model_version": concat!("a2lp ", env!("CARGO_PKG_VERSION")),
                        "score": labels.confidence()[item],
                        "result": [choice(name)],
                    })
                })
                .into_iter()
                .collect();
            let mut data = json!({ "item": id, "row": row, "status": labels.status()[item].as_str() });
            if let Some(reach) = self.reach {
                data["reach"] = reach[item].into();
            }
            if let Some(class) = self.nearest_labels.and_then(|nearest| nearest[item]) {
                data["nearest_label"] = self.classes.name(class).into();
            }
            if let Some(accepted) = &self.accepted {
                data["accepted"] = accepted[item].into();
            }
            // What a person said is an annotation, not a guess of ours.
            let said =
                self.origin.as_ref().is_some_and(|origin| origin[item] == crate::write::labels::origin(true));
            match label.filter(|_| said) {
                Some(name) => json!({ "data": data, "annotations": [{ "result": [choice(name)] }] }),
                None => json!({ "data": data, "predictions": predictions }),
            }
        };
        order.into_iter().map(task).collect()
    }
}
