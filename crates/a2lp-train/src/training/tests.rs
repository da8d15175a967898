//! Training as a whole: against PyTorch, against itself after an interruption, and against what it should achieve.

use super::state::{put, values_of};
use super::*;
use crate::learners::Learner;
use crate::networks::BodyShape;
use serde_json::Value;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn numbers(count: usize, shift: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * 37 + shift) % 101) as f32 / 50.0 - 1.0).collect()
}

const ITEMS: usize = 12;

/// The network of `tests/reference/train.py`, with its first weights.
fn small_network(learner: Learner, device: &Device) -> LearnerNetwork {
    let judge = learner.recipe().is_adversarial().then_some(4);
    let mut network = LearnerNetwork::small_adapter(6, 5, 3, judge, device);
    if learner.recipe().splits_domains() {
        network.split_domains();
    }
    let first = [("body.", "fc1", 1), ("", "classifier", 3)];
    let judge = [("discriminator.", "fc1", 11), ("discriminator.", "fc2", 13), ("discriminator.", "fc3", 15)];
    let mut values = values_of(&network, "");
    for (name, (_, values)) in &mut values {
        for (part, layer, shift) in first.into_iter().chain(judge) {
            for (end, shift) in [("weight", shift), ("bias", shift + 1)] {
                if name.contains(part) && name.ends_with(&format!("{layer}.{end}")) {
                    *values = numbers(values.len(), shift);
                }
            }
        }
    }
    put(network, "", values).unwrap()
}

/// Six steps of a learner through `step.rs`, against `tests/reference/train.py`: all losses, and all weights in the end.
fn compare_with_pytorch(learner: Learner, own_labels: bool, expected: &Value) {
    let device = Device::flex().autodiff();
    let mut settings = TrainSettings::new(learner, BodyShape::Adapter(6)).rounds(2).steps(Some(3));
    settings = settings.batch(ITEMS).rate(0.05).pretrained_rate(0.1);
    settings = settings.target_weight(0.5).adversarial_weight(0.2).class_items(4).batch_classes(3);
    let settings = &settings.check(BodyShape::Adapter(6)).unwrap();
    let shape = NetworkShape {
        body: BodyShape::Adapter(6),
        bottleneck: false,
        discriminator: learner.recipe().is_adversarial().then_some(4),
        classes: 3,
    };
    let doubled = numbers(ITEMS * 6, 55).iter().map(|v| 2.0 * v).collect();
    let source = Inputs::Rows { columns: 6, values: numbers(ITEMS * 6, 5) };
    let target = Inputs::Rows { columns: 6, values: doubled };
    let labels: Vec<u32> = (0..ITEMS as u32).map(|item| item % 3).collect();
    let training = Training {
        settings,
        shape,
        weights: None,
        source: &source,
        labels: &labels,
        target: &target,
        checkpoint: Path::new(""),
        cache: Path::new(""),
        device: DeviceName::Cpu,
    };
    let mut state = training.start(&device).unwrap();
    state.network = small_network(learner, &device);
    state.centroids = state.centroids.map(|_| crate::losses::Centroids::new(3, 5));
    let orders = [Purpose::SourceOrder, Purpose::TargetOrder];
    let order = orders.map(|purpose| Shuffled::new(0, purpose, ITEMS, ITEMS));
    let is_class_aware = learner.recipe().is_class_aware();
    let label = |item: usize| Some((item as u32 + 1) % 3).filter(|_| item > 0 || is_class_aware);
    let pseudo: Vec<Weighted> = (0..ITEMS).map(|item| (label(item), 0.1 * (1 + item % 5) as f32)).collect();
    for round in 1..=2 {
        let of: Vec<Option<u32>> = pseudo.iter().map(|(label, _)| *label).collect();
        let plan = Plan {
            round,
            steps: 3,
            labels: (!own_labels).then(|| pseudo.clone()),
            class_aware: is_class_aware.then(|| ClassAware::new(&labels, &of, 3, 1, 3, 4)),
        };
        for at in 0..3 {
            let Losses { source, target, domain } =
                training.step(&mut state, &plan, &order, at, &device).unwrap();
            let expected = &expected["losses"][3 * (round - 1) + at];
            for (part, found) in [source, target, domain].into_iter().enumerate() {
                let expected = expected[part].as_f64().unwrap();
                let near = (found - expected).abs() < 2e-5 * (1.0 + expected.abs());
                assert!(
                    near,
                    "{learner:?}, round {round}, step {at}, loss {part}: {found} beside {expected}"
                );
            }
        }
    }
    let names = [
        ("body.fc1.", "fc1."),
        ("body.target.", "target."),
        ("body.source.", "source."),
        ("classifier.", "classifier."),
        ("judge.0.", "discriminator.fc1."),
        ("judge.2.", "discriminator.fc2."),
        ("judge.4.", "discriminator.fc3."),
    ];
    let found = values_of(&state.network, "");
    let mut compared = 0;
    for (name, expected) in expected.as_object().unwrap().iter().filter(|(name, _)| *name != "losses") {
        let (from, to) = names.into_iter().find(|(from, _)| name.starts_with(from)).unwrap();
        let ours = name.replace(from, to);
        let is_judge = ours.contains("discriminator");
        let (_, (_, values)) = found
            .iter()
            .find(|(full, _)| full.ends_with(&ours) && full.contains("discriminator") == is_judge)
            .unwrap();
        let expected: Vec<f64> = expected.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        assert_eq!(values.len(), expected.len(), "{name}");
        for (found, expected) in values.iter().zip(expected) {
            assert!(
                (f64::from(*found) - expected).abs() < 2e-5,
                "{learner:?} {name}: {found} beside {expected}"
            );
        }
        compared += 1;
    }
    assert_eq!(compared, found.len(), "every value of the network has a counterpart");
}

#[test]
fn six_steps_of_every_learner_are_those_of_pytorch() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/trajectory.json");
    let expected: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for &(word, learner) in Learner::WORDS {
        compare_with_pytorch(learner, false, &expected[word]);
    }
    compare_with_pytorch(Learner::Mstn, true, &expected["mstn-own"]);
}

/// Two domains of three classes: the target is turned and shifted.
fn domains() -> (Inputs, Vec<u32>, Inputs, Vec<Option<u32>>) {
    let row = |item: usize, target: bool| -> Vec<f32> {
        let class = item % 3;
        let noise = |at: usize| ((item * 7919 + at * 104_729 + 17) % 1009) as f32 / 1009.0 - 0.5;
        let value = |at: usize| if at % 3 == class { 2.0 } else { 0.2 } + noise(at);
        (0..8)
            .map(|at| if target { 0.8 * value(at) + 0.8 * value(at + 1) + 0.3 } else { value(at) })
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
        cache: Path::new(""),
        device: DeviceName::Cpu,
    };
    let notes = Notes::new(&truth, stop_at);
    let trained = training.run(&notes)?;
    Ok((trained, notes.accuracies.into_inner().unwrap()))
}

/// The accuracy after six rounds, and the mean entropy of the probabilities.
fn outcome(settings: TrainSettings) -> (f64, f64) {
    let dir = tempfile::tempdir().unwrap();
    let (trained, accuracies) = run(&settings.rounds(6), &dir.path().join("c"), usize::MAX).unwrap();
    assert_eq!(trained.probabilities.len(), 90 * 3);
    let entropy: f32 = trained.probabilities.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln()).sum();
    (*accuracies.last().unwrap(), f64::from(entropy) / 90.0)
}

#[test]
fn every_learner_gains_on_source_only() {
    let (source_only, _) = outcome(settings(Learner::SourceOnly, Labeller::Own));
    assert!((0.4..0.7).contains(&source_only), "there is something to gain: {source_only}");
    let gains = |name: &str, settings: TrainSettings| {
        let (accuracy, _) = outcome(settings);
        assert!(accuracy > source_only + 0.15, "{name}: {accuracy} beside {source_only}");
    };
    for &(word, learner) in Learner::WORDS.iter().filter(|(_, learner)| learner.uses_pseudo_labels()) {
        gains(word, settings(learner, Labeller::A2lp));
    }
    // In so few steps the discriminator learns only if it counts for much.
    gains("dann", settings(Learner::Dann, Labeller::Own).adversarial_weight(30.0));
}

#[test]
fn entropy_minimisation_lowers_the_entropy() {
    let em = settings(Learner::Em, Labeller::Own);
    let (_, without) = outcome(em.clone().target_weight(0.0));
    let (_, with) = outcome(em.target_weight(1.0));
    assert!(with < 0.3 * without, "{with} beside {without}");
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

#[test]
fn frozen_layers_stay_as_they_are_and_those_after_them_learn() {
    let folder = tempfile::tempdir().unwrap();
    let transform = |word| a2lp_data::images::Transform::named(word).unwrap();
    let paths = crate::trunk::tests::pictures(folder.path());
    let photos = || {
        let (train, test) = (transform("small-train"), transform("small"));
        Inputs::Files { paths: paths.clone(), train, test, upright: false }
    };
    let body = BodyShape::Backbone(crate::BackboneName::EfficientnetLite0);
    let device = DeviceName::Cpu.open().unwrap().autodiff();
    let shape = Learner::Ce.network(body, 3);
    let weights = folder.path().join("weights.safetensors");
    let start = LearnerNetwork::new(&shape, None, 0, &device).unwrap().valid();
    TrainedModel::new(shape.clone(), start.clone()).write(&weights).unwrap();
    let settings = TrainSettings::new(Learner::Ce, body).behind_frozen_layers();
    let settings = settings.freeze_until(Some("stage5".into())).cached_crops(1).rounds(2).steps(Some(2));
    let settings = settings.batch(4).neighbours(3).warm_up(3).check(body).unwrap();
    let cache = folder.path().join("cache");
    let run = |checkpoint: &str, stop_at| {
        let (source, target) = (photos(), photos());
        let training = Training {
            settings: &settings,
            shape: shape.clone(),
            weights: Some(&weights),
            source: &source,
            labels: &[0, 1, 2, 0, 1],
            target: &target,
            checkpoint: &folder.path().join(checkpoint),
            cache: &cache,
            device: DeviceName::Cpu,
        };
        training.run(&Notes::new(&[0, 1, 2, 0, 1].map(Some), stop_at))
    };
    let whole = run("whole", usize::MAX).unwrap();
    let caches = std::fs::read_dir(&cache).unwrap().count();
    assert_eq!(caches, 1, "the domains have the same images, and the file knows them by what they are");
    assert!(whole.untrained.is_some());

    let before = values_of(&start, "");
    let after = values_of(whole.model.network(), "");
    for (name, (_, values)) in &after {
        let block =
            name.split("blocks.").nth(1).and_then(|rest| rest.split('.').next()?.parse::<usize>().ok());
        let is_frozen = block.is_some_and(|block| block < 11) || name.contains("conv_stem");
        if is_frozen || name.contains("running") {
            assert_eq!(*values, before[name].1, "{name} is frozen");
        } else if name.ends_with("conv.weight") || name.contains("classifier") {
            assert_ne!(*values, before[name].1, "{name} learns");
        }
    }

    assert!(matches!(run("again", 4), Err(TrainError::Cancelled)));
    assert_eq!(run("again", usize::MAX).unwrap().probabilities, whole.probabilities);
}
