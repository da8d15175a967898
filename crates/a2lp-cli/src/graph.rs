//! `a2lp graph`: the neighbour graph as a file.

use crate::Outcome;
use crate::args::GraphArgs;
use crate::label::input::refuse_empty;
use crate::memory;
use crate::output::refuse_existing;
use crate::progress::ProgressBars;
use a2lp::{GraphReport, Parameters, Shape, Unknown, neighbour_graph};
use a2lp_data::{ArrayFile, FeatureFile};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

#[derive(Serialize)]
struct Summary {
    out: PathBuf,
    nodes: usize,
    columns: usize,
    entries: usize,
    graph: GraphReport,
    search_secs: f64,
    planned_secs: f64,
    peak_bytes: Option<u64>,
}

pub(crate) fn run(args: &GraphArgs) -> anyhow::Result<Outcome> {
    refuse_existing(&args.out, args.force)?;
    let parameters = Parameters::paper()
        .unknown(Unknown::Off)
        .neighbours(args.neighbours)
        .similarity(args.similarity.with_sigma2(args.gauss_sigma2))
        .graph_method(args.graph_method)
        .seed(args.seed)
        .threads(args.threads)
        .check()?;
    let file = FeatureFile::open_set(&args.features, &args.columns.names())?;
    refuse_empty(&file)?;
    let (rows, columns) = (file.rows(), file.columns());
    let shape = Shape { source_rows: 0, target_rows: rows, columns, classes: 0 };
    let plan = parameters.plan(shape);
    memory::check(&plan, args.max_memory)?;
    let features = file.read()?;
    let found = neighbour_graph(features, &parameters, args.symmetric, &ProgressBars::default())?;
    ArrayFile::new().sparse(&found.graph).write(&args.out, args.force)?;

    if let Some(warning) = found.warning() {
        eprintln!("warning: {warning}");
    }
    let summary = Summary {
        out: args.out.clone(),
        nodes: found.graph.nodes(),
        columns,
        entries: found.graph.columns.len(),
        graph: found.report,
        search_secs: found.secs,
        planned_secs: if args.json { plan.on_this_machine().search_secs } else { plan.search_secs },
        peak_bytes: memory::peak(),
    };
    let text = if args.json {
        serde_json::to_string_pretty(&summary)? + "\n"
    } else {
        let (nodes, entries, secs) = (summary.nodes, summary.entries, summary.search_secs);
        format!(
            "{nodes} nodes, {entries} entries, {} in {secs:.2} s; graph in {}\n",
            summary.graph,
            args.out.display()
        )
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(Outcome::Done)
}
