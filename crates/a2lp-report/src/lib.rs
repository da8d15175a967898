//! Reports: a run as one HTML page, and its charts as figures for a paper.
//!
//! ```text
//! Watcher (observes a run) ─► Trace ─┐
//! RunRecord (settings, figures) ─────┴─► Run ─► page, figures
//! ```
//!
//! A [`Trace`] and a [`RunRecord`] are small however large the run was. A page needs nothing else, so it can be drawn after the
//! features are gone. The page is one file and loads nothing.
//!
//! ```
//! use a2lp::{Domains, FeatureMatrix, Labels, Parameters};
//! use a2lp_report::record::Circumstances;
//! use a2lp_report::{Chapter, Layout, Run, RunRecord, Watcher, page};
//!
//! let rows = FeatureMatrix::from_rows(&[[1.0, 0.1], [0.9, 0.2], [0.1, 1.0], [0.2, 0.9]])?;
//! let domains = Domains::new(rows.clone(), Labels::new(&["mug", "mug", "bike", "bike"]), rows)?;
//! let parameters = Parameters::new().neighbours(3).rounds(2).check()?;
//!
//! let watcher = Watcher::new(&domains, &parameters, None);
//! let layout = Layout::new(domains.features(), &parameters)?;
//! let labelling = a2lp::Run::new(domains, &parameters).observe(&watcher).label()?;
//! let trace = watcher.trace(&layout, &labelling, None, None);
//! let record = RunRecord::new(&labelling, &parameters, None, None, Circumstances::default())?;
//! let html = page(&[Chapter::Run(Run { title: "Mugs and bikes".into(), record, trace: Some(trace) })]);
//! assert!(html.contains("Mugs and bikes"));
//! # Ok::<(), a2lp::Error>(())
//! ```

#![warn(clippy::unwrap_used)]

mod charts;
mod figures;
mod graph_shape;
mod items;
mod map;
mod page;
mod pca;
pub mod record;
mod svg;
pub mod trace;
mod tsne;
mod watch;
mod words;

pub use figures::{FigureFile, figures};
pub use page::{MAP_SCRIPT, STYLE, page};
pub use record::RunRecord;
pub use svg::class_colour;
pub use trace::Trace;
pub use tsne::lay_out;
pub use watch::{Layout, Watcher};

use serde::{Deserialize, Serialize};

/// A labelling run to be shown.
#[derive(Clone, Debug)]
pub struct Run {
    /// The title.
    pub title: String,
    /// Its settings and results.
    pub record: RunRecord,
    /// What was observed during the run; without it the page has fewer sections.
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
