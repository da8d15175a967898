//! The state of a session, which follows from its events alone.

use super::{FullRun, Task, checked_name};
use crate::event::{AuditSettings, Event};
use a2lp::{Domains, KnownLabels};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Items and their classes by name.
pub(super) type Named = BTreeMap<usize, String>;

pub(super) struct State {
    task: Arc<Task>,
    pub(super) events: u64,
    pub(super) corrections: Named,
    pub(super) answers: Vec<(usize, Option<String>)>,
    answered: BTreeSet<usize>,
    /// Names that were given, in that order.
    pub(super) named: Vec<String>,
    undo: Vec<Undo>,
    pub(super) settings: AuditSettings,
    pub(super) version: Option<Version>,
    /// Full runs so far.
    runs: u64,
    /// An answer was given about labels that were declared final.
    is_final: bool,
}

/// What takes an action back.
enum Undo {
    Correct(Vec<(usize, Option<String>)>),
    Answer(usize),
}

/// The labels that an audit speaks of, and what it is to show.
pub(super) struct Version {
    pub(super) number: u32,
    runs: u64,
    corrections: Named,
    settings: AuditSettings,
}

impl State {
    pub(super) fn new(task: Arc<Task>) -> Self {
        State {
            events: 0,
            corrections: task.known(),
            answers: Vec::new(),
            answered: BTreeSet::new(),
            named: Vec::new(),
            undo: Vec::new(),
            settings: AuditSettings::default(),
            version: None,
            runs: 0,
            is_final: false,
            task,
        }
    }

    /// The state after these events.
    pub(super) fn after(task: Arc<Task>, events: &[Event]) -> Result<Self, String> {
        let mut state = State::new(task);
        for (number, event) in events.iter().enumerate() {
            state.apply(event).map_err(|message| format!("event {}: {message}", number + 1))?;
        }
        Ok(state)
    }

    fn item(&self, row: u64) -> Result<usize, String> {
        self.task.item(row).ok_or_else(|| format!("there is no row {row}"))
    }

    /// Tells why an event cannot happen.
    pub(super) fn check(&self, event: &Event) -> Result<(), String> {
        match event {
            Event::Correct { .. } if self.is_final => {
                Err("the check began with final labels, so nothing can be corrected any more".into())
            }
            Event::Correct { labels } => {
                let mut passed_over = 0;
                for (row, name) in labels {
                    passed_over += usize::from(self.answered.contains(&self.item(*row)?));
                    name.as_deref().map_or(Ok(()), checked_name)?;
                }
                match labels.len() {
                    0 => Err("no items were chosen".into()),
                    all if all == passed_over => {
                        Err("all of these were answered in the check; take the answer back there".into())
                    }
                    _ => Ok(()),
                }
            }
            Event::Answer { row, said } => {
                let item = self.item(*row)?;
                said.as_deref().map_or(Ok(()), checked_name)?;
                match () {
                    () if !self.is_current() => {
                        Err("the labels changed since they were last looked at; look at the check again"
                            .into())
                    }
                    () if self.answered.contains(&item) => Err(format!("row {row} was answered already")),
                    () if self.corrections.contains_key(&item) => {
                        Err(format!("row {row} was corrected, so it is not part of the check"))
                    }
                    () => Ok(()),
                }
            }
            Event::Undo => match self.undo.last() {
                Some(Undo::Correct(_)) if self.is_final => {
                    Err("the check began with final labels, so no correction can be taken back".into())
                }
                Some(_) => Ok(()),
                None => Err("there is nothing to take back".into()),
            },
            Event::Promise(settings) => match settings.problem() {
                Some(problem) => Err(problem.into()),
                None if !self.answers.is_empty() && settings.final_labels != self.settings.final_labels => {
                    Err("the check has begun, so it can no longer be changed whether labels are final".into())
                }
                None if self.is_final => {
                    Err("the check of final labels has begun with other settings".into())
                }
                None => Ok(()),
            },
            Event::Version { number } if *number != self.next_version() => {
                Err(format!("the next version is {}", self.next_version()))
            }
            Event::Rerun { after } if *after > self.events => {
                Err("a full run with corrections that were not made yet".into())
            }
            Event::Version { .. } | Event::Rerun { .. } => Ok(()),
        }
    }

    /// Lets an event happen, or tells why it cannot.
    pub(super) fn apply(&mut self, event: &Event) -> Result<(), String> {
        self.check(event)?;
        self.events += 1;
        match event {
            Event::Correct { labels } => self.correct(labels),
            Event::Answer { row, said } => {
                let item = self.item(*row)?;
                said.iter().for_each(|name| self.name(name));
                self.answered.insert(item);
                self.answers.push((item, said.clone()));
                self.undo.push(Undo::Answer(item));
                self.is_final |= self.settings.final_labels;
            }
            Event::Undo => self.undo(),
            Event::Promise(settings) => self.settings = *settings,
            Event::Version { number } => {
                let (corrections, settings) = (self.corrections.clone(), self.settings);
                self.version = Some(Version { number: *number, runs: self.runs, corrections, settings });
            }
            Event::Rerun { .. } => self.runs += 1,
        }
        Ok(())
    }

    fn correct(&mut self, labels: &[(u64, Option<String>)]) {
        let mut before = Vec::new();
        for (row, name) in labels {
            let Some(item) = self.task.item(*row).filter(|item| !self.answered.contains(item)) else {
                continue;
            };
            name.iter().for_each(|name| self.name(name));
            before.push((item, self.set(item, name.clone())));
        }
        self.undo.push(Undo::Correct(before));
    }

    fn set(&mut self, item: usize, name: Option<String>) -> Option<String> {
        match name {
            Some(name) => self.corrections.insert(item, name),
            None => self.corrections.remove(&item),
        }
    }

    fn undo(&mut self) {
        match self.undo.pop() {
            // Backwards, as an item may stand in one action twice.
            Some(Undo::Correct(before)) => before.into_iter().rev().for_each(|(item, name)| {
                self.set(item, name);
            }),
            Some(Undo::Answer(item)) => {
                self.answered.remove(&item);
                self.answers.retain(|(answered, _)| *answered != item);
            }
            None => {}
        }
    }

    fn name(&mut self, name: &str) {
        if !self.named.iter().any(|known| known == name) {
            self.named.push(name.to_string());
        }
    }

    /// Did the check begin with labels that are final?
    pub(super) fn is_final(&self) -> bool {
        self.is_final
    }

    /// Was this item answered in the check?
    pub(super) fn is_answered(&self, item: usize) -> bool {
        self.answered.contains(&item)
    }

    /// Can something be taken back?
    pub(super) fn can_undo(&self) -> bool {
        self.check(&Event::Undo).is_ok()
    }

    /// Items that an event speaks of.
    pub(super) fn items_of(&self, event: &Event) -> Vec<usize> {
        match event {
            Event::Correct { labels } => {
                let items = labels.iter().filter_map(|(row, _)| self.task.item(*row));
                items.filter(|item| !self.answered.contains(item)).collect()
            }
            Event::Answer { row, .. } => self.task.item(*row).into_iter().collect(),
            Event::Undo => match self.undo.last() {
                Some(Undo::Correct(before)) => before.iter().map(|(item, _)| *item).collect(),
                Some(Undo::Answer(item)) => vec![*item],
                None => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Does the audit speak of the labels as they are now, and of what it is to show now?
    pub(super) fn is_current(&self) -> bool {
        self.version.as_ref().is_some_and(|version| {
            version.runs == self.runs
                && version.settings == self.settings
                && version.corrections == self.corrections
        })
    }

    /// The number that the present labels would get. A version that nothing was answered about costs nothing.
    pub(super) fn next_version(&self) -> u32 {
        let last = self.version.as_ref().map_or(0, |version| version.number);
        if self.answers.is_empty() { last.max(1) } else { last + 1 }
    }

    /// The full method with the corrections as known labels, ready to run.
    pub(super) fn full_run(&self) -> Result<FullRun, a2lp::Error> {
        let (task, told) = (self.task.clone(), self.corrections.clone());
        Ok(FullRun { task, domains: self.domains()?, told, after: self.events })
    }

    /// The data of the run with the corrections as known labels.
    fn domains(&self) -> Result<Domains, a2lp::Error> {
        // In the order in which the classes were named, so that the numbers of classes stay.
        let given: BTreeSet<&str> = self.corrections.values().map(String::as_str).collect();
        let named = self.named.iter().map(String::as_str).filter(|name| given.contains(name));
        let domains = self.task.domains.clone().with_classes(named)?;
        let classes = domains.source_labels().classes();
        let class = |(&item, name): (&usize, &String)| Some((item, classes.find(name)?));
        let known: KnownLabels = self.corrections.iter().filter_map(class).collect();
        domains.with_known(known)
    }
}
