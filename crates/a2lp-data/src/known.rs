//! Items whose label a person has given: a table of rows or ids and labels, or an export of Label Studio.

use crate::column::{read_ids, read_labels};
use crate::error::{DataError, Problem};
use crate::formats::Format;
use crate::names::{Field, FieldNames};
use a2lp::{Domains, KnownLabels};
use serde_json::Value;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;

/// An item, by row or by id or by both, and its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownItem {
    /// Its row in the target's files.
    pub row: Option<usize>,
    /// Its id.
    pub id: Option<String>,
    /// Its label.
    pub label: String,
}

/// Reads labels that a person has given. Items without a label are left out.
///
/// A table has the column `label` (`labels`, `class`), and `row` or `id` or both. A file that ends in `.json` is an export of Label
/// Studio, as JSON or as JSON-MIN: rows or ids are in `data`, labels are the annotations' choices.
pub fn read_known(path: &Path) -> Result<Vec<KnownItem>, DataError> {
    if path.extension().and_then(OsStr::to_str) == Some("json") {
        return read_label_studio(path).map_err(|problem| DataError::new(path, problem));
    }
    let fail = |message: String| DataError::new(path, Problem::Table(message));
    let (labels, rows, ids) = match Format::of_ending(path) {
        // Items without a label are welcome here, which columns of labels do not allow.
        Some(Format::Csv) => read_csv(path).map_err(|problem| DataError::new(path, problem))?,
        _ => {
            let labels = read_labels(path, &FieldNames::default())?.into_strings();
            (labels, read_ids(path, &named_row()).ok(), read_ids(path, &FieldNames::default()).ok())
        }
    };
    if rows.is_none() && ids.is_none() {
        return Err(fail("no column 'row' and no column 'id'; one of them is needed".into()));
    }
    let mut known = Vec::new();
    for (at, label) in labels.into_iter().enumerate().filter(|(_, label)| !label.is_empty()) {
        let row = rows.as_ref().map(|rows| rows[at].trim().parse()).transpose();
        let row = row.map_err(|_| fail(format!("line {}: the column 'row' holds no row number", at + 1)))?;
        known.push(KnownItem { row, id: ids.as_ref().map(|ids| ids[at].clone()), label });
    }
    Ok(known)
}

fn named_row() -> FieldNames {
    FieldNames { ids: Some("row".into()), ..FieldNames::default() }
}

/// Labels, rows and ids.
type Columns = (Vec<String>, Option<Vec<String>>, Option<Vec<String>>);

fn read_csv(path: &Path) -> Result<Columns, Problem> {
    let damaged = |error: csv::Error| Problem::Damaged { format: "CSV", message: error.to_string() };
    let mut csv = csv::Reader::from_path(path).map_err(damaged)?;
    let header: Vec<String> = csv.headers().map_err(damaged)?.iter().map(str::to_string).collect();
    let label = FieldNames::default().find(Field::Labels, &header);
    let label = label.ok_or_else(|| Problem::Table("no column 'label'".into()))?;
    let row = named_row().find(Field::Ids, &header);
    let id = FieldNames::default().find(Field::Ids, &header);
    let (mut labels, mut rows, mut ids) = (Vec::new(), row.map(|_| Vec::new()), id.map(|_| Vec::new()));
    for record in csv.records() {
        let record = record.map_err(damaged)?;
        let field = |at: usize| record.get(at).unwrap_or_default().to_string();
        labels.push(field(label));
        for (column, at) in [(&mut rows, row), (&mut ids, id)] {
            if let (Some(column), Some(at)) = (column, at) {
                column.push(field(at));
            }
        }
    }
    Ok((labels, rows, ids))
}

fn read_label_studio(path: &Path) -> Result<Vec<KnownItem>, Problem> {
    let damaged = |message: String| Problem::Damaged { format: "Label Studio", message };
    let text = std::fs::read_to_string(path)?;
    let tasks: Value = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    let Value::Array(tasks) = tasks else {
        return Err(damaged("an export is a list of tasks".into()));
    };
    let mut known = Vec::new();
    for (at, task) in tasks.iter().enumerate() {
        let data = task.get("data").unwrap_or(task);
        let row = data.get("row").and_then(Value::as_u64).map(|row| row as usize);
        let id = ["item", "id"].iter().find_map(|name| data.get(name)?.as_str()).map(str::to_string);
        let Some(label) = label_of(task).map_err(|message| damaged(format!("task {}: {message}", at + 1)))?
        else {
            continue;
        };
        if row.is_none() && id.is_none() {
            return Err(damaged(format!("task {}: its data hold neither 'row' nor 'item'", at + 1)));
        }
        known.push(KnownItem { row, id, label });
    }
    Ok(known)
}

/// The class that was chosen for a task; `None` if there is no annotation.
fn label_of(task: &Value) -> Result<Option<String>, String> {
    let counts = |annotation: &&Value| annotation.get("was_cancelled") != Some(&Value::Bool(true));
    let annotations: Vec<&Value> = match task.get("annotations") {
        Some(Value::Array(annotations)) => annotations.iter().filter(counts).collect(),
        _ => Vec::new(),
    };
    let results = annotations.iter().filter_map(|annotation| annotation.get("result")?.as_array()).flatten();
    let choices = results.filter_map(|result| result.get("value")?.get("choices")?.as_array()).flatten();
    let mut names: Vec<&str> = choices.filter_map(Value::as_str).collect();
    // JSON-MIN has the choice in the task itself.
    names.extend(["label", "choice"].iter().find_map(|name| task.get(name)?.as_str()));
    names.sort_unstable();
    names.dedup();
    match names[..] {
        [] => Ok(None),
        [name] => Ok(Some(name.to_string())),
        _ => Err(format!("people disagree on it: {}; settle that first", names.join(", "))),
    }
}

/// Adds known labels to the data of a run. Also returns their classes that the source lacks.
///
/// `rows` are the rows of the items, where rows were left out; known rows that were left out are passed over.
pub fn with_known_items(
    domains: Domains,
    known: Vec<KnownItem>,
    rows: Option<&[usize]>,
    ids: Option<&[String]>,
) -> Result<(Domains, Vec<String>), String> {
    let items = domains.target_rows();
    let mut item_of_id: HashMap<&str, usize> = HashMap::new();
    for (item, id) in ids.unwrap_or_default().iter().enumerate() {
        item_of_id.insert(id, item);
    }
    let place = |entry: &KnownItem| -> Result<Option<usize>, String> {
        let by_row = match (entry.row, rows) {
            (None, _) => None,
            (Some(row), Some(rows)) if row <= rows.last().copied().unwrap_or(0) => {
                // A row that was left out has no item.
                let Ok(item) = rows.binary_search(&row) else { return Ok(None) };
                Some(item)
            }
            (Some(row), _) if row >= items => {
                return Err(format!("row {row}, but the target has {items} rows"));
            }
            (Some(row), _) => Some(row),
        };
        let by_id = match (&entry.id, ids) {
            (Some(id), Some(_)) => match (item_of_id.get(id.as_str()), by_row) {
                (Some(&item), _) => Some(item),
                (None, _) => return Err(format!("id '{id}' is not in the target")),
            },
            _ => None,
        };
        match (by_row, by_id) {
            // Several items may have the same id.
            (Some(row), Some(item)) if ids.is_some_and(|ids| ids[row] != ids[item]) => Err(format!(
                "row {row} of the target has the id '{}', not '{}'",
                ids.map_or("", |ids| &ids[row]),
                entry.id.as_deref().unwrap_or_default()
            )),
            (Some(item), _) | (None, Some(item)) => Ok(Some(item)),
            (None, None) => Err("the target has no ids, so known labels need rows".to_string()),
        }
    };
    let mut named: Vec<(usize, String)> = Vec::with_capacity(known.len());
    for entry in known {
        if let Some(item) = place(&entry)? {
            named.push((item, entry.label));
        }
    }
    let classes = domains.source_labels().classes().clone();
    let mut new: Vec<String> = Vec::new();
    for (_, name) in &named {
        if classes.find(name).is_none() && !new.contains(name) {
            new.push(name.clone());
        }
    }
    let told = |error: a2lp::Error| error.to_string();
    let domains = domains.with_classes(new.iter().map(String::as_str)).map_err(told)?;
    let mut labels = KnownLabels::new();
    for (item, name) in named {
        let class = domains.source_labels().classes().find(&name);
        if labels.get(item).is_some_and(|other| Some(other) != class) {
            return Err(format!("item {item} has two different labels, one of them '{name}'"));
        }
        labels.set(item, class);
    }
    Ok((domains.with_known(labels).map_err(told)?, new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2lp::{FeatureMatrix, Labels};
    use std::fs;

    fn known(name: &str, text: &str) -> Result<Vec<KnownItem>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        read_known(&path).map_err(|error| error.to_string())
    }

    fn item(row: Option<usize>, id: Option<&str>, label: &str) -> KnownItem {
        KnownItem { row, id: id.map(Into::into), label: label.into() }
    }

    #[test]
    fn tables_name_items_by_row_or_id() {
        assert_eq!(known("a.csv", "row,label\n3,mug\n4,\n").unwrap(), [item(Some(3), None, "mug")]);
        assert_eq!(known("a.csv", "id,label\nx.png,7\n").unwrap(), [item(None, Some("x.png"), "7")]);
        let both = known("a.csv", "row,id,label,origin\n1,a,mug,person\n").unwrap();
        assert_eq!(both, [item(Some(1), Some("a"), "mug")]);
        assert!(known("a.csv", "label,weight\nmug,1\n").unwrap_err().contains("no column 'row'"));
        assert!(known("a.csv", "row,label\nx,mug\n").unwrap_err().contains("line 1"));
    }

    #[test]
    fn exports_of_label_studio_hold_annotations() {
        let task = |extra: &str| format!(r#"[{{"id": 9, "data": {{"item": "a", "row": 2}}, {extra}}}]"#);
        let chosen = r#"{"result": [{"value": {"choices": ["mug"]}, "type": "choices"}]}"#;
        let one = task(&format!(r#""annotations": [{chosen}]"#));
        assert_eq!(known("a.json", &one).unwrap(), [item(Some(2), Some("a"), "mug")]);
        let cancelled = chosen.replacen('{', r#"{"was_cancelled": true, "#, 1);
        assert_eq!(known("a.json", &task(&format!(r#""annotations": [{cancelled}]"#))).unwrap(), []);
        assert_eq!(known("a.json", &task(r#""annotations": []"#)).unwrap(), []);
        let two = task(&format!(r#""annotations": [{chosen}, {}]"#, chosen.replace("mug", "cup")));
        assert!(known("a.json", &two).unwrap_err().contains("people disagree"));
        let min = r#"[{"item": "a", "label": "mug", "id": 1}]"#;
        assert_eq!(known("a.json", min).unwrap(), [item(None, Some("a"), "mug")]);
        assert!(known("a.json", "{}").unwrap_err().contains("list of tasks"));
    }

    #[test]
    fn labels_find_their_items_or_say_why_not() {
        let rows = FeatureMatrix::from_rows(&[[1.0], [2.0], [3.0]]).unwrap();
        let domains = || Domains::new(rows.clone(), Labels::new(&["a", "b", "a"]), rows.clone()).unwrap();
        let ids = ["x", "y", "z"].map(String::from);
        let told = |known: Vec<KnownItem>, rows: Option<&[usize]>, ids: Option<&[String]>| {
            with_known_items(domains(), known, rows, ids)
                .map(|(domains, new)| (domains.known().iter().collect::<Vec<_>>(), new))
        };
        let by_id = told(vec![item(None, Some("z"), "b"), item(Some(0), None, "new")], None, Some(&ids));
        assert_eq!(by_id.unwrap(), (vec![(0, 2), (2, 1)], vec!["new".to_string()]));
        // Rows 0, 2 and 5 are the items; row 3 was left out.
        let skipped = told(vec![item(Some(5), None, "a"), item(Some(3), None, "a")], Some(&[0, 2, 5]), None);
        assert_eq!(skipped.unwrap().0, [(2, 0)]);
        let wrong = |known: KnownItem| told(vec![known], None, Some(&ids)).unwrap_err();
        assert!(wrong(item(Some(3), None, "a")).contains("row 3, but the target has 3 rows"));
        assert!(wrong(item(Some(0), Some("y"), "a")).contains("has the id 'x', not 'y'"));
        assert!(wrong(item(None, Some("q"), "a")).contains("not in the target"));
        let twice = vec![item(Some(0), None, "a"), item(Some(0), None, "b")];
        assert!(told(twice, None, None).unwrap_err().contains("two different labels"));
    }
}
