//! The run record: what was run, on what, what came of it. Enough to run it again and to compare.

use a2lp::evaluation::{RoundScore, Score};
use a2lp::{CheckedParameters, GraphReport, Labelling, Round, Status};
use a2lp_data::FeatureFile;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Everything about one run.
#[derive(Serialize)]
pub(crate) struct Record<'a> {
    pub(crate) a2lp: &'static str,
    pub(crate) command: Vec<String>,
    pub(crate) finished_unix_secs: u64,
    pub(crate) inputs: Inputs,
    pub(crate) settings: Settings<'a>,
    pub(crate) summary: &'a Summary,
    pub(crate) evaluation: Option<Evaluation>,
    pub(crate) graph: Option<&'a GraphReport>,
    pub(crate) rounds: &'a [Round],
    pub(crate) timings: Timings,
    pub(crate) memory: Memory,
}

#[derive(Serialize)]
pub(crate) struct Memory {
    pub(crate) planned_bytes: u64,
    /// Most that the process held; only where the system tells.
    pub(crate) peak_bytes: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct Inputs {
    pub(crate) source: Input,
    pub(crate) source_labels: PathBuf,
    pub(crate) target: Input,
}

#[derive(Serialize)]
pub(crate) struct Input {
    path: PathBuf,
    rows: usize,
    columns: usize,
    element_type: String,
}

impl Input {
    pub(crate) fn of(file: &FeatureFile) -> Self {
        Input {
            path: file.path().to_path_buf(),
            rows: file.rows(),
            columns: file.columns(),
            element_type: file.element().to_string(),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct Settings<'a> {
    #[serde(flatten)]
    pub(crate) parameters: &'a CheckedParameters,
    pub(crate) resolved_solver: a2lp::Solver,
    pub(crate) max_unreached: f64,
    pub(crate) threads: usize,
}

/// What `--json` prints.
#[derive(Serialize)]
pub(crate) struct Summary {
    pub(crate) out: PathBuf,
    pub(crate) items: usize,
    pub(crate) labelled: usize,
    pub(crate) low_confidence: usize,
    pub(crate) weak: usize,
    pub(crate) unreached: usize,
    pub(crate) mean_confidence: f64,
    pub(crate) converged: bool,
    pub(crate) rounds: usize,
    pub(crate) class_counts: BTreeMap<String, usize>,
    pub(crate) accuracy: Option<f64>,
    pub(crate) mean_class_accuracy: Option<f64>,
    pub(crate) warnings: Vec<WarningLine>,
}

/// A warning in words and in numbers.
#[derive(Serialize)]
pub(crate) struct WarningLine {
    pub(crate) message: String,
    #[serde(flatten)]
    pub(crate) detail: a2lp::Warning,
}

#[derive(Serialize)]
pub(crate) struct Evaluation {
    #[serde(flatten)]
    pub(crate) score: Score,
    pub(crate) rounds: Vec<RoundScore>,
}

#[derive(Serialize)]
pub(crate) struct Timings {
    pub(crate) read_secs: f64,
    pub(crate) neighbours_secs: f64,
    pub(crate) rounds_secs: f64,
    pub(crate) total_secs: f64,
}

impl Summary {
    pub(crate) fn new(out: &Path, labelling: &Labelling, score: Option<&Score>) -> Self {
        let pseudo = &labelling.pseudo_labels;
        let counts = pseudo.class_counts();
        Summary {
            out: out.to_path_buf(),
            items: pseudo.len(),
            labelled: pseudo.count(Status::Labelled),
            low_confidence: pseudo.count(Status::LowConfidence),
            weak: pseudo.count(Status::Weak),
            unreached: pseudo.count(Status::Unreached),
            mean_confidence: labelling.rounds.last().map_or(0.0, |round| round.mean_confidence),
            converged: labelling.converged(),
            rounds: labelling.rounds.len(),
            class_counts: labelling.classes.names().iter().cloned().zip(counts).collect(),
            accuracy: score.map(|s| s.accuracy),
            mean_class_accuracy: score.map(|s| s.mean_class_accuracy),
            warnings: labelling
                .warnings()
                .into_iter()
                .map(|detail| WarningLine { message: detail.to_string(), detail })
                .collect(),
        }
    }
}
