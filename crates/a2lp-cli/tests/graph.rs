//! Graphs in and out of files.

use a2lp::NeighbourGraph;
use a2lp_data::{ArrayFile, read_graph};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn a2lp(dir: &Path, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_a2lp")).current_dir(dir).args(args.split_whitespace()).output().unwrap()
}

fn good(output: Output) -> Output {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The demo's domains: 200 source and 200 target rows.
fn domains() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    good(a2lp(dir.path(), "demo --per-class 20 --more-seeds 0 --out ."));
    dir
}

const LABEL: &str = "label --source source.npz --target target.npz";

#[test]
fn a_saved_graph_gives_the_labels_of_a_fresh_one() {
    let dir = domains();
    good(a2lp(dir.path(), "graph --features source.npz --features target.npz --neighbours 15 --out g.npz"));
    let graph = read_graph(&dir.path().join("g.npz")).unwrap();
    assert_eq!(graph.nodes(), 400);
    assert!((0..400).all(|i| graph.starts[i + 1] - graph.starts[i] == 15));
    good(a2lp(dir.path(), &format!("{LABEL} --method a2lp --unknown off --neighbours 15 --out fresh.csv")));
    good(a2lp(dir.path(), &format!("{LABEL} --unknown off --neighbours 15 --graph g.npz --out saved.csv")));
    assert_eq!(
        fs::read(dir.path().join("fresh.csv")).unwrap(),
        fs::read(dir.path().join("saved.csv")).unwrap()
    );
}

#[test]
fn a_symmetric_graph_is_used_as_it_is() {
    let dir = domains();
    for args in ["--out lists.npz", "--symmetric --out sym.npz"] {
        good(a2lp(
            dir.path(),
            &format!("graph --features source.npz --features target.npz --neighbours 15 {args}"),
        ));
    }
    let (lists, sym) = (
        read_graph(&dir.path().join("lists.npz")).unwrap(),
        read_graph(&dir.path().join("sym.npz")).unwrap(),
    );
    // A + Aᵀ by hand.
    let mut dense = vec![0f32; 400 * 400];
    for i in 0..400 {
        for at in lists.starts[i]..lists.starts[i + 1] {
            let j = lists.columns[at] as usize;
            dense[i * 400 + j] += lists.weights[at];
            dense[j * 400 + i] += lists.weights[at];
        }
    }
    for i in 0..400 {
        let row = sym.starts[i]..sym.starts[i + 1];
        assert_eq!(dense[i * 400..][..400].iter().filter(|w| **w > 0.0).count(), row.len());
        row.for_each(|at| {
            assert!((dense[i * 400 + sym.columns[at] as usize] - sym.weights[at]).abs() < 1e-5)
        });
    }
    // Without anchors the two say the same.
    for graph in ["lists", "sym"] {
        good(a2lp(
            dir.path(),
            &format!("{LABEL} --neighbours 15 --rounds 1 --graph {graph}.npz --out {graph}.csv"),
        ));
    }
    let labels = |name: &str| -> Vec<String> {
        let text = fs::read_to_string(dir.path().join(name)).unwrap();
        text.lines().map(|line| line.split(',').nth(2).unwrap().to_string()).collect()
    };
    assert_eq!(labels("lists.csv"), labels("sym.csv"));
    good(a2lp(dir.path(), &format!("{LABEL} --neighbours 15 --rounds 5 --graph sym.npz --out more.csv")));
}

#[test]
fn graphs_that_do_not_fit_are_refused() {
    let dir = domains();
    let write = |name: &str, graph: NeighbourGraph| {
        ArrayFile::new().sparse(&graph).write(&dir.path().join(name), true).unwrap()
    };
    let chain = |nodes: usize| NeighbourGraph {
        starts: (0..=nodes).collect(),
        columns: (0..nodes).map(|i| ((i + 1) % nodes) as u32).collect(),
        weights: vec![1.0; nodes],
    };
    let mut cases = vec![("short", chain(399), "399 rows for 400 nodes")];
    let mut bad = chain(400);
    bad.columns[7] = 400;
    cases.push(("beyond", bad, "row 7 names column 400, beyond the last"));
    let mut bad = chain(400);
    bad.weights[9] = f32::NAN;
    cases.push(("nan", bad, "row 9, column 10: weight NaN"));
    let mut bad = chain(400);
    bad.weights[9] = -1.0;
    cases.push(("negative", bad, "row 9, column 10: weight -1"));
    let mut bad = chain(400);
    (bad.starts[5], bad.starts[6]) = (7, 5);
    cases.push(("starts", bad, "the start of row 5 lies behind its end"));
    let mut bad = chain(400);
    (bad.starts[3], bad.columns[3]) = (2, bad.columns[2]);
    cases.push(("twice", bad, "twice"));
    for (name, graph, message) in cases {
        write("g.npz", graph);
        let out = a2lp(dir.path(), &format!("{LABEL} --graph g.npz --out {name}.csv"));
        let text = String::from_utf8_lossy(&out.stderr).to_string();
        assert_eq!(out.status.code(), Some(2), "{name}: {text}");
        assert!(text.contains(message), "{name}: {text}");
    }
    let out = a2lp(dir.path(), &format!("{LABEL} --graph source.npz --out x.csv"));
    assert!(
        String::from_utf8_lossy(&out.stderr)
            .contains("source.npz: not a sparse matrix of scipy.sparse.save_npz")
    );
    write("g.npz", chain(400));
    let out = a2lp(dir.path(), &format!("{LABEL} --graph g.npz --source-nodes centres --out x.csv"));
    assert!(String::from_utf8_lossy(&out.stderr).contains("neither centres nor the full graph"));
}

#[test]
fn every_search_names_itself_and_its_recall() {
    let dir = domains();
    for method in ["exact", "screened", "auto"] {
        let out = good(a2lp(
            dir.path(),
            &format!("graph --features source.npz --out {method}.npz --graph-method {method} --json"),
        ));
        let summary: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let named = if method == "auto" { "exact" } else { method };
        assert_eq!(summary["graph"]["method"], named);
        assert_eq!(summary["graph"]["recall"], 1.0);
    }
    assert_eq!(
        fs::read(dir.path().join("exact.npz")).unwrap(),
        fs::read(dir.path().join("auto.npz")).unwrap()
    );
}

#[test]
fn a_file_without_rows_has_no_graph() {
    let dir = tempfile::tempdir().unwrap();
    ArrayFile::new().matrix("features", 0, 5, &[]).write(&dir.path().join("none.npy"), false).unwrap();
    for search in ["auto", "exact", "screened", "pruned", "nndescent"] {
        let output =
            a2lp(dir.path(), &format!("graph --features none.npy --graph-method {search} --out g.npz"));
        assert_eq!(output.status.code(), Some(2));
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("none.npy: 0 rows of 5 features"), "{told}");
    }
}
