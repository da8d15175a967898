//! What goes out at the end: labels with what people said, and the corrections alone.

use crate::error::ReviewError;
use crate::session::{Origin, Session};
use a2lp::PseudoLabels;
use a2lp_data::{LabelTable, choice, origin};
use serde_json::{Value, json};
use std::path::Path;

impl Session {
    /// The labels with everything that people said. What was answered in the check is in place here.
    pub fn final_labels(&self) -> PseudoLabels {
        let labelling = self.labelling();
        let mut labels = labelling.pseudo_labels.clone();
        for (item, said) in self.answers() {
            labels.take_word(*item, said.as_deref().and_then(|name| labelling.classes.find(name)));
        }
        labels
    }

    /// Writes the labels in the format that the ending of `path` names, with the columns `origin` and `accepted`. `accept` is the set to
    /// accept, in tenths; the largest one that is signed off unless it is given.
    pub fn write_labels(
        &mut self,
        path: &Path,
        force: bool,
        probabilities: bool,
        accept: Option<usize>,
    ) -> Result<(), ReviewError> {
        let accepted = self.accepted(accept)?;
        let (labelling, labels, task) = (self.labelling(), self.final_labels(), self.task());
        let is_from_person = |item: usize| self.origin(item) != Origin::Propagated;
        let table = LabelTable {
            labels: &labels,
            rows: task.rows.as_deref(),
            ids: task.ids.as_deref(),
            origin: Some((0..labels.len()).map(|item| origin(is_from_person(item))).collect()),
            accepted: Some(accepted),
            probabilities,
            ..LabelTable::of(labelling)
        };
        Ok(table.write(path, force)?)
    }

    /// Tells for every item whether it is accepted: the signed-off set is, and so is what a person labelled.
    fn accepted(&mut self, accept: Option<usize>) -> Result<Vec<bool>, ReviewError> {
        let items = self.labelling().pseudo_labels.len();
        let mut accepted = vec![false; items];
        // Of an item that no class fits there is no label to accept.
        self.said().iter().for_each(|(item, ..)| accepted[*item] = true);
        // Without an answer nothing is signed off, and labels that nobody looked at need no version.
        if !self.answers().is_empty() && self.needed_version().is_none() {
            let (ranked, ladder) = self.audited_items()?;
            let set = accept.unwrap_or(ladder.signed_off()).min(ladder.signed_off());
            for &item in &ranked[..ladder.set_size(set)] {
                accepted[item] |= self.origin(item) == Origin::Propagated;
            }
        }
        Ok(accepted)
    }

    /// Everything that a person said: item, class and whether it was in the check. Items that no class fits are left out.
    pub fn said(&self) -> Vec<(usize, &str, Origin)> {
        let corrections =
            self.corrections().iter().map(|(&item, name)| (item, name.as_str(), Origin::Corrected));
        let answers = self.answers().iter();
        let answers = answers.filter_map(|(item, name)| Some((*item, name.as_deref()?, Origin::Checked)));
        let mut said: Vec<_> = corrections.chain(answers).collect();
        said.sort_by_key(|(item, ..)| *item);
        said
    }

    /// What a person said, as a table that `a2lp label --known` reads.
    pub fn corrections_csv(&self) -> String {
        let ids = self.task().ids.as_ref();
        let mut csv = csv::Writer::from_writer(Vec::new());
        let mut write = |row: &str, id: Option<&str>, label: &str, kind: &str| {
            let fields = std::iter::once(row).chain(id).chain([label, kind]);
            csv.write_record(fields).expect("memory can be written to, and rows have the same fields");
        };
        write("row", ids.map(|_| "id"), "label", "kind");
        for (item, name, origin) in self.said() {
            let kind = if origin == Origin::Checked { "check" } else { "correction" };
            write(&self.task().row(item).to_string(), ids.map(|ids| ids[item].as_str()), name, kind);
        }
        let bytes = csv.into_inner().expect("memory can be written to");
        String::from_utf8(bytes).expect("fields are text")
    }

    /// The same as annotated tasks for Label Studio, which `a2lp label --known` reads too.
    pub fn corrections_json(&self) -> Value {
        let task = |(item, name, _): (usize, &str, Origin)| {
            let row = self.task().row(item);
            let id = self.task().ids.as_ref().map_or_else(|| row.to_string(), |ids| ids[item].clone());
            json!({ "data": { "item": id, "row": row }, "annotations": [{ "result": [choice(name)] }] })
        };
        self.said().into_iter().map(task).collect()
    }
}
