//! Propagation on hand-made and random graphs against a dense solution of its own.

use super::*;
use crate::affinity::symmetrise;
use crate::neighbours::{NeighbourLists, Ranked};
use crate::parameters::Parameters;
use crate::similarity::Similarity;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// From, to, weight.
type Edge = (usize, usize, f32);

/// A graph from directed weighted edges. Weights are taken as they are.
fn graph(nodes: usize, edges: &[Edge]) -> Affinity<'static> {
    let mut lists = NeighbourLists::new();
    for i in 0..nodes {
        let mut list: Vec<Ranked> =
            edges.iter().filter(|e| e.0 == i).map(|e| Ranked::new(e.2, e.1 as u32)).collect();
        list.sort_unstable_by(|a, b| b.cmp(a));
        lists.push(&list, list.len());
    }
    symmetrise(&lists, Similarity::Cosine).unwrap()
}

/// (I − αS)⁻¹Y by Gauss–Jordan elimination on the definition, in f64.
fn closed_form(
    nodes: usize,
    edges: &[Edge],
    labels: &[Option<ClassId>],
    classes: usize,
    alpha: f64,
) -> Vec<Vec<f64>> {
    let mut a = vec![vec![0f64; nodes]; nodes];
    for &(i, j, w) in edges {
        a[i][j] += f64::from(w);
        a[j][i] += f64::from(w);
    }
    let degree: Vec<f64> = a.iter().map(|row| row.iter().sum()).collect();
    let mut system: Vec<Vec<f64>> = (0..nodes)
        .map(|i| {
            let mut row: Vec<f64> = (0..nodes)
                .map(|j| {
                    let s = if a[i][j] > 0.0 { a[i][j] / (degree[i] * degree[j]).sqrt() } else { 0.0 };
                    f64::from(u8::from(i == j)) - alpha * s
                })
                .collect();
            row.extend((0..classes).map(|c| f64::from(u8::from(labels[i] == Some(c as ClassId)))));
            row
        })
        .collect();
    for pivot in 0..nodes {
        let best = (pivot..nodes)
            .max_by(|&i, &j| system[i][pivot].abs().total_cmp(&system[j][pivot].abs()))
            .unwrap();
        system.swap(pivot, best);
        let head = system[pivot].clone();
        for (i, row) in system.iter_mut().enumerate() {
            let factor = row[pivot] / head[pivot];
            if i == pivot {
                row.iter_mut().for_each(|v| *v /= head[pivot]);
            } else if factor != 0.0 {
                row.iter_mut().zip(&head).for_each(|(v, h)| *v -= factor * h);
            }
        }
    }
    system.into_iter().map(|row| row[nodes..].to_vec()).collect()
}

fn solve(
    affinity: &Affinity<'_>,
    labels: &[Option<ClassId>],
    classes: usize,
    parameters: Parameters,
) -> (SoftLabels, Solve) {
    let parameters = parameters.check().unwrap();
    let mut soft = SoftLabels::new(classes);
    let matrix = LabelMatrix::new(labels, classes, LabelWeight::None);
    let reached = affinity.reached(labels);
    let solve = propagate(affinity, &matrix, &reached, &parameters, &|| Ok(()), &mut soft).unwrap();
    (soft, solve)
}

/// A random graph of `nodes` with a few out-edges each, and labels for the first nodes.
fn random_graph(rng: &mut ChaCha8Rng, nodes: usize) -> Vec<Edge> {
    let k = rng.random_range(1..6);
    let mut edges = Vec::new();
    for i in 0..nodes {
        for _ in 0..k {
            // Mostly near by, so that distances in the graph grow.
            let j = (i + rng.random_range(1..nodes.min(12))) % nodes;
            if j != i && !edges.iter().any(|&(a, b, _)| (a, b) == (i, j)) {
                edges.push((i, j, rng.random_range(0.05f32..1.0)));
            }
        }
    }
    edges
}

#[test]
fn both_solvers_agree_with_the_closed_form_on_random_graphs() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for case in 0..300 {
        let nodes = rng.random_range(2..90);
        let classes = rng.random_range(1..40usize);
        let alpha = [0.1, 0.5, 0.75, 0.9, 0.95][case % 5];
        let edges = random_graph(&mut rng, nodes);
        let labels: Vec<Option<ClassId>> =
            (0..nodes).map(|i| (i % 3 == 0).then(|| rng.random_range(0..classes as ClassId))).collect();
        let affinity = graph(nodes, &edges);
        let want = closed_form(nodes, &edges, &labels, classes, alpha);
        let largest = want.iter().flatten().fold(1f64, |m, v| m.max(v.abs()));
        for solver in [Solver::Cg, Solver::Dense] {
            let (soft, _) = solve(&affinity, &labels, classes, Parameters::new().alpha(alpha).solver(solver));
            for i in 0..nodes {
                for c in 0..classes {
                    let difference = (f64::from(soft.row(i)[c]) - want[i][c]).abs();
                    assert!(
                        difference <= 1e-5 * largest,
                        "case {case}, {solver:?}, ({i},{c}): {difference:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn with_one_labelled_node_per_class_confidences_agree_everywhere() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut refined = 0;
    for case in 0..150 {
        let classes = rng.random_range(2..20usize);
        let nodes = classes + rng.random_range(20..150);
        let alpha = [0.3, 0.5, 0.75, 0.9, 0.95][case % 5];
        let edges = random_graph(&mut rng, nodes);
        let labels: Vec<Option<ClassId>> =
            (0..nodes).map(|i| (i < classes).then_some(i as ClassId)).collect();
        let affinity = graph(nodes, &edges);
        let want = closed_form(nodes, &edges, &labels, classes, alpha);
        let (soft, solve) = solve(&affinity, &labels, classes, Parameters::new().alpha(alpha));
        refined += solve.refinements;
        let reached = affinity.reached(&labels);
        let pseudo = crate::PseudoLabels::read(&soft, classes..nodes, &reached, &vec![true; classes]);
        for (item, want) in want[classes..].iter().enumerate() {
            // Below 1e-11 the f64 elimination itself has few digits left.
            if !reached[classes + item] || want.iter().all(|v| *v < 1e-11) {
                continue;
            }
            let sum: f64 = want.iter().sum();
            let p: Vec<f32> = want.iter().map(|v| (v / sum) as f32).collect();
            let w = crate::pseudo_labels::entropy_weight(&p, classes);
            let got = pseudo.confidence()[item];
            assert!(
                (got - w).abs() <= 1e-3,
                "case {case}, alpha {alpha}, item {item}: {got} against {w}, F {want:?}"
            );
        }
    }
    assert!(refined > 0, "no case needed refinement, so nothing was shown");
}

#[test]
fn two_disconnected_pairs() {
    // By hand: F = (4/3, 2/3, 0, 0); the second pair is unreached.
    let affinity = graph(4, &[(0, 1, 0.7), (2, 3, 0.4)]);
    let labels = [Some(0), None, None, None];
    let (soft, _) = solve(&affinity, &labels, 1, Parameters::new());
    for (i, want) in [4.0 / 3.0, 2.0 / 3.0, 0.0, 0.0].into_iter().enumerate() {
        assert!((soft.row(i)[0] - want).abs() < 1e-6);
    }
    assert_eq!(affinity.reached(&labels), [true, true, false, false]);
}

#[test]
fn far_down_a_chain_nodes_are_weak_not_certain() {
    // Labels at both ends of a chain; in the middle both have faded below what any solver can tell from 0.
    let nodes = 201;
    let edges: Vec<Edge> = (0..nodes - 1).map(|i| (i, i + 1, 1.0)).collect();
    let labels: Vec<_> =
        (0..nodes).map(|i| [(0, 0), (nodes - 1, 1)].iter().find(|e| e.0 == i).map(|e| e.1)).collect();
    for solver in [Solver::Cg, Solver::Dense] {
        let affinity = graph(nodes, &edges);
        let (soft, _) = solve(&affinity, &labels, 2, Parameters::new().alpha(0.5).solver(solver));
        let reached = affinity.reached(&labels);
        assert!(reached.iter().all(|&r| r));
        let pseudo = crate::PseudoLabels::read(&soft, 0..nodes, &reached, &[true, true]);
        assert_eq!(pseudo.status()[100], crate::Status::Weak, "{solver:?}");
        assert_eq!(pseudo.confidence()[100], 0.0);
        for near in 1..10 {
            assert_eq!((pseudo.labels()[near], pseudo.labels()[nodes - 1 - near]), (Some(0), Some(1)));
            assert_eq!(pseudo.status()[near], crate::Status::Labelled);
        }
        // Nothing is called certain of the wrong end.
        for i in 0..100 {
            assert!(
                pseudo.status()[i] == crate::Status::Weak || pseudo.labels()[i] == Some(0),
                "{solver:?}: {i}"
            );
        }
    }
}

#[test]
fn the_solution_is_stationary_for_the_objective() {
    // Q(G) = Σ‖gᵢ−yᵢ‖² + λ Σ aᵢⱼ‖gᵢ/√dᵢ − gⱼ/√dⱼ‖² has its minimum at G = (1−α)F with α = 2λ/(2λ+1) (eq. 3).
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for alpha in [0.2, 0.5, 0.9] {
        let lambda = alpha / (2.0 * (1.0 - alpha));
        let edges = random_graph(&mut rng, 30);
        let affinity = graph(30, &edges);
        let labels: Vec<_> = (0..30).map(|i| (i < 6).then_some((i % 2) as ClassId)).collect();
        let (soft, _) = solve(&affinity, &labels, 2, Parameters::new().alpha(alpha));
        let g: Vec<Vec<f64>> =
            (0..30).map(|i| soft.row(i).iter().map(|&f| (1.0 - alpha) * f64::from(f)).collect()).collect();
        let objective = |g: &[Vec<f64>]| {
            let mut q = 0.0;
            let mut row = Vec::new();
            for i in 0..30 {
                for c in 0..2 {
                    let y = f64::from(u8::from(labels[i] == Some(c as ClassId)));
                    q += (g[i][c] - y).powi(2);
                }
                affinity.row(i, &mut row);
                for &(j, a) in &row {
                    let (di, dj) = (affinity.degree(i).sqrt(), affinity.degree(j as usize).sqrt());
                    for c in 0..2 {
                        q += lambda * f64::from(a) * (g[i][c] / di - g[j as usize][c] / dj).powi(2);
                    }
                }
            }
            q
        };
        let step = 1e-4;
        for i in 0..30 {
            for c in 0..2 {
                let mut moved = g.clone();
                moved[i][c] += step;
                let up = objective(&moved);
                moved[i][c] -= 2.0 * step;
                let gradient = (up - objective(&moved)) / (2.0 * step);
                assert!(gradient.abs() < 1e-5, "alpha {alpha}: ∂Q/∂g({i},{c}) = {gradient:e}");
            }
        }
    }
}

#[test]
fn a_solver_that_may_not_iterate_says_that_it_did_not_converge() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let affinity = graph(60, &random_graph(&mut rng, 60));
    let labels: Vec<_> = (0..60).map(|i| (i < 3).then_some(i as ClassId)).collect();
    let (_, solve) = solve(&affinity, &labels, 3, Parameters::new().alpha(0.9).max_iterations(2));
    assert!(!solve.converged);
    assert!(solve.residual > 1e-6);
}

#[test]
fn above_one_the_dense_solver_answers() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let edges = random_graph(&mut rng, 40);
    let labels: Vec<_> = (0..40).map(|i| (i < 4).then_some((i % 2) as ClassId)).collect();
    let want = closed_form(40, &edges, &labels, 2, 2.0);
    let (soft, _) = solve(&graph(40, &edges), &labels, 2, Parameters::new().alpha(2.0).solver(Solver::Dense));
    for i in 0..40 {
        for c in 0..2 {
            assert!((f64::from(soft.row(i)[c]) - want[i][c]).abs() < 1e-5 * want[i][c].abs().max(1.0));
        }
    }
}

/// Under the ideal cluster assumption (edges only within a class): a graph, its classes, who is labelled.
fn ideal_clusters(rng: &mut ChaCha8Rng) -> (Vec<ClassId>, Vec<bool>, Vec<Edge>) {
    let (nodes, classes) = (rng.random_range(6..24), rng.random_range(2..4));
    let truth: Vec<ClassId> = (0..nodes).map(|_| rng.random_range(0..classes)).collect();
    let labelled = (0..nodes).map(|_| rng.random_bool(0.25)).collect();
    let mut edges: Vec<Edge> = Vec::new();
    for _ in 0..rng.random_range(0..nodes * 2) {
        let (i, j, w) = (rng.random_range(0..nodes), rng.random_range(0..nodes), rng.random_range(0.1..1.0));
        if i != j && truth[i] == truth[j] && !joined(&edges, i, j) {
            edges.push((i, j, w));
        }
    }
    (truth, labelled, edges)
}

fn joined(edges: &[Edge], i: usize, j: usize) -> bool {
    edges.iter().any(|e| (e.0, e.1) == (i, j) || (e.0, e.1) == (j, i))
}

/// Correct labels among the unlabelled nodes (eq. 5), and the label of each node.
fn accuracy(truth: &[ClassId], labelled: &[bool], edges: &[Edge]) -> (usize, Vec<Option<ClassId>>) {
    let classes = 4;
    let labels: Vec<Option<ClassId>> = truth.iter().zip(labelled).map(|(&t, &l)| l.then_some(t)).collect();
    let affinity = graph(truth.len(), edges);
    let (soft, _) = solve(&affinity, &labels, classes, Parameters::new().alpha(0.8));
    let reached = affinity.reached(&labels);
    let pseudo = crate::PseudoLabels::read(&soft, 0..truth.len(), &reached, &vec![true; classes]);
    let right = (0..truth.len()).filter(|&i| !labelled[i] && pseudo.labels()[i] == Some(truth[i])).count();
    (right, pseudo.labels().to_vec())
}

/// Proposition 1: joining a node to a labelled node of its class never lowers the accuracy, and raises it when that node was
/// labelled wrongly before, that is, not reached.
#[test]
fn proposition_1() {
    let mut raised = 0;
    for seed in 0..400 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (truth, labelled, mut edges) = ideal_clusters(&mut rng);
        let nodes = 0..truth.len();
        let pairs: Vec<(usize, usize)> = nodes
            .clone()
            .flat_map(|m| nodes.clone().map(move |n| (m, n)))
            .filter(|&(m, n)| m != n && labelled[n] && truth[m] == truth[n] && !joined(&edges, m, n))
            .collect();
        if pairs.is_empty() {
            continue;
        }
        let (m, n) = pairs[rng.random_range(0..pairs.len())];
        let (before, labels) = accuracy(&truth, &labelled, &edges);
        edges.push((m, n, rng.random_range(0.1..1.0)));
        let (after, _) = accuracy(&truth, &labelled, &edges);
        assert!(after >= before, "seed {seed}");
        if !labelled[m] && labels[m] != Some(truth[m]) {
            assert!(after > before, "seed {seed}");
            raised += 1;
        }
    }
    assert!(raised > 20, "{raised}");
}

/// Remark 1: a new labelled node joined only to nodes of its class never lowers the accuracy.
#[test]
fn remark_1() {
    for seed in 0..200 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut truth, mut labelled, mut edges) = ideal_clusters(&mut rng);
        let (before, _) = accuracy(&truth, &labelled, &edges);
        let (anchor, class) = (truth.len(), rng.random_range(0..2));
        let weight = rng.random_range(0.1..1.0);
        edges.extend((0..anchor).filter(|&i| truth[i] == class).map(|i| (anchor, i, weight)));
        truth.push(class);
        labelled.push(true);
        let (after, labels) = accuracy(&truth, &labelled, &edges);
        assert!(after >= before, "seed {seed}");
        assert!((0..anchor).all(|i| truth[i] != class || labels[i] == Some(class)), "seed {seed}");
    }
}
