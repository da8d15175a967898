//! A worked example: nine points, three classes, k = 2, α = 0.5. `crates/a2lp-data/tests/two_domains/make.py` computes it
//! independently, in NumPy, and writes `worked_example.json`.

use a2lp::{Domains, FeatureMatrix, FinishedRound, Labels, Observer, Parameters, Run, Solver};
use serde_json::Value;
use std::sync::Mutex;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> FeatureMatrix {
    let rows: Vec<Vec<f32>> = value
        .as_array()
        .unwrap()
        .iter()
        .map(|row| numbers(row).into_iter().map(|number| number as f32).collect())
        .collect();
    FeatureMatrix::from_rows(&rows).unwrap()
}

/// What the observer saw of a round.
struct RoundView {
    edges: Vec<(usize, usize, f32)>,
    degrees: Vec<f64>,
    f: Vec<f32>,
    confidence: Vec<f32>,
}

#[derive(Default)]
struct Recorder(Mutex<Vec<RoundView>>);

impl Observer for Recorder {
    fn round(&self, finished: &FinishedRound<'_>) {
        let nodes = finished.affinity.nodes();
        let mut row = Vec::new();
        let mut edges = Vec::new();
        for i in 0..nodes {
            finished.affinity.row(i, &mut row);
            row.sort_by_key(|edge| edge.0);
            edges.extend(row.iter().filter(|edge| (edge.0 as usize) < i).map(|e| (i, e.0 as usize, e.1)));
        }
        self.0.lock().unwrap().push(RoundView {
            edges,
            degrees: (0..nodes).map(|i| finished.affinity.degree(i)).collect(),
            f: (3..9).flat_map(|i| finished.soft_labels.row(i).to_vec()).collect(),
            confidence: finished.pseudo_labels.confidence().to_vec(),
        });
    }
}

fn all_close(have: impl IntoIterator<Item = f64>, want: &[f64]) {
    let have: Vec<f64> = have.into_iter().collect();
    assert_eq!(have.len(), want.len());
    for (have, want) in have.iter().zip(want) {
        assert!((have - want).abs() <= 1e-5, "{have} is not {want}");
    }
}

#[test]
fn graph_scores_weights_and_anchors_of_the_worked_example() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/worked_example.json");
    let want: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for solver in [Solver::Cg, Solver::Dense] {
        let (source, target) = (matrix(&want["source"]), matrix(&want["target"]));
        let domains = Domains::new(source, Labels::new(&["0", "1", "2"]), target).unwrap();
        let recorder = Recorder::default();
        let parameters = Parameters::paper().neighbours(2).rounds(2).solver(solver).check().unwrap();
        let labelling = Run::new(domains, &parameters).observe(&recorder).label().unwrap();
        let seen = recorder.0.into_inner().unwrap();
        assert_eq!(seen.len(), 2);
        for (round, want) in want["rounds"].as_array().unwrap().iter().enumerate() {
            let edges: Vec<Vec<f64>> = want["edges"].as_array().unwrap().iter().map(numbers).collect();
            let have = &seen[round];
            assert_eq!(have.edges.len(), edges.len());
            for (have, want) in have.edges.iter().zip(&edges) {
                all_close([have.0 as f64, have.1 as f64, f64::from(have.2)], want);
            }
            all_close(have.degrees.iter().copied(), &numbers(&want["degrees"]));
            let f: Vec<f64> = want["f"].as_array().unwrap().iter().flat_map(numbers).collect();
            all_close(have.f.iter().map(|&value| f64::from(value)), &f);
            all_close(have.confidence.iter().map(|&w| f64::from(w)), &numbers(&want["confidence"]));
            let labels = labelling.labels_by_round[round].iter().map(|label| f64::from(label.unwrap()));
            all_close(labels, &numbers(&want["labels"]));
        }
        // The last round makes no anchors any more.
        let anchors = want["rounds"][0]["anchors"].as_array().unwrap();
        assert_eq!(labelling.anchors.len(), anchors.len());
        for (class, (anchor, want)) in labelling.anchors.iter().zip(anchors).enumerate() {
            assert_eq!((anchor.class, anchor.round, anchor.items), (class as u32, 1, 2));
            all_close(anchor.vector.iter().map(|&value| f64::from(value)), &numbers(want));
        }
    }
}
