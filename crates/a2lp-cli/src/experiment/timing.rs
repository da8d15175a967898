//! What the parts cost (table 8): exact search against NN-Descent, dense solver against conjugate gradients.

use super::{Finding, Study, owned, run_pair, sample};
use crate::Outcome;
use crate::args::ExperimentArgs;
use crate::table::{percent, render};
use a2lp::{GraphMethod, Solver};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Serialize, Deserialize)]
struct Timed {
    accuracy: f64,
    neighbours_secs: f64,
    solve_secs: f64,
    recall: f64,
}

pub(super) fn run(args: &ExperimentArgs) -> anyhow::Result<Outcome> {
    let study = Study::new("timing", args)?;
    let (source, target) = study.pair_names()?;
    let notebook = study.notebook(&[&source, &target], 4, json!(null))?;
    let mut rows = Vec::new();
    for (search, method) in [("exact", GraphMethod::Exact), ("NN-Descent", GraphMethod::Nndescent)] {
        for (solving, solver) in [("dense", Solver::Dense), ("conjugate gradients", Solver::Cg)] {
            let cell: Timed = notebook.cell(&format!("{search}, {solving}"), || {
                let (source_data, target_data) = sample::pair(&study, &source, &target, args.seeds[0])?;
                let parameters = study.parameters().graph_method(method).solver(solver);
                let run = run_pair(&source_data, &target_data, parameters, None)?;
                Ok(Timed {
                    accuracy: run.accuracy()?.overall,
                    neighbours_secs: run.labelling.neighbours_secs,
                    solve_secs: run.labelling.rounds.iter().map(|round| round.solve_secs).sum(),
                    recall: run.labelling.graph.map_or(1.0, |graph| graph.recall),
                })
            })?;
            rows.push(vec![
                search.to_string(),
                solving.to_string(),
                format!("{:.3}", cell.neighbours_secs),
                format!("{:.4}", cell.recall),
                format!("{:.3}", cell.solve_secs),
                percent(cell.accuracy),
            ]);
        }
    }
    let header = ["search", "solver", "neighbours s", "recall", "all solves s", "accuracy %"];
    let csv = ["search", "solver", "neighbours_secs", "recall", "solve_secs", "accuracy"];
    let title = format!("{}, {source}→{target}: what the parts cost", study.manifest.name);
    let text = render(&header, &rows);
    study.finish(&notebook, Finding { title, text, header: owned(&csv), rows, chart: None })
}
