//! Real domains against the answers of an independent implementation in NumPy.

mod shared_data;

use a2lp::evaluation::{Evaluator, TargetTruth};
use a2lp::{
    AnchorSpace, AnchorWeights, ClassId, Classes, Domains, Labelling, Labels, Method, Parameters, Run,
    Solver, SourceNodes, label,
};
use a2lp_data::{FeatureFile, read_labels};
use serde_json::Value;
use std::path::Path;

struct Pair {
    domains: Domains,
    truth: TargetTruth,
}

fn load(data: &Path, source: &str, target: &str) -> Pair {
    let features =
        |name: &str| FeatureFile::open(&data.join(format!("{name}_feat.npy"))).unwrap().read().unwrap();
    let labels = |name: &str| {
        read_labels(&data.join(format!("{name}_label.npy")), &Default::default()).unwrap().into_strings()
    };
    let classes = Classes::new((0..10).map(|c| c.to_string()).collect()).unwrap();
    let truth = TargetTruth::new(&classes, &labels(target));
    let source_labels = Labels::within(classes, &labels(source)).unwrap();
    Pair { domains: Domains::new(features(source), source_labels, features(target)).unwrap(), truth }
}

fn variant(name: &str) -> Parameters {
    match name {
        "default" => Parameters::new(),
        "uniform_weights" => Parameters::new().anchor_weights(AnchorWeights::Uniform),
        "centres" => Parameters::new().source_nodes(SourceNodes::Centres),
        "k_includes_self" => Parameters::new().k_includes_self(true),
        "raw_anchors" => Parameters::new().anchor_space(AnchorSpace::Raw),
        other => panic!("the reference has a variant this test does not know: {other}"),
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn differing(ours: &[Option<ClassId>], theirs: &Value) -> usize {
    ours.iter().zip(numbers(theirs)).filter(|(a, b)| a.map(f64::from) != Some(*b)).count()
}

/// Returns (LP, A²LP) accuracy averaged over the pairs.
fn compare(shared: &Path, variant_name: &str, solver: Solver) -> (f64, f64) {
    let text = std::fs::read_to_string(shared.join("reference/office_caltech10.json")).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    let pairs = reference["pairs"].as_object().unwrap();
    assert_eq!(pairs.len(), 12);
    let (mut first, mut last) = (0.0, 0.0);
    for (name, variants) in pairs {
        let (source, target) = name.split_once("->").unwrap();
        let Pair { domains, truth } = load(&shared.join("data/office_caltech10"), source, target);
        let rows = domains.target_rows();
        let want = &variants[variant_name];
        let evaluator = Evaluator::new(truth);
        let parameters = variant(variant_name).solver(solver).check().unwrap();
        let labelling: Labelling = Run::new(domains, &parameters).observe(&evaluator).label().unwrap();
        let rounds = evaluator.rounds();

        let accuracies = numbers(&want["accuracy_by_round"]);
        assert_eq!(accuracies.len(), rounds.len());
        let slack = 0.35f64.max(100.0 / rows as f64) + 1e-3;
        for (round, accuracy) in rounds.iter().zip(&accuracies) {
            let ours = 100.0 * round.accuracy;
            assert!(
                (ours - accuracy).abs() <= slack,
                "{name}, {variant_name}, round {}: {ours:.3} against {accuracy:.3}",
                round.round
            );
        }
        let allowed = 1.max(rows * 5 / 1000);
        let by_round = &labelling.labels_by_round;
        for (labels, field) in [(&by_round[0], "labels_round_1"), (&by_round[9], "labels_last_round")] {
            if !want[field].is_null() {
                let differ = differing(labels, &want[field]);
                assert!(
                    differ <= allowed,
                    "{name}, {variant_name}, {field}: {differ} rows differ, {allowed} may"
                );
            }
        }
        assert!(labelling.converged());
        first += 100.0 * rounds[0].accuracy / 12.0;
        last += 100.0 * rounds[9].accuracy / 12.0;
    }
    (first, last)
}

#[test]
fn default_settings_agree_with_the_reference_and_its_averages() {
    let Some(shared) = shared_data::find("office_caltech10-default") else { return };
    for solver in [Solver::Cg, Solver::Dense] {
        let (lp, a2lp) = compare(&shared, "default", solver);
        assert!((lp - 94.84).abs() <= 0.1, "LP averages {lp:.3}");
        assert!((a2lp - 96.85).abs() <= 0.1, "A²LP averages {a2lp:.3}");
    }
}

#[test]
fn source_centres_agree_with_the_reference_and_its_average() {
    let Some(shared) = shared_data::find("office_caltech10-centres") else { return };
    for solver in [Solver::Cg, Solver::Dense] {
        let (_, centres) = compare(&shared, "centres", solver);
        assert!((centres - 97.10).abs() <= 0.1, "centres average {centres:.3}");
    }
}

#[test]
fn the_other_variants_agree_with_the_reference() {
    let Some(shared) = shared_data::find("office_caltech10-variants") else { return };
    // The dense solver meets every variant in `two_domains`.
    for name in ["uniform_weights", "k_includes_self", "raw_anchors"] {
        compare(&shared, name, Solver::Cg);
    }
}

/// The same for the consensus; returns its average accuracy over the pairs.
fn compare_consensus(shared: &Path, views: usize, field: &str) -> f64 {
    let text = std::fs::read_to_string(shared.join("reference/office_caltech10_consensus.json")).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    let pairs = reference["pairs"].as_object().unwrap();
    assert_eq!(pairs.len(), 12);
    let mut average = 0.0;
    for (name, fields) in pairs {
        let (source, target) = name.split_once("->").unwrap();
        let Pair { domains, truth } = load(&shared.join("data/office_caltech10"), source, target);
        let rows = domains.target_rows();
        let parameters = Parameters::new().method(Method::Consensus).views(views).check().unwrap();
        let labelling = label(domains, &parameters).unwrap();
        let labels = labelling.pseudo_labels.labels();
        let accuracy = 100.0 * truth.score(labels).unwrap().accuracy;
        let want = fields[field]["accuracy"].as_f64().unwrap();
        let slack = 0.5f64.max(200.0 / rows as f64) + 1e-3;
        let differ = differing(labels, &fields[field]["labels"]);
        assert!((accuracy - want).abs() <= slack, "{name}, {field}: {accuracy:.3} against {want:.3}");
        assert!(differ * 100 <= rows, "{name}, {field}: {differ} of {rows} rows differ");
        average += accuracy / 12.0;
    }
    average
}

#[test]
fn the_consensus_agrees_with_the_reference_and_its_averages() {
    let Some(shared) = shared_data::find("office_caltech10-consensus") else { return };
    for (views, field, want) in [(2, "two_views", 97.05), (3, "three_views", 97.11)] {
        let average = compare_consensus(&shared, views, field);
        assert!((average - want).abs() <= 0.1, "{field} averages {average:.3}");
    }
}
