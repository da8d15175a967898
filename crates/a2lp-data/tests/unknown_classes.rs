//! Targets with classes that the source lacks: real domains against the answers of an independent implementation in NumPy.

mod shared_data;

use a2lp::{Domains, FeatureMatrix, Labels, Method, Parameters, Unknown, label};
use a2lp_data::{FeatureFile, read_labels};
use serde_json::Value;
use std::path::Path;

struct RealDomain {
    features: FeatureMatrix,
    labels: Vec<String>,
}

fn load(data: &Path, name: &str) -> RealDomain {
    let features = FeatureFile::open(&data.join(format!("{name}_feat.npy"))).unwrap().read().unwrap();
    let labels =
        read_labels(&data.join(format!("{name}_label.npy")), &Default::default()).unwrap().into_strings();
    RealDomain { features, labels }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// Amazon and Caltech hold some photos more than once.
fn has_twins(domain: &str) -> bool {
    ["amazon", "caltech10"].contains(&domain)
}

/// How often an item of a class that the source lacks has a smaller reach than one of a known class; ties count half.
fn auroc(reach: &[f32], is_unknown: impl Fn(usize) -> bool) -> f64 {
    let (unknown, known): (Vec<usize>, Vec<usize>) = (0..reach.len()).partition(|&item| is_unknown(item));
    let wins: f64 = unknown
        .iter()
        .flat_map(|&u| known.iter().map(move |&k| (reach[u], reach[k])))
        .map(|(u, k)| {
            if u < k {
                1.0
            } else if u == k {
                0.5
            } else {
                0.0
            }
        })
        .sum();
    wins / (unknown.len() * known.len()) as f64
}

#[test]
fn reach_agrees_with_the_reference() {
    let Some(shared) = shared_data::find("office_caltech10-unknown") else { return };
    let text = std::fs::read_to_string(shared.join("reference/unknown_office_caltech10.json")).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    let data = shared.join("data/office_caltech10");
    let parameters = Parameters::new().method(Method::Lp).unknown(Unknown::Flag).check().unwrap();
    let mut compared = 0;
    for (pair, scenarios) in reference["pairs"].as_object().unwrap() {
        let (source, target) = pair.split_once("->").unwrap();
        for (scenario, want) in scenarios.as_object().unwrap() {
            let name = format!("{pair}, {scenario}");
            let classes: Vec<String> =
                numbers(&want["source_classes"]).iter().map(|class| class.to_string()).collect();
            let RealDomain { mut features, mut labels } = load(&data, source);
            let absent: Vec<usize> =
                (0..labels.len()).filter(|&row| !classes.contains(&labels[row])).collect();
            features.remove_rows(&absent);
            labels.retain(|label| classes.contains(label));
            let RealDomain { features: target_features, labels: truth } = load(&data, target);
            let domains = Domains::new(features, Labels::new(&labels), target_features).unwrap();
            let labelling = label(domains, &parameters).unwrap();
            let reach = labelling.reach.as_ref().unwrap();

            // Photos that are there twice tie for a vote or a neighbour, and either may win it.
            let within = match () {
                () if [source, target].map(has_twins).contains(&true) => 0.1,
                // One vote hangs on a difference of less than 1e-6 between two cosines.
                () if name == "dslr->webcam, half" => 5e-4,
                () => 1e-4,
            };
            for (row, value) in numbers(&want["rows"]).iter().zip(numbers(&want["reach"])) {
                let ours = f64::from(reach.values[*row as usize]);
                // The reference has six digits behind the point.
                let differ = (ours - value).abs();
                assert!(differ <= within * value + 6e-7, "{name}, row {row}: {ours} beside {value}");
            }
            let close = |ours: f64, field: &str, within: f64| {
                let theirs = want[field].as_f64().unwrap();
                assert!((ours - theirs).abs() <= within, "{name}, {field}: {ours} beside {theirs}");
            };
            close(reach.threshold, "threshold", 1e-3);
            close(reach.evidence.spread.unwrap(), "spread", 2e-3);
            close(reach.evidence.label_return, "label_return", 2e-3);
            close(reach.evidence.source_below, "flagged_source_share", 2e-3);
            // Items at the threshold itself may fall on either side.
            close(reach.evidence.below * truth.len() as f64, "flagged", 1.0);
            let verdict = match want["verdict"].as_str().unwrap() {
                "none" => "none",
                "new" => "new",
                word if word.starts_with("unmatched") => "unmatched",
                word if word.starts_with("no usable test") => "cannot-tell",
                word => panic!("{name}: the reference has a verdict this test does not know: {word}"),
            };
            assert_eq!(reach.verdict.as_str(), verdict, "{name}: {:?}", reach.evidence);
            if !want["auroc"].is_null() {
                let ours = auroc(&reach.values, |item| !classes.contains(&truth[item]));
                assert!((ours - want["auroc"].as_f64().unwrap()).abs() < 2e-4, "{name}: AUROC {ours}");
            }
            // What is flagged has no label but keeps the one it would have had.
            let nearest = labelling.nearest_labels.as_ref().unwrap();
            for item in 0..truth.len() {
                assert_eq!(labelling.pseudo_labels.labels()[item].is_none(), reach.is_unknown(item));
                assert_eq!(nearest[item].is_some(), reach.is_unknown(item));
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 24);
}
