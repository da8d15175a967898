//! Corrections against runs that were told the same from the start, dense solutions, and full recounts.

use super::*;
use crate::features::{Domains, FeatureMatrix};
use crate::labels::Labels;
use crate::parameters::{Method, Mix, Parameters, Solver, Unknown};
use crate::propagation::{LabelMatrix, propagate};
use crate::run::Run;
use rand::{RngExt, SeedableRng};

const CLASSES: usize = 4;

/// Rows about the axes; the target's are noisier and moved, and every fifth of them is of a class that the source lacks.
fn domains() -> Domains {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
    let mut features = FeatureMatrix::default();
    let mut row = |axis: usize, noise: f32, shift: f32| {
        let value = |column| rng.random_range(-noise..noise) + shift + if column == axis { 2.0 } else { 0.0 };
        features.append_row(&(0..8).map(value).collect::<Vec<_>>());
    };
    (0..120).for_each(|at| row(at % CLASSES, 0.9, 0.0));
    (0..150).for_each(|at| row(at % (CLASSES + 1), 1.3, 0.4));
    let labels: Vec<String> = (0..120).map(|at| format!("class {}", at % CLASSES)).collect();
    Domains::stacked(features, 120, Labels::new(&labels)).unwrap()
}

fn parameters(method: Method) -> Parameters {
    Parameters::new().method(method).neighbours(8).rounds(4).unknown(Unknown::Off).tolerance(1e-7)
}

fn live(parameters: Parameters) -> LiveLabels {
    Run::new(domains(), &parameters.check().unwrap()).live().unwrap()
}

/// Some items, each with some class.
fn some_known() -> KnownLabels {
    [(3, 0), (17, 2), (18, 2), (60, 1), (149, 3)].into_iter().collect()
}

fn assert_alike(a: &PseudoLabels, b: &PseudoLabels, within: f32) {
    assert_eq!(a.labels(), b.labels());
    assert_eq!(a.status(), b.status());
    for item in 0..a.len() {
        for (a, b) in a.probabilities(item).iter().zip(b.probabilities(item)) {
            assert!((a - b).abs() < within, "item {item}: {a} and {b}");
        }
    }
}

#[test]
fn plain_propagation_corrected_is_plain_propagation_that_was_told() {
    let parameters = parameters(Method::Lp);
    let mut corrected = live(parameters.clone());
    let change = corrected.set_known(some_known()).unwrap();
    assert!(change.solve.converged && !change.items.is_empty());
    let told = domains().with_known(some_known()).unwrap();
    let told = Run::new(told, &parameters.check().unwrap()).label().unwrap();
    assert_alike(&corrected.labelling().pseudo_labels, &told.pseudo_labels, 1e-3);
    for (item, class) in some_known().iter() {
        assert_eq!(told.pseudo_labels.labels()[item], Some(class));
        assert_eq!(told.pseudo_labels.confidence()[item], 1.0);
    }
}

#[test]
fn with_anchors_the_scores_are_those_of_a_dense_solution() {
    let mut live = live(parameters(Method::A2lp));
    let known = some_known();
    live.set_known(known.clone()).unwrap();
    let view = &live.views[0];
    let mut labels = view.labels.clone();
    known.mark(&mut labels, view.targets.start);
    let masses = crate::propagation::Masses { targets: view.targets.clone(), known: 3.0, anchors: &[] };
    let matrix = LabelMatrix::with_masses(&labels, masses, CLASSES, crate::parameters::LabelWeight::None);
    let dense = parameters(Method::A2lp).solver(Solver::Dense).check().unwrap();
    let mut soft = SoftLabels::new(CLASSES);
    let reached = view.affinity.reached(&labels);
    propagate(&view.affinity, &matrix, &reached, &dense, &|| Ok(()), &mut soft).unwrap();
    for node in 0..soft.nodes() {
        let sum: f32 = soft.row(node).iter().sum();
        for (a, b) in soft.row(node).iter().zip(view.now.row(node)) {
            assert!((a - b).abs() < STEP * sum.max(1e-3), "node {node}: {a} and {b}");
        }
    }
}

#[test]
fn neither_order_nor_detours_nor_taking_back_leave_a_trace() {
    for method in [Method::A2lp, Method::Consensus] {
        let mut live = live(parameters(method));
        let before = live.labelling().pseudo_labels.clone();
        live.set_known(some_known()).unwrap();
        let all_at_once = live.labelling().pseudo_labels.clone();
        live.set_known(KnownLabels::new()).unwrap();
        assert_alike(&live.labelling().pseudo_labels, &before, 1e-6);

        let mut known = KnownLabels::new();
        let mut steps: Vec<_> = some_known().iter().collect();
        steps.reverse();
        for (item, class) in steps {
            known.set(item, Some((class + 1) % CLASSES as u32));
            live.set_known(known.clone()).unwrap();
            known.set(item, Some(class));
            live.set_known(known.clone()).unwrap();
        }
        assert_eq!(live.labelling().pseudo_labels, all_at_once, "{method:?}");
    }
}

#[test]
fn a_vote_counted_in_parts_is_the_vote_counted_whole() {
    for mix in [Mix::Own, Mix::Same] {
        let parameters = parameters(Method::Consensus).mix(mix);
        let mut live = live(parameters.clone());
        live.set_known(some_known()).unwrap();
        let (mut touched, candidates) = (vec![true; 150], live.candidates.clone());
        let Reading::Vote(vote) = &mut live.reading else { panic!("a consensus votes") };
        // Everything again, and every class smoothed from its votes.
        let items: Vec<usize> = (0..150).collect();
        let polls = vec![(items.clone(), vote.poll(&live.views, &items, &candidates))];
        vote.note(&polls, &some_known());
        let parameters = parameters.check().unwrap();
        vote.smooth(&candidates, Limits::from(&parameters), &mut touched).unwrap();
        let mut whole = vote.smooth_anew(&candidates, &parameters);
        some_known().iter().for_each(|(item, class)| whole.clamp(item, class));
        assert_alike(&live.labelling().pseudo_labels, &whole, 2e-3);
    }
}

#[test]
fn a_class_that_a_person_names_spreads_to_its_kind() {
    for method in [Method::Lp, Method::A2lp, Method::Consensus] {
        let mut live = live(parameters(method));
        let class = live.add_class("axis 4").unwrap();
        assert_eq!(live.add_class("axis 4").unwrap(), class);
        let known: KnownLabels = [4, 9, 14, 19, 24, 29].map(|item| (item, class)).into_iter().collect();
        let change = live.set_known(known.clone()).unwrap();
        let labels = live.labelling().pseudo_labels.labels();
        let spread = (0..150).filter(|item| item % 5 == 4 && labels[*item] == Some(class)).count();
        let wrong = (0..150).filter(|item| item % 5 != 4 && labels[*item] == Some(class)).count();
        assert!(spread >= 15 && wrong <= 15, "{method:?}: {spread} of 30 right, {wrong} wrong");
        assert!(change.items.len() >= spread);
        // A run that is told the same finds the class too.
        let names = live.labelling().classes.clone();
        let ids = domains().source_labels().ids().to_vec();
        let labels = Labels::from_ids(names, ids).unwrap();
        let told = Domains::stacked(domains().features().clone(), 120, labels).unwrap();
        let told = told.with_known(known).unwrap();
        let run = Run::new(told, &parameters(method).check().unwrap()).label().unwrap();
        let found = run.pseudo_labels.labels().iter().filter(|label| **label == Some(class)).count();
        assert!((15..60).contains(&found), "{method:?}: {found}");
    }
}

#[test]
fn items_in_doubt_come_first_and_their_neighbours_later() {
    let mut live = live(parameters(Method::A2lp));
    let order = live.doubtful(150, |item| item == 7);
    assert_eq!(order.len(), 149);
    let margin = live.labelling().pseudo_labels.margin();
    let mean = |items: &[usize]| items.iter().map(|&item| margin[item]).sum::<f32>() / items.len() as f32;
    assert!(mean(&order[..20]) < mean(&order[100..]));
    // By its definition, without a heap.
    let graph = live.neighbours();
    let mut row = Vec::new();
    let mut scores: Vec<f64> = (0..150)
        .map(|item| {
            graph.row(item, &mut row);
            let doubt = |item: usize| f64::from(1.0 - margin[item]);
            let among: f64 = row
                .iter()
                .map(|&(j, w)| {
                    let s = f64::from(w) / (graph.degree(item) * graph.degree(j as usize)).sqrt();
                    s * doubt(j as usize)
                })
                .sum();
            doubt(item) * (doubt(item) + among)
        })
        .collect();
    for &item in &order[..10] {
        let best = (0..150).filter(|&i| i != 7).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
        assert!(scores[item] > scores[best] - 1e-5, "{item} before {best}");
        scores[item] = -1.0;
        graph.row(item, &mut row);
        row.iter().for_each(|&(j, _)| scores[j as usize] *= 0.25);
    }
    assert!(live.look_alikes(order[0]).len() >= 3);
    live.set_known([(order[0], 1)].into_iter().collect()).unwrap();
    assert!(!live.doubtful(150, |_| false).contains(&order[0]));
}

#[test]
fn what_cannot_be_corrected_is_refused() {
    let full = parameters(Method::A2lp).full_graph().check().unwrap();
    let error = Run::new(domains(), &full).live().err().unwrap();
    assert!(error.to_string().contains("cannot be corrected"), "{error}");
    let mut live = live(parameters(Method::Lp));
    let error = live.set_known([(150, 0)].into_iter().collect()).unwrap_err();
    assert_eq!(error, Error::NoSuchItem { item: 150, items: 150 });
    assert!(live.set_known([(0, 9)].into_iter().collect()).is_err());
}
