//! What must hold whatever the data.

mod shifted;

use a2lp::{
    AnchorMode, Domains, FeatureMatrix, Labelling, Labels, Method, Parameters, PseudoLabels, Quality, Run,
    Similarity, Solver, SourceNodes, label,
};
use shifted::Shifted;

fn run(domains: Domains, parameters: Parameters) -> Labelling {
    label(domains, &parameters.check().unwrap()).unwrap()
}

fn names(labelling: &Labelling) -> Vec<Option<String>> {
    let labels = labelling.pseudo_labels.labels().iter();
    labels.map(|label| label.map(|class| labelling.classes.name(class).to_string())).collect()
}

#[test]
fn the_order_of_the_rows_does_not_matter() {
    for seed in 0..5 {
        let plain = Shifted::new(4, 25, 9, true, seed);
        // 100 rows, and 37 shares no factor with it: every row moves.
        let place = |row: usize| row * 37 % 100;
        let mut moved = Shifted::new(4, 25, 9, true, seed);
        for row in 0..100 {
            moved.source[place(row)] = plain.source[row].clone();
            moved.source_labels[place(row)] = plain.source_labels[row].clone();
            moved.target[place(row)] = plain.target[row].clone();
        }
        let (a, b) = (run(plain.domains(), Parameters::paper()), run(moved.domains(), Parameters::paper()));
        let (a_names, b_names) = (names(&a), names(&b));
        for row in 0..100 {
            assert_eq!(a_names[row], b_names[place(row)]);
            let (wa, wb) = (a.pseudo_labels.confidence()[row], b.pseudo_labels.confidence()[place(row)]);
            assert!((wa - wb).abs() < 1e-4, "{wa} {wb}");
        }
    }
}

#[test]
fn the_names_of_the_classes_do_not_matter() {
    let plain = Shifted::new(5, 12, 8, false, 3);
    let mut renamed = Shifted::new(5, 12, 8, false, 3);
    // Reverses the alphabetical order, and so every class number.
    let other = |name: &str| format!("{}", 9 - name[6..].parse::<u32>().unwrap());
    renamed.source_labels.iter_mut().for_each(|name| *name = other(name));
    let a = names(&run(plain.domains(), Parameters::paper()));
    let b = names(&run(renamed.domains(), Parameters::paper()));
    assert_eq!(a.iter().map(|n| n.as_deref().map(other)).collect::<Vec<_>>(), b);
}

#[test]
fn under_the_cosine_the_length_of_a_row_does_not_matter() {
    let plain = Shifted::new(3, 30, 10, true, 4);
    let mut scaled = Shifted::new(3, 30, 10, true, 4);
    for (at, row) in scaled.source.iter_mut().chain(scaled.target.iter_mut()).enumerate() {
        // Powers of two, so that unit rows come out the same to the bit.
        let factor = 2f32.powi(at as i32 % 7 - 3);
        row.iter_mut().for_each(|v| *v *= factor);
    }
    let (a, b) = (run(plain.domains(), Parameters::paper()), run(scaled.domains(), Parameters::paper()));
    assert_eq!(a.pseudo_labels, b.pseudo_labels);
}

#[test]
fn identical_target_rows_get_the_same_answer() {
    let mut shifted = Shifted::new(4, 20, 8, true, 5);
    for copy in 0..10 {
        shifted.target[70 + copy] = shifted.target[copy].clone();
    }
    // With the full graph no list is cut off, so copies are alike in every respect.
    let labelling = run(shifted.domains(), Parameters::paper().full_graph());
    for copy in 0..10 {
        let (a, b) = (copy, 70 + copy);
        assert_eq!(labelling.pseudo_labels.labels()[a], labelling.pseudo_labels.labels()[b]);
        let difference = labelling.pseudo_labels.confidence()[a] - labelling.pseudo_labels.confidence()[b];
        assert!(difference.abs() < 1e-5);
    }
}

#[test]
fn one_round_is_the_first_of_many() {
    let shifted = Shifted::new(4, 25, 9, true, 6);
    let many = run(shifted.domains(), Parameters::paper().rounds(6));
    for rounds in 1..6 {
        let few = run(shifted.domains(), Parameters::paper().rounds(rounds));
        assert_eq!(few.labels_by_round, many.labels_by_round[..rounds]);
        assert_eq!(few.anchors.len(), 4 * (rounds - 1));
    }
}

#[test]
fn replaced_anchors_leave_one_set_in_the_graph() {
    let shifted = Shifted::new(4, 25, 9, true, 7);
    let added = run(shifted.domains(), Parameters::paper().rounds(4));
    let replaced = run(shifted.domains(), Parameters::paper().rounds(4).anchor_mode(AnchorMode::Replace));
    assert_eq!(added.rounds.iter().map(|r| r.anchors).collect::<Vec<_>>(), [0, 4, 8, 12]);
    assert_eq!(replaced.rounds.iter().map(|r| r.anchors).collect::<Vec<_>>(), [0, 4, 4, 4]);
    assert_eq!(added.labels_by_round[1], replaced.labels_by_round[1]);
}

#[test]
fn a_run_that_settles_can_stop_early() {
    let shifted = Shifted::new(3, 30, 20, true, 8);
    let full = run(shifted.domains(), Parameters::paper().rounds(10));
    let stopped = run(shifted.domains(), Parameters::paper().rounds(10).stop_when_stable(true));
    let settled = full.rounds.iter().position(|r| r.round > 1 && r.changed == 0).unwrap();
    assert_eq!(stopped.rounds.len(), settled + 1);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let shifted = Shifted::new(6, 400, 16, true, 9);
    for parameters in [
        Parameters::paper(),
        Parameters::paper().rounds(3).full_graph(),
        Parameters::paper().rounds(2).solver(Solver::Dense).source_nodes(SourceNodes::Centres),
    ] {
        let one = run(shifted.domains(), parameters.clone().threads(1));
        for threads in [2, 3, 8] {
            let other = run(shifted.domains(), parameters.clone().threads(threads));
            assert_eq!(one.pseudo_labels, other.pseudo_labels, "{threads} threads, {parameters:?}");
            assert_eq!(one.anchors, other.anchors);
        }
    }
}

#[test]
fn probabilities_sum_to_one_and_confidence_stays_in_range() {
    for (similarity, signed) in
        [(Similarity::Cosine, true), (Similarity::Gaussian { sigma2: 2.0 }, true), (Similarity::Dot3, false)]
    {
        let labelling =
            run(Shifted::new(5, 20, 8, signed, 10).domains(), Parameters::paper().similarity(similarity));
        for item in 0..labelling.pseudo_labels.len() {
            let sum: f32 = labelling.pseudo_labels.probabilities(item).iter().sum();
            assert!((sum - 1.0).abs() < 1e-6);
            assert!((0.0..=1.0).contains(&labelling.pseudo_labels.confidence()[item]));
            assert!((0.0..=1.0).contains(&labelling.pseudo_labels.margin()[item]));
        }
    }
}

#[test]
fn the_full_graph_equals_a_list_of_everything() {
    // Signed features store the weights, non-negative ones go through V(VᵀX); both against lists of n − 1.
    for (similarity, signed) in [
        (Similarity::Cosine, true),
        (Similarity::Cosine, false),
        (Similarity::Gaussian { sigma2: 3.0 }, true),
        (Similarity::Dot3, true),
    ] {
        let shifted = Shifted::new(3, 20, 7, signed, 11);
        let parameters = Parameters::paper().rounds(4).similarity(similarity);
        let full = run(shifted.domains(), parameters.clone().full_graph());
        let lists = run(shifted.domains(), parameters.neighbours(500));
        assert_eq!(full.labels_by_round, lists.labels_by_round, "{similarity:?}");
        for (a, b) in full.pseudo_labels.confidence().iter().zip(lists.pseudo_labels.confidence()) {
            assert!((a - b).abs() < 1e-4, "{similarity:?}: {a} {b}");
        }
    }
}

#[test]
fn a_class_without_source_rows_is_never_predicted() {
    let shifted = Shifted::new(3, 10, 6, true, 12);
    let classes =
        a2lp::Classes::new(vec!["ghost".into(), "class 0".into(), "class 1".into(), "class 2".into()])
            .unwrap();
    let domains = Domains::new(
        FeatureMatrix::from_rows(&shifted.source).unwrap(),
        Labels::within(classes, &shifted.source_labels).unwrap(),
        FeatureMatrix::from_rows(&shifted.target).unwrap(),
    )
    .unwrap();
    let with_ghost = run(domains, Parameters::paper());
    let without = run(shifted.domains(), Parameters::paper());
    assert_eq!(names(&with_ghost), names(&without));
    assert_eq!(with_ghost.pseudo_labels.class_counts()[0], 0);
    // K of eq. 8 counts the classes that have a labelled node.
    assert_eq!(with_ghost.pseudo_labels.confidence(), without.pseudo_labels.confidence());
}

#[test]
fn truth_only_looks_on() {
    let shifted = Shifted::new(4, 20, 8, true, 13);
    let alone = run(shifted.domains(), Parameters::paper());
    let domains = shifted.domains();
    let truth = a2lp::evaluation::TargetTruth::new(domains.source_labels().classes(), &shifted.truth);
    let evaluator = a2lp::evaluation::Evaluator::new(truth);
    let watched =
        Run::new(domains, &Parameters::paper().check().unwrap()).observe(&evaluator).label().unwrap();
    assert_eq!(alone.pseudo_labels, watched.pseudo_labels);
    let rounds = evaluator.rounds();
    assert_eq!(rounds.len(), 10);
    assert!(rounds.iter().all(|r| (0.0..=1.0).contains(&r.pow)));
}

#[test]
fn a_consensus_is_the_same_on_any_number_of_threads() {
    // Enough rows for several tasks, enough columns for principal directions to be left out.
    let shifted = Shifted::new(6, 220, 150, true, 8);
    for views in [2, 3] {
        let consensus = || Parameters::new().method(Method::Consensus).views(views).quality(true);
        let one = run(shifted.domains(), consensus().threads(1));
        assert_eq!(one.views.len(), views);
        for threads in [2, 3, 8] {
            let many = run(shifted.domains(), consensus().threads(threads));
            assert_eq!(one.pseudo_labels, many.pseudo_labels);
            assert_eq!(one.quality, many.quality);
            assert_eq!(one.votes(), many.votes());
        }
    }
}

#[test]
fn quality_prefers_right_labels_and_does_not_change_them() {
    let shifted = Shifted::new(4, 60, 12, true, 9);
    for method in [Method::Lp, Method::A2lp, Method::Consensus] {
        let plain = run(shifted.domains(), Parameters::paper().method(method));
        let measured = run(shifted.domains(), Parameters::paper().method(method).quality(true));
        assert_eq!(plain.pseudo_labels, measured.pseudo_labels);
        assert!(plain.quality.is_none());
        let quality = measured.quality.unwrap();
        assert!(quality.score > 0.65 && quality.score <= 1.0, "{quality:?}");
        let domains = shifted.domains();
        let labels = [&measured.pseudo_labels];
        assert_eq!(Quality::of_each(&domains, &labels, &()).unwrap(), [quality], "{method:?}");
    }
    // Labels that mean nothing: every class is spread over all clusters.
    let mut senseless = Shifted::new(4, 60, 12, true, 9);
    let names = senseless.source_labels.clone();
    for (row, label) in senseless.source_labels.iter_mut().enumerate() {
        label.clone_from(&names[(row * 61 + row / 7) % 240]);
    }
    let poor = run(senseless.domains(), Parameters::paper().quality(true)).quality.unwrap();
    assert!(poor.score < 0.65, "{poor:?}");
    let none = PseudoLabels::from_probabilities(4, Vec::new());
    assert!(Quality::of_each(&shifted.domains(), &[&none], &()).is_err(), "a label per item is needed");
}
