//! Classes and the labels that name them. Hands on class numbers; the names are kept for the user.

use crate::error::Error;
use std::collections::HashMap;

/// A class, counted from 0 in the order of its [`Classes`].
pub type ClassId = u32;

/// The class list of a run: names in a fixed order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    names: Vec<String>,
    index: HashMap<String, ClassId>,
}

impl Classes {
    /// A class list in the order given.
    pub fn new(names: Vec<String>) -> Result<Self, Error> {
        let mut index = HashMap::with_capacity(names.len());
        for (id, name) in names.iter().enumerate() {
            if index.insert(name.clone(), id as ClassId).is_some() {
                return Err(Error::DuplicateClass(name.clone()));
            }
        }
        Ok(Classes { names, index })
    }

    /// The distinct names in `labels`: by value when all are integers, else alphabetically.
    pub fn from_labels<S: AsRef<str>>(labels: &[S]) -> Self {
        let mut names: Vec<&str> = labels.iter().map(AsRef::as_ref).collect();
        names.sort_unstable();
        names.dedup();
        let numbers: Option<Vec<i64>> = names.iter().map(|n| n.parse().ok()).collect();
        if let Some(numbers) = numbers {
            let mut order: Vec<(i64, &str)> = numbers.into_iter().zip(names).collect();
            order.sort_unstable();
            names = order.into_iter().map(|(_, name)| name).collect();
        }
        let names: Vec<String> = names.into_iter().map(String::from).collect();
        let index = names.iter().cloned().zip(0..).collect();
        Classes { names, index }
    }

    /// Number of classes.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// No class at all?
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Name of a class.
    pub fn name(&self, class: ClassId) -> &str {
        &self.names[class as usize]
    }

    /// All names in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The class with this name.
    pub fn find(&self, name: &str) -> Option<ClassId> {
        self.index.get(name).copied()
    }
}

/// One label per row, over a class list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    classes: Classes,
    ids: Vec<ClassId>,
}

impl Labels {
    /// Labels by name; the class list is made of the names that occur.
    ///
    /// ```
    /// let labels = a2lp::Labels::new(&["mug", "bike", "mug"]);
    /// assert_eq!(labels.ids(), [1, 0, 1]);
    /// ```
    pub fn new<S: AsRef<str>>(labels: &[S]) -> Self {
        let classes = Classes::from_labels(labels);
        let ids = labels.iter().map(|name| classes.index[name.as_ref()]).collect();
        Labels { classes, ids }
    }

    /// Labels by name over a given class list; a name outside it is an error.
    pub fn within<S: AsRef<str>>(classes: Classes, labels: &[S]) -> Result<Self, Error> {
        let ids = labels
            .iter()
            .enumerate()
            .map(|(row, name)| {
                classes.find(name.as_ref()).ok_or_else(|| Error::UnknownClass {
                    row,
                    label: name.as_ref().to_string(),
                    classes: classes.len(),
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Labels { classes, ids })
    }

    /// Labels that are class numbers already.
    pub fn from_ids(classes: Classes, ids: Vec<ClassId>) -> Result<Self, Error> {
        match ids.iter().position(|&id| id as usize >= classes.len()) {
            Some(row) => {
                Err(Error::UnknownClass { row, label: ids[row].to_string(), classes: classes.len() })
            }
            None => Ok(Labels { classes, ids }),
        }
    }

    /// The labels of all rows but these, given in order, over the same class list.
    pub fn without_rows(mut self, rows: &[usize]) -> Self {
        remove_rows(&mut self.ids, rows);
        self
    }

    /// The class list.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Class of every row.
    pub fn ids(&self) -> &[ClassId] {
        &self.ids
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// No rows?
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Rows per class.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes.len()];
        for &id in &self.ids {
            counts[id as usize] += 1;
        }
        counts
    }
}

/// Takes out the items of these rows, given in order.
pub fn remove_rows<T>(items: &mut Vec<T>, rows: &[usize]) {
    let mut row = 0..;
    items.retain(|_| row.next().is_some_and(|row| rows.binary_search(&row).is_err()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_sort_by_value_and_words_by_letter() {
        assert_eq!(Classes::from_labels(&["10", "9", "-1", "9"]).names(), ["-1", "9", "10"]);
        assert_eq!(Classes::from_labels(&["mug", "10", "bike"]).names(), ["10", "bike", "mug"]);
    }

    #[test]
    fn a_label_outside_the_list_is_named_with_its_row() {
        let classes = Classes::new(vec!["a".into(), "b".into()]).unwrap();
        let error = Labels::within(classes, &["a", "c"]).unwrap_err();
        assert_eq!(error.to_string(), "row 1: label 'c' is not in the list of 2 class names");
    }

    #[test]
    fn a_class_named_twice_is_refused() {
        let error = Classes::new(vec!["a".into(), "a".into()]).unwrap_err();
        assert_eq!(error, Error::DuplicateClass("a".into()));
    }
}
