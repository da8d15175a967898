//! The audit against an independent implementation in NumPy, and its promise on real labellings.

#[path = "../../a2lp-data/tests/shared_data/mod.rs"]
mod shared_data;

use a2lp::{Domains, Labels, Parameters, label};
use a2lp_data::{FeatureFile, read_labels};
use a2lp_review::audit::{Ladder, Promise, Wealth, wrong_interval};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

fn reference(test: &str) -> Option<Value> {
    let shared = shared_data::find(test)?;
    let text = std::fs::read_to_string(shared.join("reference/audit.json")).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn integers(value: &Value) -> Vec<usize> {
    numbers(value).into_iter().map(|v| v as usize).collect()
}

#[test]
fn wealth_intervals_and_ladders_agree_with_the_reference() {
    let Some(reference) = reference("audit-reference") else { return };
    for case in reference["wealth"].as_array().unwrap() {
        let size = case["set_size"].as_u64().unwrap() as usize;
        let mut wealth = Wealth::new(size, case["max_error"].as_f64().unwrap());
        let mut signed_off_after = None;
        for (at, wrong) in integers(&case["answers"]).into_iter().enumerate() {
            wealth.answer(wrong == 1);
            if let Some(want) = case["log_wealth"].get((at + 1).to_string()) {
                // JSON has no infinities; the reference has null instead.
                let is_close = match want.as_f64() {
                    Some(want) => (want - wealth.log()).abs() < 1e-6,
                    None => wealth.log().is_infinite(),
                };
                assert!(is_close, "{want} and {} after {}", wealth.log(), at + 1);
            }
            if signed_off_after.is_none() && wealth.signed_off(0.05) {
                signed_off_after = Some(at as u64 + 1);
            }
        }
        assert_eq!(signed_off_after, case["signed_off_after"].as_u64());
    }
    let mut compared = 0;
    for case in reference["interval"].as_array().unwrap() {
        if numbers(&case["prior"]) != [1.0, 3.0] {
            continue;
        }
        let field = |name: &str| case[name].as_u64().unwrap() as usize;
        let delta = case["delta"].as_f64().unwrap();
        let found = wrong_interval(field("set_size"), field("answered"), field("wrong"), delta);
        assert_eq!(found, (field("lowest"), field("highest")), "{case}");
        compared += 1;
    }
    assert!(compared >= 5);
    for case in reference["ladder"].as_array().unwrap() {
        let wrong = integers(&case["wrong"]);
        let promise = Promise::new(case["max_error"].as_f64().unwrap());
        let mut ladder = Ladder::new(&numbers(&case["confidence"]), &integers(&case["key_order"]), promise);
        let after = integers(&case["tenths_signed_off_after_each"]);
        for (&shown, &tenths) in integers(&case["shown"]).iter().zip(&after) {
            assert_eq!(ladder.next(), Some(shown));
            ladder.answer(shown, wrong.contains(&shown));
            assert_eq!(ladder.signed_off(), tenths);
        }
    }
}

/// The interval by trying every number.
#[test]
fn the_interval_has_no_gap_and_loses_nothing() {
    let falling = |n: usize, k: usize| (0..k).map(|i| ((n - i) as f64).ln()).sum::<f64>();
    let ln_beta = |a: usize, b: usize| {
        let ln_factorial = |n: usize| (1..=n).map(|i| (i as f64).ln()).sum::<f64>();
        ln_factorial(a - 1) + ln_factorial(b - 1) - ln_factorial(a + b - 1)
    };
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
    for _ in 0..300 {
        let size = rng.random_range(1..400);
        let t = rng.random_range(0..=size);
        let s = rng.random_range(0..=t);
        let possible = |m: &usize| {
            let evidence = ln_beta(1 + s, 3 + t - s) - ln_beta(1, 3);
            let likelihood = falling(*m, s) + falling(size - m, t - s) - falling(size, t);
            evidence - likelihood < 20f64.ln()
        };
        let all: Vec<usize> = (s..=size - (t - s)).filter(possible).collect();
        assert_eq!(wrong_interval(size, t, s, 0.05), (all[0], all[all.len() - 1]), "{s} of {t} of {size}");
        assert_eq!(all.len(), all[all.len() - 1] - all[0] + 1);
    }
}

const AUDITS: usize = 1000;

/// One audit that stops after `budget` answers, or at the first sign-off with `stops_early`. Returns whether a statement was false.
fn is_violated(confidence: &[f64], wrong: &[bool], budget: usize, stops_early: bool, seed: u64) -> bool {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let mut draw: Vec<usize> = (0..wrong.len()).collect();
    draw.shuffle(&mut rng);
    let promise = Promise::new(0.05);
    let mut ladder = Ladder::new(confidence, &draw, promise);
    for _ in 0..budget {
        let Some(item) = ladder.next() else { break };
        ladder.answer(item, wrong[item]);
        if stops_early && ladder.signed_off() > 0 {
            break;
        }
    }
    let accepted = &ladder.ranked()[..ladder.accepted()];
    let errors = accepted.iter().filter(|&&item| wrong[item]).count();
    errors as f64 > promise.max_error * accepted.len() as f64 + 1e-9
}

/// Violations of 5 % would be 50 of 1,000 with a standard deviation of 6.9; three of those are allowed for sampling.
fn assert_promise(confidence: &[f64], wrong: &[bool], what: &str) {
    let limit = 0.05 * AUDITS as f64 + 3.0 * (0.05 * 0.95 * AUDITS as f64).sqrt();
    for (budget, stops_early) in [(100, false), (200, false), (400, false), (400, true)] {
        let violated =
            (0..AUDITS as u64).filter(|&seed| is_violated(confidence, wrong, budget, stops_early, seed));
        let violated = violated.count();
        assert!((violated as f64) <= limit, "{what}, {budget} answers: {violated} of {AUDITS} are false");
    }
}

#[test]
fn the_promise_holds_where_it_is_hardest() {
    // Sets just beyond the allowed share: 6 % wrong everywhere, and wrong labels spread by confidence.
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let confidence: Vec<f64> = (0..800).map(|_| rng.random_range(0.0..1.0)).collect();
    let even: Vec<bool> = (0..800).map(|item| item % 16 == 0).collect();
    assert_promise(&confidence, &even, "6 % wrong");
    let uneven: Vec<bool> =
        confidence.iter().map(|c| rng.random_range(0.0..1.0) < 0.12 * (1.0 - c)).collect();
    assert_promise(&confidence, &uneven, "uneven");
}

#[test]
fn the_promise_holds_on_real_labellings() {
    let Some(shared) = shared_data::find("audit-promise") else { return };
    let data = shared.join("data/office_caltech10");
    let domains = ["amazon", "caltech10", "dslr", "webcam"].map(|name| {
        let features = FeatureFile::open(&data.join(format!("{name}_feat.npy"))).unwrap().read().unwrap();
        let labels = read_labels(&data.join(format!("{name}_label.npy")), &Default::default()).unwrap();
        (name, features, labels.into_strings())
    });
    let parameters = Parameters::paper().check().unwrap();
    for (source, source_features, source_labels) in &domains {
        for (target, target_features, truth) in domains.iter().filter(|(target, ..)| target != source) {
            let both =
                Domains::new(source_features.clone(), Labels::new(source_labels), target_features.clone());
            let labelling = label(both.unwrap(), &parameters).unwrap();
            let labels = &labelling.pseudo_labels;
            let wrong: Vec<bool> = (0..truth.len())
                .map(|item| {
                    labels.labels()[item].is_none_or(|class| labelling.classes.name(class) != truth[item])
                })
                .collect();
            let confidence: Vec<f64> = labels.confidence().iter().map(|&c| f64::from(c)).collect();
            assert_promise(&confidence, &wrong, &format!("{source} to {target}"));
        }
    }
}
