//! A worked example, computed independently: nine points, three classes, k = 2, α = 0.5.

use a2lp::{Domains, FeatureMatrix, FinishedRound, Labels, Observer, Parameters, Solver, label};
use std::sync::Mutex;

fn toy() -> Domains {
    let source = FeatureMatrix::from_rows(&[[2.0, 0.0, 0.0], [0.0, 1.0, 0.2], [0.1, 0.0, 3.0]]).unwrap();
    let target = FeatureMatrix::from_rows(&[
        [1.0, 0.6, 0.0],
        [0.9, 0.2, 0.1],
        [0.3, 1.0, 0.1],
        [0.2, 0.8, 0.6],
        [0.0, 0.5, 1.0],
        [0.1, 0.2, 0.8],
    ])
    .unwrap();
    Domains::new(source, Labels::new(&["0", "1", "2"]), target).unwrap()
}

/// Keeps what each round showed.
#[derive(Default)]
struct Witness(Mutex<Vec<Seen>>);

struct Seen {
    edges: Vec<(usize, usize, f32)>,
    degrees: Vec<f64>,
    f: Vec<Vec<f32>>,
    w: Vec<f32>,
}

impl Observer for Witness {
    fn round(&self, finished: &FinishedRound<'_>) {
        let mut row = Vec::new();
        let mut edges = Vec::new();
        for i in 0..finished.affinity.nodes() {
            finished.affinity.row(i, &mut row);
            edges.extend(row.iter().filter(|e| e.0 as usize > i).map(|e| (i, e.0 as usize, e.1)));
        }
        self.0.lock().unwrap().push(Seen {
            edges,
            degrees: (0..finished.affinity.nodes()).map(|i| finished.affinity.degree(i)).collect(),
            f: (3..9).map(|i| finished.soft_labels.row(i).to_vec()).collect(),
            w: finished.pseudo_labels.confidence().to_vec(),
        });
    }
}

fn close(got: f32, want: f32) {
    assert!((got - want).abs() <= 1e-5, "{got} is not {want}");
}

#[test]
fn graph_scores_weights_and_anchors_of_the_worked_example() {
    for solver in [Solver::Cg, Solver::Dense] {
        let witness = Witness::default();
        let parameters = Parameters::new().neighbours(2).rounds(2).solver(solver).check().unwrap();
        let labelling = label(toy(), &parameters, &witness).unwrap();
        let seen = witness.0.into_inner().unwrap();

        let edges = [
            (0, 3, 1.714986),
            (0, 4, 1.94099),
            (1, 5, 1.907292),
            (1, 6, 1.769231),
            (2, 7, 1.787861),
            (2, 8, 1.933126),
            (3, 4, 1.886303),
            (5, 6, 0.860151),
            (6, 7, 0.877058),
            (7, 8, 1.938175),
        ];
        assert_eq!(seen[0].edges.len(), edges.len());
        for (got, want) in seen[0].edges.iter().zip(edges) {
            assert_eq!((got.0, got.1), (want.0, want.1));
            close(got.2, want.2);
        }
        let degrees =
            [3.655976, 3.676523, 3.720987, 3.601289, 3.827293, 2.767443, 3.50644, 4.603094, 3.871301];
        seen[0].degrees.iter().zip(degrees).for_each(|(got, want)| close(*got as f32, want));

        let f = [
            [0.386903, 0.0, 0.0],
            [0.408987, 0.0, 0.0],
            [0.0, 0.412128, 0.009807],
            [0.0, 0.360471, 0.042178],
            [0.0, 0.045396, 0.343930],
            [0.0, 0.013815, 0.376991],
        ];
        seen[0].f.iter().flatten().zip(f.iter().flatten()).for_each(|(got, want)| close(*got, *want));
        let w = [1.0, 1.0, 0.899509, 0.694707, 0.672223, 0.860852];
        seen[0].w.iter().zip(w).for_each(|(got, want)| close(*got, want));
        assert_eq!(labelling.labels_by_round[0], [0, 0, 1, 1, 2, 2].map(Some));

        let anchors =
            [[0.927267, 0.370383, 0.054699], [0.255806, 0.911727, 0.321430], [0.068119, 0.333843, 0.940164]];
        assert_eq!(labelling.anchors.len(), 3);
        for (class, (anchor, want)) in labelling.anchors.iter().zip(anchors).enumerate() {
            assert_eq!((anchor.class, anchor.round, anchor.items), (class as u32, 1, 2));
            anchor.vector.iter().zip(want).for_each(|(got, want)| close(*got, want));
        }

        let second = [0.462683, 0.702019, 0.692643, 0.478449, 0.454074, 0.597429];
        assert_eq!(labelling.rounds[1].nodes, 12);
        for (item, want) in second.into_iter().enumerate() {
            for (class, &got) in seen[1].f[item].iter().enumerate() {
                close(got, if class == item / 2 { want } else { 0.0 });
            }
            close(seen[1].w[item], 1.0);
        }
    }
}
