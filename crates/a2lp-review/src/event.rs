//! What a person did, one event for each action. A session is its events in order, and nothing else.

use crate::audit::{FIRST_SET, SETS};
use serde::{Deserialize, Serialize};

/// One action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// Labels of rows, chosen because they are worth it. They enter the propagation. `None` takes a label back.
    Correct {
        /// Rows and their classes.
        labels: Vec<(u64, Option<String>)>,
    },
    /// The answer about a row that was drawn at random. It does not enter the propagation.
    Answer {
        /// The row.
        row: u64,
        /// Its class; `None` if no class fits or the person cannot tell.
        said: Option<String>,
    },
    /// Takes the last correction or answer back that was not taken back yet.
    Undo,
    /// What the audit is to show.
    Promise(AuditSettings),
    /// The audit speaks of the labels as they are now.
    Version {
        /// Counted from 1.
        number: u32,
    },
    /// The whole method ran again with the corrections of the first so many events, and its labels are in place.
    Rerun {
        /// Events whose corrections it was told.
        after: u64,
    },
}

/// What an audit is to show, as a person sets it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditSettings {
    /// The share of wrong labels that is allowed.
    pub max_error: f64,
    /// The set that is tested first, in tenths of the items.
    pub first_set: usize,
    /// The person will correct nothing any more, so that there will be one version only.
    pub final_labels: bool,
}

impl Default for AuditSettings {
    fn default() -> Self {
        AuditSettings { max_error: 0.05, first_set: FIRST_SET, final_labels: false }
    }
}

impl AuditSettings {
    pub(crate) fn problem(&self) -> Option<&'static str> {
        match () {
            () if !(self.max_error >= 0.001 && self.max_error <= 0.5) => {
                Some("the allowed share of wrong labels must lie between 0.001 and 0.5")
            }
            () if !(1..=SETS).contains(&self.first_set) => Some("the first set is one of 1 to 10"),
            () => None,
        }
    }
}
