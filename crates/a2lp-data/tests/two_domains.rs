//! Two small domains that stand in this repository, against the answers of an independent implementation in NumPy
//! (`two_domains/make.py`). Runs on any machine.

use a2lp::evaluation::{Evaluator, TargetTruth};
use a2lp::{
    AnchorSpace, AnchorWeights, Classes, Domains, Labels, Parameters, Run, Similarity, Solver, SourceNodes,
    label,
};
use a2lp_data::FeatureFile;
use serde_json::Value;
use std::path::Path;

fn load() -> (Domains, TargetTruth, Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/two_domains");
    let text = std::fs::read_to_string(folder.join("answers.json")).unwrap();
    let answers: Value = serde_json::from_str(&text).unwrap();
    let mut source = FeatureFile::open(&folder.join("source.npz")).unwrap();
    let labels = source.labels().unwrap().unwrap().into_strings();
    let target = FeatureFile::open(&folder.join("target.npz")).unwrap();
    let classes = Classes::new((0..10).map(|class| class.to_string()).collect()).unwrap();
    let truth: Vec<String> = numbers(&answers["truth"]).iter().map(f64::to_string).collect();
    let truth = TargetTruth::new(&classes, &truth);
    let labels = Labels::within(classes, &labels).unwrap();
    (Domains::new(source.read().unwrap(), labels, target.read().unwrap()).unwrap(), truth, answers)
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// The settings of a variant, as `make.py` names it.
fn variant(name: &str) -> Parameters {
    let plain = Parameters::paper();
    match name {
        "default" => plain,
        "uniform_weights" => plain.anchor_weights(AnchorWeights::Uniform),
        "centres" => plain.source_nodes(SourceNodes::Centres),
        "k_includes_self" => plain.k_includes_self(true),
        "raw_anchors" => plain.anchor_space(AnchorSpace::Raw),
        "gaussian" => plain.similarity(Similarity::Gaussian { sigma2: 20.0 }),
        "dot3" => plain.similarity(Similarity::Dot3),
        "alpha_2" => plain.alpha(2.0),
        "k_5" => plain.neighbours(5),
        other => panic!("make.py has a variant this test does not know: {other}"),
    }
}

#[test]
fn every_variant_agrees_with_the_reference() {
    let (_, _, answers) = load();
    let variants = answers["variants"].as_object().unwrap();
    assert_eq!(variants.len(), 9);
    for (name, want) in variants {
        let solvers: &[Solver] =
            if name == "alpha_2" { &[Solver::Dense] } else { &[Solver::Cg, Solver::Dense] };
        for &solver in solvers {
            let (domains, truth, _) = load();
            let evaluator = Evaluator::new(truth);
            let parameters = variant(name).solver(solver).check().unwrap();
            let labelling = Run::new(domains, &parameters).observe(&evaluator).label().unwrap();
            let place = |what: &str| format!("{name}, {solver:?}, {what}");
            for (score, want) in evaluator.rounds().iter().zip(numbers(&want["accuracy_by_round"])) {
                let have = 100.0 * score.accuracy;
                assert!(
                    (have - want).abs() <= 0.501,
                    "{}: {have:.2} against {want:.2}",
                    place(&format!("round {}", score.round))
                );
            }
            let by_round = &labelling.labels_by_round;
            for (labels, field) in [(&by_round[0], "labels_round_1"), (&by_round[9], "labels_last_round")] {
                let theirs = numbers(&want[field]);
                assert_eq!(labels.len(), theirs.len());
                let same = |(a, b): &(&Option<u32>, f64)| a.map(f64::from) == Some(*b);
                let differ = labels.iter().zip(theirs).filter(|pair| !same(pair)).count();
                assert!(differ <= 2, "{}: {differ} of {} labels differ", place(field), labels.len());
            }
        }
    }
}

/// Confidences of the first round, before any rounding of neighbours can have been multiplied by anchors.
#[test]
fn confidences_agree_with_the_reference() {
    for name in ["default", "gaussian", "dot3", "k_5"] {
        let (domains, _, answers) = load();
        let parameters = variant(name).rounds(1).check().unwrap();
        let labelling = label(domains, &parameters).unwrap();
        let want = numbers(&answers["variants"][name]["confidence_round_1"]);
        for (item, (&have, want)) in labelling.pseudo_labels.confidence().iter().zip(want).enumerate() {
            assert!((f64::from(have) - want).abs() < 2e-4, "{name}, item {item}: {have} against {want}");
        }
    }
}
