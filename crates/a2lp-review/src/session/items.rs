//! Items as a person sees them: what they are called, what is said of them, and which are worth a look.

use super::Session;
use serde::Serialize;
use std::collections::HashSet;

/// Most items of a group.
const GROUP: usize = 12;
/// Classes that are named for an item, the most probable first.
const NAMED: usize = 3;

/// Where a label comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The method.
    Propagated,
    /// A person corrected or confirmed it.
    Corrected,
    /// A person answered it in the check.
    Checked,
}

impl Origin {
    /// The word used in files: whether a person gave the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Propagated => "propagated",
            Origin::Corrected | Origin::Checked => "person",
        }
    }
}

/// One item.
#[derive(Clone, Debug, Serialize)]
pub struct ItemView {
    /// Its number among the items.
    pub item: usize,
    /// Its row in the target's file.
    pub row: u64,
    /// Its id.
    pub id: Option<String>,
    /// Its label.
    pub label: Option<String>,
    /// Its confidence.
    pub confidence: f32,
    /// What can be said of it.
    pub status: &'static str,
    /// Where its label comes from.
    pub origin: Origin,
    /// The most probable classes.
    pub classes: Vec<(String, f32)>,
}

/// Items that look alike and have the same label.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// Their label.
    pub label: Option<String>,
    /// The items, the one most worth a click first.
    pub items: Vec<ItemView>,
}

impl Session {
    /// Where the label of an item comes from.
    pub fn origin(&self, item: usize) -> Origin {
        match () {
            () if self.state.corrections.contains_key(&item) => Origin::Corrected,
            () if self.state.is_answered(item) => Origin::Checked,
            () => Origin::Propagated,
        }
    }

    /// Tells for every class whether the page should offer it: classes of the run, and classes that a person gave to an item.
    pub fn classes_in_use(&self) -> Vec<bool> {
        let classes = &self.labelling().classes;
        let of_run = self.task.domains.source_labels().classes().len();
        let given: HashSet<&str> = self.said().into_iter().map(|(_, name, _)| name).collect();
        let is_given = |class: usize| given.contains(classes.names()[class].as_str());
        (0..classes.len()).map(|class| class < of_run || is_given(class)).collect()
    }

    /// One item.
    pub fn item_view(&self, item: usize) -> ItemView {
        let labelling = self.labelling();
        let labels = &labelling.pseudo_labels;
        let name = |class: u32| labelling.classes.name(class).to_string();
        let mut classes: Vec<(u32, f32)> = (0..).zip(labels.probabilities(item).iter().copied()).collect();
        classes.sort_by(|a, b| b.1.total_cmp(&a.1));
        classes.truncate(NAMED);
        ItemView {
            item,
            row: self.task.row(item),
            id: self.task.ids.as_ref().map(|ids| ids[item].clone()),
            label: labels.labels()[item].map(name),
            confidence: labels.confidence()[item],
            status: labels.status()[item].as_str(),
            origin: self.origin(item),
            classes: classes.into_iter().map(|(class, p)| (name(class), p)).collect(),
        }
    }

    /// The items most worth a click, the one that repairs most first. What was answered in the check is left out, whatever the answer.
    pub fn doubtful(&self, count: usize) -> Vec<usize> {
        self.live.doubtful(count, |item| self.origin(item) != Origin::Propagated)
    }

    /// The same, each with its look-alikes of the same label.
    pub fn groups(&self, count: usize) -> Vec<Group> {
        let labels = self.labelling().pseudo_labels.labels();
        let is_open = |item: usize| self.origin(item) == Origin::Propagated;
        let mut taken: HashSet<usize> = HashSet::new();
        let mut groups = Vec::new();
        for first in self.doubtful(count) {
            if !taken.insert(first) {
                continue;
            }
            let alike = self.live.look_alikes(first).into_iter();
            let alike = alike.filter(|&item| labels[item] == labels[first] && is_open(item));
            let mut items = vec![first];
            items.extend(alike.filter(|item| taken.insert(*item)).take(GROUP - 1));
            let items: Vec<_> = items.into_iter().map(|item| self.item_view(item)).collect();
            groups.push(Group { label: items[0].label.clone(), items });
        }
        groups
    }
}
