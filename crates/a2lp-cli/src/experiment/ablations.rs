//! One thing changed at a time: similarity and k (figure 3), α (table 7), anchor weights (table 3), source nodes
//! (table 2). Runs that differ in nothing the graph depends on share one neighbour search.

use super::{Accuracy, Finding, Study, clusters, dot_chart, once, owned, run_pair, sample, shared_graph};
use crate::Outcome;
use crate::args::{AlphaArgs, ExperimentArgs, SimilarityArgs};
use crate::table::{percent, render};
use a2lp::{AnchorWeights, NeighbourGraph, Neighbours, Similarity, Solver, SourceNodes};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::cell::OnceCell;

/// Label propagation and A²LP of one setting.
#[derive(Serialize, Deserialize)]
struct Setting {
    lp: Accuracy,
    a2lp: Accuracy,
    unreached: usize,
    converged: bool,
}

impl Setting {
    fn of(run: &super::Labelled) -> anyhow::Result<Self> {
        Ok(Setting {
            lp: run.first_accuracy()?,
            a2lp: run.accuracy()?,
            unreached: run.labelling.rounds.last().map_or(0, |round| round.unreached),
            converged: run.labelling.converged(),
        })
    }

    fn row(&self, name: String) -> Vec<String> {
        let mut row = vec![name];
        row.extend(
            [&self.lp, &self.a2lp].into_iter().flat_map(|a| [percent(a.overall), percent(a.class_mean)]),
        );
        row.push(self.unreached.to_string());
        row
    }
}

const HEADER: [&str; 6] = ["", "LP %", "class mean %", "A²LP %", "class mean %", "unreached"];
const CSV: [&str; 6] = ["setting", "lp", "lp_class_mean", "a2lp", "a2lp_class_mean", "unreached"];

fn finding(title: String, rows: Vec<Vec<String>>) -> Finding {
    Finding {
        title,
        text: render(&HEADER, &rows),
        header: owned(&CSV),
        chart: Some(dot_chart(&rows, &[(1, "LP %"), (3, "A²LP %")])),
        rows,
    }
}

pub(super) fn alpha(args: &AlphaArgs) -> anyhow::Result<Outcome> {
    let study = Study::new("alpha", &args.common)?;
    let (source, target) = study.pair_names()?;
    let notebook =
        study.notebook(&[&source, &target], args.alphas.len(), json!({ "alphas": args.alphas }))?;
    let (source_data, target_data) = sample::pair(&study, &source, &target, args.common.seeds[0])?;
    let graph = OnceCell::new();
    let mut rows = Vec::new();
    for &alpha in &args.alphas {
        // α above 1 leaves conjugate gradients without ground; α = 1 itself is singular.
        let solver = if alpha < 1.0 { Solver::Cg } else { Solver::Dense };
        let cell = notebook.cell(&format!("alpha {alpha}"), || {
            let graph = once(&graph, || shared_graph(&source_data, &target_data, study.parameters()))?;
            let parameters = study.parameters().alpha(alpha).solver(solver);
            Setting::of(&run_pair(&source_data, &target_data, parameters, Some(graph))?)
        })?;
        rows.push(cell.row(format!("α = {alpha}")));
    }
    let title = format!("{}, {source}→{target}: how far labels travel", study.manifest.name);
    study.finish(&notebook, finding(title, rows))
}

pub(super) fn weights(args: &ExperimentArgs) -> anyhow::Result<Outcome> {
    let study = Study::new("weights", args)?;
    let (source, target) = study.pair_names()?;
    let notebook = study.notebook(&[&source, &target], 2, json!(null))?;
    let (source_data, target_data) = sample::pair(&study, &source, &target, args.seeds[0])?;
    let graph = OnceCell::new();
    let mut rows = Vec::new();
    for (name, weights) in [("entropy", AnchorWeights::Entropy), ("uniform", AnchorWeights::Uniform)] {
        let cell = notebook.cell(name, || {
            let graph = once(&graph, || shared_graph(&source_data, &target_data, study.parameters()))?;
            let parameters = study.parameters().anchor_weights(weights);
            Setting::of(&run_pair(&source_data, &target_data, parameters, Some(graph))?)
        })?;
        rows.push(cell.row(name.into()));
    }
    let title = format!("{}, {source}→{target}: weights of the items in an anchor", study.manifest.name);
    study.finish(&notebook, finding(title, rows))
}

pub(super) fn variant(args: &ExperimentArgs) -> anyhow::Result<Outcome> {
    let study = Study::new("variant", args)?;
    let (source, target) = study.pair_names()?;
    let notebook = study.notebook(&[&source, &target], 3, json!(null))?;
    let mut rows = Vec::new();
    for (name, nodes, clustered) in [
        ("all source rows", SourceNodes::All, false),
        ("class centres", SourceNodes::Centres, false),
        ("clusters of each class", SourceNodes::All, true),
    ] {
        let cell = notebook.cell(name, || {
            let (mut source_data, target_data) = sample::pair(&study, &source, &target, args.seeds[0])?;
            if clustered {
                source_data = clusters::centres(&source_data)?;
            }
            let parameters = study.parameters().source_nodes(nodes);
            Setting::of(&run_pair(&source_data, &target_data, parameters, None)?)
        })?;
        rows.push(cell.row(name.into()));
    }
    let title = format!("{}, {source}→{target}: source nodes", study.manifest.name);
    study.finish(&notebook, finding(title, rows))
}

pub(super) fn similarity(args: &SimilarityArgs) -> anyhow::Result<Outcome> {
    let study = Study::new("similarity", &args.common)?;
    let (source, target) = study.pair_names()?;
    let further = json!({ "k_list": args.k_list, "gauss_sigma2": args.gauss_sigma2 });
    let notebook =
        study.notebook(&[&source, &target], Similarity::WORDS.len() * args.k_list.len(), further)?;
    let (source_data, target_data) = sample::pair(&study, &source, &target, args.common.seeds[0])?;
    let largest = args.k_list.iter().filter_map(|k| match k {
        Neighbours::Nearest(k) => Some(*k),
        Neighbours::All => None,
    });
    let largest = largest.max().unwrap_or(1);
    let mut rows = Vec::new();
    for (name, similarity) in Similarity::WORDS {
        let similarity = similarity.with_sigma2(args.gauss_sigma2);
        let graph: OnceCell<NeighbourGraph> = OnceCell::new();
        for &k in &args.k_list {
            let word = match k {
                Neighbours::Nearest(k) => k.to_string(),
                Neighbours::All => "all".into(),
            };
            let parameters = study.parameters().similarity(similarity);
            let cell = notebook.cell(&format!("{name}, k {word}"), || {
                let run = match k {
                    Neighbours::All => run_pair(&source_data, &target_data, parameters.full_graph(), None)?,
                    Neighbours::Nearest(k) => {
                        let graph = once(&graph, || {
                            shared_graph(&source_data, &target_data, parameters.clone().neighbours(largest))
                        })?;
                        let graph = graph.nearest(k);
                        run_pair(&source_data, &target_data, parameters.neighbours(k), Some(&graph))?
                    }
                };
                Setting::of(&run)
            })?;
            rows.push(cell.row(format!("{name}, k = {word}")));
        }
    }
    let title = format!("{}, {source}→{target}: similarity and neighbours", study.manifest.name);
    study.finish(&notebook, finding(title, rows))
}
