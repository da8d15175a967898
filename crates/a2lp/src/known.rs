//! What a person said of target items. Unlike the truth, these labels may reach the method.

use crate::error::Error;
use crate::labels::{ClassId, Classes};
use std::collections::BTreeMap;

/// Target items whose class a person has named, by item. A run treats them as labelled nodes and never contradicts them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownLabels(BTreeMap<usize, ClassId>);

impl KnownLabels {
    /// Nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Items with a known class.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Is nothing known?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The class of an item, if it is known.
    pub fn get(&self, item: usize) -> Option<ClassId> {
        self.0.get(&item).copied()
    }

    /// Items and their classes, in order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, ClassId)> + '_ {
        self.0.iter().map(|(&item, &class)| (item, class))
    }

    /// Notes the class of an item, or forgets it. Returns what was known before.
    pub fn set(&mut self, item: usize, class: Option<ClassId>) -> Option<ClassId> {
        match class {
            Some(class) => self.0.insert(item, class),
            None => self.0.remove(&item),
        }
    }

    /// Refuses items and classes that do not exist.
    pub(crate) fn check(&self, items: usize, classes: &Classes) -> Result<(), Error> {
        match self.iter().find(|&(item, class)| item >= items || class as usize >= classes.len()) {
            Some((item, _)) if item >= items => Err(Error::NoSuchItem { item, items }),
            Some((row, class)) => {
                Err(Error::UnknownClass { row, label: class.to_string(), classes: classes.len() })
            }
            None => Ok(()),
        }
    }

    /// Writes the classes into the labels of nodes, where target items start at `first_target`.
    pub(crate) fn mark(&self, labels: &mut [Option<ClassId>], first_target: usize) {
        self.iter().for_each(|(item, class)| labels[first_target + item] = Some(class));
    }
}

impl FromIterator<(usize, ClassId)> for KnownLabels {
    fn from_iter<I: IntoIterator<Item = (usize, ClassId)>>(known: I) -> Self {
        KnownLabels(known.into_iter().collect())
    }
}
