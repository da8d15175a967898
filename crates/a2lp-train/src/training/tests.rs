//! Training as a whole: against PyTorch, against itself after an interruption, and against what it should achieve.

use super::optimiser::Sgd;
use super::state::{put, values_of};
use super::*;
use crate::learners::Learner;
use crate::losses::{cross_entropy, entropy, scalar};
use crate::networks::BodyShape;
use serde_json::Value;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn numbers(count: usize, shift: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * 37 + shift) % 101) as f32 / 50.0 - 1.0).collect()
}

/// The run of `tests/reference/train.py`.
#[test]
fn five_steps_are_those_of_pytorch() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/trajectory.json");
    let expected: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let device = Device::flex().autodiff();
    let mut network = LearnerNetwork::small_adapter(6, 5, 3, &device);
    network.split_domains();
    let mut values = values_of(&network, "");
    for (name, (_, values)) in &mut values {
        let shift = [("fc1.weight", 1), ("fc1.bias", 2), ("classifier.weight", 3), ("classifier.bias", 4)];
        if let Some((_, shift)) = shift.iter().find(|(end, _)| name.ends_with(end)) {
            *values = numbers(values.len(), *shift);
        }
    }
    let mut network = put(network, "", values).unwrap();
    let mut settings = TrainSettings::new(Learner::Can, BodyShape::Adapter(6));
    settings.pretrained_rate = 0.1;
    let mut sgd = Sgd::default();
    for step in 0..5 {
        let rate = annealed(0.1, 10.0, 0.75, step as f64 / 5.0);
        let pass = |domain| Pass { domain, training: true, stop_after: None };
        let batch = |values: Vec<f32>| Batch::new(values, &[4, 6], &device);
        let source = network.forward(batch(numbers(24, 5 + step)), pass(Domain::Source));
        let doubled = numbers(24, 55 + step).iter().map(|v| 2.0 * v).collect();
        let target = network.forward(batch(doubled), pass(Domain::Target));
        let loss = cross_entropy(source.logits, &[0, 1, 2, (step as u32 + 1) % 3]);
        let unsure = entropy(target.logits);
        for (found, expected) in
            [(&loss, &expected["losses"][step][0]), (&unsure, &expected["losses"][step][1])]
        {
            let (found, expected) = (scalar(found), expected.as_f64().unwrap());
            assert!((found - expected).abs() < 1e-5, "step {step}: {found} beside {expected}");
        }
        let gradients = network.gradients(&(loss + unsure * 0.3), &[]);
        let group = |name: &str, dimensions: usize| settings.group(name, dimensions, rate);
        network = sgd.step(network, gradients, 0.9, group);
    }
    let found = values_of(&network, "");
    for name in [
        "fc1.weight",
        "classifier.weight",
        "target.weight",
        "source.bias",
        "target.running_mean",
        "source.running_var",
    ] {
        let (_, (_, values)) = found.iter().find(|(full, _)| full.ends_with(name)).unwrap();
        let expected = expected[name].as_array().unwrap().iter().map(|v| v.as_f64().unwrap());
        for (found, expected) in values.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{name}: {found} beside {expected}");
        }
    }
}

/// Two domains of three classes: the target is turned and shifted.
fn domains() -> (Inputs, Vec<u32>, Inputs, Vec<Option<u32>>) {
    let row = |item: usize, target: bool| -> Vec<f32> {
        let class = item % 3;
        let noise = |at: usize| ((item * 7919 + at * 104_729 + 17) % 1009) as f32 / 1009.0 - 0.5;
        let value = |at: usize| if at % 3 == class { 2.0 } else { 0.2 } + noise(at);
        (0..8)
            .map(|at| if target { 0.8 * value(at) + 0.5 * value(at + 1) + 0.3 } else { value(at) })
            .collect()
    };
    let all = |target: bool| -> Vec<f32> {
        (0..90).flat_map(|item| row(item + 90 * usize::from(target), target)).collect()
    };
    let classes: Vec<u32> = (0..90).map(|item| item % 3).collect();
    let truth = classes.iter().map(|&class| Some(class)).collect();
    (Inputs::rows(8, all(false)), classes, Inputs::rows(8, all(true)), truth)
}

/// Notes accuracies, and stops the run at a step if asked.
struct Notes {
    truth: Vec<Option<u32>>,
    accuracies: Mutex<Vec<f64>>,
    steps: AtomicUsize,
    stop_at: usize,
}

impl Notes {
    fn new(truth: &[Option<u32>], stop_at: usize) -> Self {
        Notes { truth: truth.to_vec(), accuracies: Mutex::default(), steps: AtomicUsize::new(0), stop_at }
    }
}

impl TrainObserver for Notes {
    fn progress(&self, _: usize, _: usize, steps: usize) -> ControlFlow<()> {
        let done = if steps > 0 { self.steps.fetch_add(1, Ordering::Relaxed) } else { 0 };
        if done >= self.stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn round(&self, round: &TrainedRound<'_>) -> Result<(), TrainError> {
        let found = a2lp::PseudoLabels::from_probabilities(3, round.probabilities.to_vec());
        let right = found.labels().iter().zip(&self.truth).filter(|(a, b)| a == b).count();
        self.accuracies.lock().unwrap().push(right as f64 / self.truth.len() as f64);
        Ok(())
    }
}

fn settings(learner: Learner, labeller: Labeller) -> TrainSettings {
    let mut settings = TrainSettings::new(learner, BodyShape::Adapter(8));
    settings.labeller = labeller;
    (settings.rounds, settings.steps, settings.batch) = (3, Some(12), 16);
    (settings.batch_classes, settings.neighbours) = (3, 60);
    settings.warm_up = if learner == Learner::Can { 5 } else { 0 };
    settings
}

fn run(
    settings: &TrainSettings,
    checkpoint: &Path,
    stop_at: usize,
) -> Result<(Trained, Vec<f64>), TrainError> {
    let (source, labels, target, truth) = domains();
    let settings = &settings.clone().check(BodyShape::Adapter(8)).unwrap();
    let training = Training {
        settings,
        shape: NetworkShape {
            body: BodyShape::Adapter(8),
            bottleneck: false,
            discriminator: settings.learner.recipe().is_adversarial().then_some(16),
            classes: 3,
        },
        weights: None,
        source: &source,
        labels: &labels,
        target: &target,
        checkpoint,
        device: DeviceName::Cpu,
    };
    let notes = Notes::new(&truth, stop_at);
    let trained = training.run(&notes)?;
    Ok((trained, notes.accuracies.into_inner().unwrap()))
}

#[test]
fn every_learner_learns() {
    let dir = tempfile::tempdir().unwrap();
    for &(word, learner) in Learner::WORDS {
        for &(by, labeller) in Labeller::WORDS {
            let checkpoint = dir.path().join(format!("{word}-{by}"));
            let (trained, accuracies) = run(&settings(learner, labeller), &checkpoint, usize::MAX).unwrap();
            let last = *accuracies.last().unwrap();
            // Its own labels confirm a learner in its errors; those of a graph do not know of them.
            let least = if labeller == Labeller::Own || !learner.uses_pseudo_labels() { 0.6 } else { 0.8 };
            assert!(last > least, "{word} {by}: {accuracies:?}");
            assert_eq!(trained.probabilities.len(), 90 * 3);
        }
    }
}

#[test]
fn a_run_that_was_interrupted_ends_as_one_that_was_not() {
    let dir = tempfile::tempdir().unwrap();
    for (learner, labeller) in
        [(Learner::Mstn, Labeller::A2lp), (Learner::Can, Labeller::Own), (Learner::SourceOnly, Labeller::Own)]
    {
        let settings = settings(learner, labeller);
        let name = |what: &str| dir.path().join(format!("{}-{what}", learner.as_str()));
        let (whole, accuracies) = run(&settings, &name("whole"), usize::MAX).unwrap();
        whole.model.write(&name("whole.safetensors")).unwrap();
        for stop_at in [2, 20, 35] {
            let checkpoint = name(&format!("stopped-{stop_at}"));
            assert!(matches!(run(&settings, &checkpoint, stop_at), Err(TrainError::Cancelled)));
            let (resumed, later) = run(&settings, &checkpoint, usize::MAX).unwrap();
            assert_eq!(resumed.probabilities, whole.probabilities, "{learner:?} {stop_at}");
            assert!(accuracies.ends_with(&later));
            resumed.model.write(&name("resumed.safetensors")).unwrap();
            let bytes = |what: &str| std::fs::read(name(what)).unwrap();
            assert_eq!(bytes("resumed.safetensors"), bytes("whole.safetensors"));
        }
        // A finished run is not made again, and not mixed with another.
        let (again, none) = run(&settings, &name("whole"), usize::MAX).unwrap();
        assert_eq!((again.probabilities, none), (whole.probabilities, Vec::new()));
        let other = TrainSettings { seed: 1, ..settings };
        assert!(matches!(run(&other, &name("whole"), usize::MAX), Err(TrainError::OtherRun { .. })));
    }
}

#[test]
fn a_model_says_the_same_after_it_was_written_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let (trained, _) =
        run(&settings(Learner::Mstn, Labeller::Lp), &dir.path().join("c"), usize::MAX).unwrap();
    let file = dir.path().join("weights.safetensors");
    trained.model.write(&file).unwrap();
    let (_, _, target, _) = domains();
    let read = TrainedModel::read(&file).unwrap();
    assert_eq!(read.predict(&target, DeviceName::Cpu).unwrap(), trained.probabilities);
    std::fs::write(&file, b"nothing").unwrap();
    assert!(TrainedModel::read(&file).is_err());
}

#[test]
fn a_loss_that_is_no_number_stops_the_run_and_keeps_the_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(Learner::Em, Labeller::Own);
    settings.rate = 1e30;
    let checkpoint = dir.path().join("c");
    let error = run(&settings, &checkpoint, usize::MAX).err().unwrap();
    assert!(matches!(error, TrainError::Diverged { round: 1, .. }), "{error}");
    assert!(error.to_string().contains("smaller learning rate"));
    assert!(checkpoint.exists());
}

#[test]
fn a_backbone_keeps_the_names_it_is_known_by() {
    let dir = tempfile::tempdir().unwrap();
    let reference = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference").join(name);
    let device = Device::flex();
    let mut network = LearnerNetwork::narrow_resnet(3, &reference("narrow.safetensors"), &device);
    network.split_domains();
    let shape = NetworkShape {
        body: BodyShape::Backbone(crate::BackboneName::Resnet50),
        bottleneck: false,
        discriminator: None,
        classes: 3,
    };
    let file = dir.path().join("weights.safetensors");
    TrainedModel::new(shape, network).write(&file).unwrap();
    let read = |path: &Path| state::read_values(&std::fs::read(path).unwrap()).unwrap().1;
    let names = |values: &state::Values| {
        let known = values.keys().filter(|name| !name.starts_with("fc."));
        known.cloned().collect::<Vec<_>>()
    };
    let ours = read(&file);
    // The narrow file also holds counters of int64, so it is read by name.
    let bytes = std::fs::read(reference("narrow.safetensors")).unwrap();
    let theirs = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut known: Vec<String> = theirs
        .names()
        .into_iter()
        .filter(|name| !name.starts_with("fc.") && !name.ends_with("num_batches_tracked"))
        .map(|name| name.to_string())
        .collect();
    known.sort_unstable();
    assert_eq!(names(&ours), known);
    for name in &known {
        let view = theirs.tensor(name).unwrap();
        assert_eq!(view.shape(), ours[name].0, "{name}");
        let values: Vec<f32> =
            view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        assert_eq!(values, ours[name].1, "{name}");
    }
    assert_eq!(ours["fc.weight"].0, [3, 64]);
}
