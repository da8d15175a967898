//! A target without some classes of the source, on the demo's domains.

use a2lp::evaluation::TargetTruth;
use a2lp::{AssumedMix, Domains, Labelling, Labels, Method, Mix, Parameters, Warning, label};
use a2lp_data::demo::{self, CLASSES};

/// Labels the demo's target without the digits from `present` on; returns the accuracy too.
fn label_without(present: usize, parameters: Parameters) -> (Labelling, f64) {
    let (source, mut target) = (demo::source(7, 40), demo::target(7, 40));
    let is_absent = |digit: &str| CLASSES.iter().position(|class| *class == digit).unwrap() >= present;
    let absent: Vec<usize> = (0..target.labels.len()).filter(|&at| is_absent(target.labels[at])).collect();
    target.features.remove_rows(&absent);
    target.labels.retain(|digit| !is_absent(digit));
    let labels = Labels::new(&source.labels);
    let truth = TargetTruth::new(labels.classes(), &target.labels);
    let domains = Domains::new(source.features, labels, target.features).unwrap();
    let labelling = label(domains, &parameters.check().unwrap()).unwrap();
    let accuracy = truth.score(labelling.pseudo_labels.labels()).unwrap().accuracy;
    (labelling, accuracy)
}

fn consensus() -> Parameters {
    Parameters::new().method(Method::Consensus)
}

#[test]
fn absent_classes_are_noticed_and_get_few_items() {
    let (labelling, accuracy) = label_without(3, consensus());
    let mix = labelling.mix.as_ref().unwrap();
    assert_eq!(mix.chosen, AssumedMix::Own, "{mix:?}");
    let absent = labelling.absent_classes();
    assert!(absent.len() >= 3 && absent.iter().all(|&class| class >= 3), "{absent:?}");
    let warned = |warning: &Warning| matches!(warning, Warning::AbsentClasses { of: 10, .. });
    assert!(labelling.warnings().iter().any(warned), "{:?}", labelling.warnings());
    // Whoever assumes the source's mix fills classes that are not there.
    let (_, same) = label_without(3, consensus().mix(Mix::Same));
    assert!(accuracy > same + 0.1 && accuracy > 0.85, "{accuracy} beside {same}");
}

#[test]
fn a_target_like_the_source_keeps_its_mix() {
    let (labelling, accuracy) = label_without(10, consensus());
    assert_eq!(labelling.mix.as_ref().unwrap().chosen, AssumedMix::Same, "{:?}", labelling.mix);
    assert!(labelling.absent_classes().is_empty() && accuracy > 0.9, "{accuracy}");
    // A mix that is asked for is not compared with the other.
    let (own, _) = label_without(10, consensus().mix(Mix::Own));
    let mix = own.mix.unwrap();
    assert!(mix.chosen == AssumedMix::Own && mix.fit_same.is_none() && mix.fit_own.is_some());
}

#[test]
fn methods_without_a_vote_assume_no_mix() {
    let (labelling, _) = label_without(10, Parameters::paper());
    assert_eq!(labelling.mix, None);
}
