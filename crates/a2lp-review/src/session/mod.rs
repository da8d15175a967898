//! A review session: events in, labels out. No files and no network.
//!
//! The state of a session follows from its events alone (`state`). Labels follow from the corrections, through
//! [`LiveLabels`](a2lp::LiveLabels). The audit follows from the answers and the labels (`check`).

mod check;
mod items;
mod state;

pub(crate) use check::delta_of;
pub use check::{CheckView, SetView};
pub use items::{Group, ItemView, Origin};

use crate::draw::Seed;
use crate::error::ReviewError;
use crate::event::Event;
use a2lp::{CheckedParameters, Domains, KnownLabels, Labelling, LiveLabels, NeighbourGraph, Observer, Run};
use check::AuditedVersion;
use serde::Serialize;
use state::{Named, State};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Longest name of a class, in bytes.
const MAX_NAME: usize = 200;

/// What is reviewed: a run that can be run again, and what its items are called.
#[derive(Clone)]
pub struct Task {
    /// The data of the run.
    pub domains: Domains,
    /// Its parameters.
    pub parameters: CheckedParameters,
    /// Its graph, if it was given one.
    pub graph: Option<NeighbourGraph>,
    /// Row of each item in the target's files, where rows were left out.
    pub rows: Option<Vec<usize>>,
    /// Ids of the items.
    pub ids: Option<Vec<String>>,
    /// What the page calls it.
    pub title: String,
    /// Tells this run from others.
    pub fingerprint: String,
}

impl Task {
    /// The row of an item.
    pub fn row(&self, item: usize) -> u64 {
        self.rows.as_ref().map_or(item, |rows| rows[item]) as u64
    }

    /// The item of a row.
    pub fn item(&self, row: u64) -> Option<usize> {
        let row = usize::try_from(row).ok()?;
        match &self.rows {
            Some(rows) => rows.binary_search(&row).ok(),
            None => (row < self.domains.target_rows()).then_some(row),
        }
    }

    /// What the run itself was told of its items.
    pub(crate) fn known(&self) -> Named {
        let classes = self.domains.source_labels().classes();
        self.domains.known().iter().map(|(item, class)| (item, classes.name(class).to_string())).collect()
    }
}

/// What an action did to the labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Effect {
    /// Items that the person spoke of.
    pub items: Vec<usize>,
    /// Other items whose label changed.
    pub changed: Vec<usize>,
    /// Items that were passed over because they were answered in the check.
    pub passed_over: usize,
}

/// A review under way.
pub struct Session {
    task: Arc<Task>,
    live: LiveLabels,
    /// The corrections that the last full run was told.
    told: Named,
    seed: Seed,
    /// Items in the order in which an audit draws them.
    draw: Vec<usize>,
    state: State,
    audited: Option<AuditedVersion>,
}

/// The whole method with the corrections so far, to be run beside the session.
pub struct FullRun {
    task: Arc<Task>,
    domains: Domains,
    told: Named,
    after: u64,
}

impl FullRun {
    /// The run that a review with these events stands on: the first one, or the last one with corrections.
    pub fn last(task: Arc<Task>, events: &[Event]) -> Result<FullRun, ReviewError> {
        let last = events.iter().rev().find_map(|event| match event {
            Event::Rerun { after } => Some(*after),
            _ => None,
        });
        let told = usize::try_from(last.unwrap_or(0)).unwrap_or(usize::MAX).min(events.len());
        let state = State::after(task, &events[..told]).map_err(ReviewError::Refused)?;
        state.full_run().map_err(ReviewError::Method)
    }

    /// The data that it runs on.
    pub fn domains(&self) -> &Domains {
        &self.domains
    }

    /// Runs it.
    pub fn go(self, observer: &dyn Observer) -> Result<FinishedRun, a2lp::Error> {
        let FullRun { task, domains, told, after } = self;
        let run = Run::new(domains, &task.parameters).graph(task.graph.clone());
        Ok(FinishedRun { live: run.observe(observer).live()?, told, after })
    }
}

/// A full run that is done.
pub struct FinishedRun {
    live: LiveLabels,
    told: Named,
    after: u64,
}

impl FinishedRun {
    /// The event that puts it in place.
    pub fn event(&self) -> Event {
        Event::Rerun { after: self.after }
    }

    /// Its labels.
    pub fn labelling(&self) -> &Labelling {
        self.live.labelling()
    }
}

impl Session {
    /// Takes a review up where its events left it. `finished` is the run that [`FullRun::last`] names.
    pub fn new(
        task: Arc<Task>,
        seed: Seed,
        events: &[Event],
        finished: FinishedRun,
    ) -> Result<Self, ReviewError> {
        let state = State::after(task.clone(), events).map_err(ReviewError::Refused)?;
        let mut draw: Vec<usize> = (0..task.domains.target_rows()).collect();
        draw.sort_by_cached_key(|&item| (seed.key(task.row(item)), item));
        let FinishedRun { live, told, .. } = finished;
        let mut session = Session { task, live, told, seed, draw, state, audited: None };
        session.propagate()?;
        Ok(session)
    }

    /// What is reviewed.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The labels as they are now. What was answered in the check is not among them.
    pub fn labelling(&self) -> &Labelling {
        self.live.labelling()
    }

    /// The seed of the draw.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Items that a person corrected, with the class of each.
    pub fn corrections(&self) -> &BTreeMap<usize, String> {
        &self.state.corrections
    }

    /// Items that a person answered in the check, in that order, with the class of each; `None` where no class fits.
    pub fn answers(&self) -> &[(usize, Option<String>)] {
        &self.state.answers
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.state.events
    }

    /// Can something be taken back?
    pub fn can_undo(&self) -> bool {
        self.state.can_undo()
    }

    /// Could this event happen now?
    pub fn check(&self, event: &Event) -> Result<(), ReviewError> {
        self.state.check(event).map_err(ReviewError::Refused)
    }

    /// Lets an event happen.
    pub fn apply(&mut self, event: &Event) -> Result<Effect, ReviewError> {
        let before = self.labelling().pseudo_labels.labels().to_vec();
        let items = self.state.items_of(event);
        self.state.apply(event).map_err(ReviewError::Refused)?;
        match event {
            Event::Answer { .. } => self.take_answer(),
            Event::Correct { .. } | Event::Undo | Event::Promise(_) => self.audited = None,
            Event::Version { .. } | Event::Rerun { .. } => {}
        }
        self.propagate()?;
        let passed_over = match event {
            Event::Correct { labels } => labels.len() - items.len(),
            _ => 0,
        };
        Ok(self.effect(&before, items, passed_over))
    }

    /// Puts a finished full run in place.
    pub fn replace(&mut self, finished: FinishedRun) -> Result<Effect, ReviewError> {
        let before = self.labelling().pseudo_labels.labels().to_vec();
        self.state.apply(&finished.event()).map_err(ReviewError::Refused)?;
        (self.live, self.told, self.audited) = (finished.live, finished.told, None);
        self.propagate()?;
        Ok(self.effect(&before, Vec::new(), 0))
    }

    /// Do the corrections call for a full run? Not if the last one knew them all, nor if labels are final.
    pub fn is_run_due(&self) -> bool {
        self.state.corrections != self.told && !self.state.is_final()
    }

    /// The full run that the corrections call for, with a copy of the data.
    pub fn due_run(&self) -> Result<Option<FullRun>, ReviewError> {
        Ok(self.is_run_due().then(|| self.state.full_run()).transpose()?)
    }

    fn effect(&self, before: &[Option<u32>], items: Vec<usize>, passed_over: usize) -> Effect {
        let after = self.labelling().pseudo_labels.labels();
        let spoken_of: HashSet<usize> = items.iter().copied().collect();
        let others = |item: &usize| before[*item] != after[*item] && !spoken_of.contains(item);
        Effect { changed: (0..after.len()).filter(others).collect(), items, passed_over }
    }

    /// Labels that follow from the corrections.
    fn propagate(&mut self) -> Result<(), ReviewError> {
        let mut known = KnownLabels::new();
        for (&item, name) in &self.state.corrections {
            known.set(item, Some(self.live.add_class(name)?));
        }
        // Classes named in the check exist as well.
        for name in &self.state.named {
            self.live.add_class(name)?;
        }
        if self.live.labelling().known != known {
            self.live.set_known(known)?;
        }
        Ok(())
    }
}

/// A name that a class can have.
fn checked_name(name: &str) -> Result<(), String> {
    match () {
        () if name.trim().is_empty() => Err("a class needs a name".into()),
        () if name.len() > MAX_NAME => Err(format!("a class name has at most {MAX_NAME} bytes")),
        () if name.chars().any(char::is_control) => Err("a class name has no control characters".into()),
        () => Ok(()),
    }
}
