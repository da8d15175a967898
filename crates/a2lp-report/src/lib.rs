//! A run as one HTML page, and as figures for a paper.
//!
//! ```text
//! Watcher (looks on at a run) ─► Trace ─┐
//! RunRecord (what was run) ─────────────┴─► Run ─► page, figures
//! ```
//!
//! A [`Trace`] and a [`RunRecord`] are small however large the run was; kept beside the labels they are all a page
//! needs, also after the features are gone. The page is one file: no network, no other file, light and dark.

#![warn(clippy::unwrap_used)]

mod charts;
mod figures;
mod page;
mod pca;
pub mod record;
mod svg;
pub mod trace;
mod tsne;
mod watch;
mod words;

pub use figures::{FigureFile, figures};
pub use page::page;
pub use record::RunRecord;
pub use trace::Trace;
pub use tsne::lay_out;
pub use watch::{Layout, Watcher};

use serde::{Deserialize, Serialize};

/// A labelling run to be shown.
#[derive(Clone, Debug)]
pub struct Run {
    /// What to call it.
    pub title: String,
    /// What was run and what came of it.
    pub record: RunRecord,
    /// What was seen on the way; without it the page has fewer sections.
    pub trace: Option<Trace>,
}

/// The results of an experiment to be shown.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Experiment {
    /// What was done.
    pub title: String,
    /// The tables as printed.
    pub text: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// The rows of the results.
    pub rows: Vec<Vec<String>>,
    /// What to draw.
    pub chart: Option<Chart>,
    /// More of it: a title, a sentence, the numbers.
    #[serde(default)]
    pub charts: Vec<(String, String, Chart)>,
    /// Pictures: a title and a PNG in base64.
    pub pictures: Vec<(String, String)>,
    /// The command line.
    pub command: Vec<String>,
    /// Everything that was set.
    pub settings: serde_json::Value,
}

/// Numbers to be drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Chart {
    /// Lines over a common axis.
    Lines {
        /// The name of the axis.
        x: String,
        /// Names and points.
        series: Vec<(String, Vec<(f64, f64)>)>,
    },
    /// Dots on a line each.
    Dots {
        /// What the dots of a line are.
        series: Vec<String>,
        /// The name of each line and where its dots are.
        lines: Vec<(String, Vec<f64>)>,
    },
}

/// A part of a page.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Chapter {
    /// A labelling run.
    Run(Run),
    /// An experiment.
    Experiment(Experiment),
}

impl Chapter {
    /// What to call it.
    pub fn title(&self) -> &str {
        match self {
            Chapter::Run(run) => &run.title,
            Chapter::Experiment(experiment) => &experiment.title,
        }
    }
}
