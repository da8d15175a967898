//! Real domains against the answers of an independent implementation in NumPy.

mod shared_data;

use a2lp::evaluation::{Evaluator, TargetTruth};
use a2lp::{
    AnchorSpace, AnchorWeights, ClassId, Classes, Domains, Labelling, Labels, Method, Parameters, Run,
    Solver, SourceNodes, label,
};
use a2lp_data::{FeatureFile, read_labels};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

struct Pair {
    domains: Domains,
    truth: TargetTruth,
}

fn labels(data: &Path, domain: &str) -> Vec<String> {
    read_labels(&data.join(format!("{domain}_label.npy")), &Default::default()).unwrap().into_strings()
}

fn load(data: &Path, source: &str, target: &str) -> Pair {
    load_without(data, source, target, &[])
}

/// Without some rows of the target.
fn load_without(data: &Path, source: &str, target: &str, left_out: &[usize]) -> Pair {
    let features =
        |name: &str| FeatureFile::open(&data.join(format!("{name}_feat.npy"))).unwrap().read().unwrap();
    let classes = Classes::new((0..10).map(|c| c.to_string()).collect()).unwrap();
    let truth = TargetTruth::new(&classes, &labels(data, target)).without_rows(left_out);
    let source_labels = Labels::within(classes, &labels(data, source)).unwrap();
    let mut target = features(target);
    target.remove_rows(left_out);
    Pair { domains: Domains::new(features(source), source_labels, target).unwrap(), truth }
}

fn variant(name: &str) -> Parameters {
    match name {
        "default" => Parameters::paper(),
        "uniform_weights" => Parameters::paper().anchor_weights(AnchorWeights::Uniform),
        "centres" => Parameters::paper().source_nodes(SourceNodes::Centres),
        "k_includes_self" => Parameters::paper().k_includes_self(true),
        "raw_anchors" => Parameters::paper().anchor_space(AnchorSpace::Raw),
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

/// The target rows of a scenario: all rows of some classes, or a list of rows.
fn rows_of(scenario: &Value, labels: &[String]) -> Vec<usize> {
    if !scenario["rows"].is_null() {
        return numbers(&scenario["rows"]).into_iter().map(|row| row as usize).collect();
    }
    let classes: Vec<String> = numbers(&scenario["classes"]).iter().map(|class| class.to_string()).collect();
    (0..labels.len()).filter(|&row| classes.contains(&labels[row])).collect()
}

/// Every pair and scenario of the reference for the consensus.
fn compare_consensus(shared: &Path, views: usize, field: &str) {
    let text = std::fs::read_to_string(shared.join("reference/consensus_office_caltech10.json")).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    let pairs = reference["pairs"].as_object().unwrap();
    assert_eq!(pairs.len(), 12);
    let data = shared.join("data/office_caltech10");
    let parameters = Parameters::new().method(Method::Consensus).views(views).check().unwrap();
    let mut averages: BTreeMap<String, f64> = BTreeMap::new();
    for (name, scenarios) in pairs {
        let (source, target) = name.split_once("->").unwrap();
        let all = labels(&data, target);
        for (scenario_name, scenario) in scenarios.as_object().unwrap() {
            let rows = rows_of(scenario, &all);
            let mut left_out: Vec<usize> = (0..all.len()).collect();
            left_out.retain(|row| !rows.contains(row));
            let Pair { domains, truth } = load_without(&data, source, target, &left_out);
            let labelling = label(domains, &parameters).unwrap();
            let (found, want) = (labelling.pseudo_labels.labels(), &scenario[field]);
            let name = format!("{name}, {scenario_name}, {field}");
            let mix = labelling.mix.as_ref().unwrap();
            let chosen = serde_json::to_value(mix.chosen).unwrap();
            assert_eq!(
                chosen, want["chosen"],
                "{name}: {mix:?} beside {} {}",
                want["fit_same"], want["fit_own"]
            );
            let allowed = if rows.len() < 200 { rows.len() / 50 } else { rows.len() / 100 };
            let differ = if want["labels"].is_null() { 0 } else { differing(found, &want["labels"]) };
            assert!(differ <= allowed, "{name}: {differ} of {} rows differ", rows.len());
            if !want["class_shares"].is_null() {
                let counts = labelling.pseudo_labels.class_counts();
                for (count, want) in counts.iter().zip(numbers(&want["class_shares"])) {
                    let share = *count as f64 / rows.len() as f64;
                    assert!((share - want).abs() <= 0.01 + 1e-4, "{name}: share {share} beside {want}");
                }
            }
            let accuracy = 100.0 * truth.score(found).unwrap().accuracy;
            *averages.entry(scenario_name.clone()).or_default() += accuracy / 12.0;
        }
    }
    for (scenario, average) in averages {
        let want = reference["average_accuracy"][&scenario][field].as_f64().unwrap();
        assert!((average - want).abs() <= 0.2, "{field}, {scenario}: {average:.2} beside {want}");
    }
}

#[test]
fn the_consensus_agrees_with_the_reference_and_its_averages() {
    let Some(shared) = shared_data::find("office_caltech10-consensus") else { return };
    compare_consensus(&shared, 3, "three_views");
    compare_consensus(&shared, 2, "two_views");
}
