//! Algorithm 1: features → pseudo-labels → some steps of learning → again.
//!
//! ```text
//! Inputs ─► network (eval) ─► φ of both domains ─► RoundView::labels (own, LP, A²LP) ─┐
//!    └────► batches ─► network (train) ─► losses ─► Sgd ◄───────────────────────┘   State is kept after every round
//! ```
//!
//! The truth about the target does not enter here: an observer that knows it can score the rounds.

mod export;
mod inputs;
mod judge;
mod labelling;
mod optimiser;
mod sampling;
mod settings;
mod state;
mod step;
#[cfg(test)]
mod tests;

pub use export::TrainedModel;
pub use inputs::Inputs;
pub use judge::Verdict;
pub use labelling::TrainingLabels;
pub(crate) use labelling::{RoundView, graph_parameters};
pub(crate) use optimiser::ramp;
pub use settings::{CheckedTrainSettings, Labeller, TrainSettings};
pub(crate) use step::{Objective, Step};

use crate::device::DeviceName;
use crate::draws::Purpose;
use crate::error::TrainError;
use crate::extract::{hash_file, stamp};
use crate::networks::{Domain, LearnerNetwork, NetworkShape, Pass};
use crate::trunk::{Photos, Trunk};
use a2lp::{Observer, PseudoLabels, Stage};
use burn::module::Module;
use burn::tensor::Device;
use burn::tensor::activation::softmax;
use judge::Untrained;
use labelling::{Matrix, mean_distance};
pub(crate) use optimiser::Group;
use optimiser::annealed;
use rayon::prelude::*;
use sampling::{ClassAware, Shuffled};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use state::State;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// Items at a time when nothing is learned: few enough that a wish to stop is heard soon.
const TOGETHER: usize = 128;
const PHOTOS_TOGETHER: usize = 4;
/// Batches of the target that fill its statistics after a warm-up on the source.
const STATISTICS_BATCHES: u64 = 50;
/// CAN stops when centres and labels move less than this.
const SETTLED: f64 = 0.001;

/// A training run.
pub struct Training<'a> {
    /// The settings.
    pub settings: &'a CheckedTrainSettings,
    /// The network.
    pub shape: NetworkShape,
    /// Weights of a backbone.
    pub weights: Option<&'a Path>,
    /// The labelled items.
    pub source: &'a Inputs,
    /// Their classes.
    pub labels: &'a [u32],
    /// The items to adapt to.
    pub target: &'a Inputs,
    /// Where the state is kept between rounds; a run goes on from what it finds there.
    pub checkpoint: &'a Path,
    /// A folder for what frozen layers make of the images. Runs that freeze the same layers of the same weights can share it.
    pub cache: &'a Path,
    /// The device.
    pub device: DeviceName,
}

/// Mean losses of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Losses {
    /// Cross-entropy on the source.
    pub source: f64,
    /// Loss on the target: entropy, cross-entropy on pseudo-labels, distance of centroids, or CDD.
    pub target: f64,
    /// Loss of the discriminator.
    pub domain: f64,
}

/// A round that is over.
pub struct TrainedRound<'a> {
    /// Its number, from 1.
    pub round: usize,
    /// Steps made in it.
    pub steps: usize,
    /// Learning rate of new layers at its end.
    pub rate: f64,
    /// Mean losses.
    pub losses: Losses,
    /// The pseudo-labels it learned from.
    pub labels: Option<&'a TrainingLabels>,
    /// How many of them were used.
    pub kept: usize,
    /// How many differ from the round before.
    pub changed: Option<usize>,
    /// What the classifier says of each target item at the end of the round: a probability per class.
    pub probabilities: &'a [f32],
    /// Nothing is left to learn.
    pub settled: bool,
    /// Seconds for pseudo-labels, and for steps.
    pub seconds: [f64; 2],
}

/// ReportOptions on at a run.
pub trait TrainObserver: Sync {
    /// Called before every step: round (from 1; 0 is the warm-up), step of the round, number of steps in it.
    fn progress(&self, round: usize, step: usize, steps: usize) -> ControlFlow<()>;
    /// Called while the frozen layers work on the images of a domain: images done, all images, and the bytes that are kept of them.
    fn caching(&self, _domain: Domain, _images: [usize; 2], _bytes: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    /// Called when a round is over, before its checkpoint is written.
    fn round(&self, round: &TrainedRound<'_>) -> Result<(), TrainError>;
}

/// A run that is over.
pub struct Trained {
    /// The network.
    pub model: TrainedModel,
    /// A probability per class for each target item.
    pub probabilities: Vec<f32>,
    /// The last pseudo-labels.
    pub labels: Option<TrainingLabels>,
    /// Rounds made by this call and earlier ones.
    pub rounds: usize,
    /// Rounds found in the checkpoint; `None` after a fresh start.
    pub resumed: Option<usize>,
    /// What the features say without any training, and which labels look better; `None` for a network that starts from nothing.
    pub untrained: Option<(PseudoLabels, Verdict)>,
}

/// The network's features and probabilities of all items.
struct Evaluated {
    source: Matrix,
    target: Matrix,
    probabilities: Vec<f32>,
}

/// A target item's pseudo-label, if it is learned from, and its weight.
pub(crate) type Weighted = (Option<u32>, f32);

/// The plan of a round.
pub(crate) struct Plan {
    round: usize,
    steps: usize,
    /// Labels of the target items that are learned from, after the filter.
    labels: Option<Vec<Weighted>>,
    class_aware: Option<ClassAware>,
}

impl Training<'_> {
    /// Trains, or goes on where an earlier call was interrupted.
    pub fn run(&self, observer: &dyn TrainObserver) -> Result<Trained, TrainError> {
        self.learn_behind_layers(observer).map_err(|error| match error {
            TrainError::Labelling(a2lp::Error::Cancelled) => TrainError::Cancelled,
            other => other,
        })
    }

    /// Runs the frozen layers first, if there are any.
    fn learn_behind_layers(&self, observer: &dyn TrainObserver) -> Result<Trained, TrainError> {
        let frozen = self.settings.freeze_until.as_deref().and_then(|layer| self.shape.body.layer(layer));
        let (Some(last), Some(source), Some(target)) = (frozen, self.source.photos(), self.target.photos())
        else {
            return self.learn(observer);
        };
        let device = self.device.open()?;
        let network = LearnerNetwork::new(&self.shape, self.weights, self.settings.seed, &device)?;
        let crops = self.settings.cached_crops;
        let trunk = Trunk { network: &network, layers: last + 1, device: &device, crops };
        std::fs::create_dir_all(self.cache)
            .map_err(|error| TrainError::Io { path: self.cache.to_path_buf(), error })?;
        let cached = |domain, photos| -> Result<Inputs, TrainError> {
            let mut hash = Sha256::new();
            hash.update(format!("{} {:?} {last} {crops}", env!("CARGO_PKG_VERSION"), self.shape.body));
            if let Some(weights) = self.weights {
                hash_file(&mut hash, weights)?;
            }
            hash_photos(&mut hash, Some(photos));
            let fingerprint = in_hex(hash);
            let path = self.cache.join(format!("{}.maps", &fingerprint[..16]));
            let go_on = |done, all, bytes| observer.caching(domain, [done, all], bytes);
            trunk.cache(photos, &path, fingerprint, &go_on).map(Inputs::Maps)
        };
        let (source, target) = (cached(Domain::Source, source)?, cached(Domain::Target, target)?);
        Training { shape: self.shape.clone(), source: &source, target: &target, ..*self }.learn(observer)
    }

    fn learn(&self, observer: &dyn TrainObserver) -> Result<Trained, TrainError> {
        let plain = self.device.open()?;
        let device = plain.clone().autodiff();
        let fingerprint = self.fingerprint()?;
        let mut state = self.start(&device)?;
        // The checkpoint's network has two normalisations or one, as the run it comes from had.
        let mut resumed = None;
        if self.checkpoint.exists() {
            let mut found = self.start(&device)?;
            if self.splits() {
                found.network.split_domains();
            }
            if found.read(self.checkpoint, &fingerprint, &plain)? {
                resumed = Some(found.rounds);
                state = found;
            } else {
                return Err(TrainError::OtherRun { path: self.checkpoint.to_path_buf() });
            }
        }
        let order = [
            Shuffled::new(self.settings.seed, Purpose::SourceOrder, self.source.len(), self.settings.batch),
            Shuffled::new(self.settings.seed, Purpose::TargetOrder, self.target.len(), self.settings.batch),
        ];
        if resumed.is_none() {
            self.warm_up(&mut state, &order, observer, [&device, &plain])?;
            if self.splits() {
                state.network.split_domains();
                if self.settings.warm_up > 0 && !matches!(self.target, Inputs::Maps(_)) {
                    self.fill_statistics(&state.network, &order[1], &device)?;
                }
            }
            state.write(self.checkpoint, &fingerprint)?;
        }
        let mut seen = self.evaluate(&state.network.valid(), observer, &plain)?;
        let untrained = self.untrained(&state, &seen, observer, &plain)?;
        while state.rounds < self.settings.rounds && !state.settled {
            self.round(&mut state, &mut seen, untrained.as_ref(), &order, observer, [&device, &plain])?;
            state.write(self.checkpoint, &fingerprint)?;
        }
        let untrained = match untrained {
            Some(untrained) => {
                let (watch, view) = (Watch { observer, round: state.rounds + 1 }, self.view(&seen));
                let verdict = untrained.judge(&view.of_classifier(), &view, &watch)?;
                Some((untrained.labels().clone(), verdict))
            }
            None => None,
        };
        let model = TrainedModel::new(self.shape.clone(), state.network.valid());
        let (rounds, labels) = (state.rounds, state.labels);
        Ok(Trained { model, probabilities: seen.probabilities, labels, rounds, resumed, untrained })
    }

    /// Labels the features that the network starts from: the features that were given, or those that its weights make.
    fn untrained(
        &self,
        state: &State,
        seen: &Evaluated,
        observer: &dyn TrainObserver,
        plain: &Device,
    ) -> Result<Option<Untrained>, TrainError> {
        let given = self.given_features();
        let start = match &given {
            Some(_) => None,
            None if self.weights.is_none() => return Ok(None),
            None if state.rounds == 0 && self.settings.warm_up == 0 => None,
            None => {
                let device = plain.clone().autodiff();
                Some(self.evaluate(&self.start(&device)?.network.valid(), observer, plain)?)
            }
        };
        let mut view = self.view(start.as_ref().unwrap_or(seen));
        if let Some([source, target]) = &given {
            (view.source, view.target) = (source, target);
        }
        let watch = Watch { observer, round: state.rounds + 1 };
        Untrained::new(&view, self.settings, &watch).map(Some)
    }

    /// The features that an adapter was given.
    fn given_features(&self) -> Option<[Matrix; 2]> {
        let given = |inputs: &Inputs| match inputs {
            Inputs::Rows { columns, values } => Some(Matrix { columns: *columns, values: values.clone() }),
            _ => None,
        };
        Some([given(self.source)?, given(self.target)?])
    }

    /// Features and predictions as labels are made from them.
    fn view<'v>(&'v self, seen: &'v Evaluated) -> RoundView<'v> {
        RoundView {
            source: &seen.source,
            labels: self.labels,
            target: &seen.target,
            probabilities: &seen.probabilities,
            classes: self.shape.classes,
        }
    }

    /// Do the domains have their own batch-norm statistics?
    fn splits(&self) -> bool {
        self.settings.learner.recipe().splits_domains() && self.renews_norms()
    }

    /// Is every batch normalised by its own statistics? Behind frozen layers, those that the weights came with stay: the statistics of
    /// so few and small batches alone made the features worse.
    fn renews_norms(&self) -> bool {
        self.settings.freeze_until.is_none()
    }

    fn start(&self, device: &Device) -> Result<State, TrainError> {
        let network = LearnerNetwork::new(&self.shape, self.weights, self.settings.seed, device)?;
        let centroids = self.settings.learner.recipe().centroids(&self.shape);
        Ok(State {
            rounds: 0,
            steps: 0,
            network,
            sgd: Default::default(),
            centroids,
            labels: None,
            centres: None,
            settled: false,
        })
    }

    /// Steps on the source alone. Behind frozen layers the body stays as it is meanwhile: a classifier that knows nothing would
    /// only spoil what it was given.
    fn warm_up(
        &self,
        state: &mut State,
        order: &[Shuffled; 2],
        observer: &dyn TrainObserver,
        [device, plain]: [&Device; 2],
    ) -> Result<(), TrainError> {
        let steps = self.settings.warm_up;
        let go_on = || observer.progress(0, 0, 0);
        let features = match self.source {
            Inputs::Maps(_) if steps > 0 => {
                Some(evaluate(&state.network.valid(), self.source, Domain::Source, plain, &go_on)?.0)
            }
            _ => None,
        };
        for step in 0..steps {
            if observer.progress(0, step, steps).is_break() {
                return Err(TrainError::Cancelled);
            }
            let losses = self.source_step(state, order, features.as_ref(), device)?;
            self.check(losses, 0, step)?;
        }
        // The momentum of the warm-up does not fit the rounds.
        state.sgd = Default::default();
        Ok(())
    }

    /// Fills the target's batch-norm statistics, without learning anything.
    fn fill_statistics(
        &self,
        network: &LearnerNetwork,
        order: &Shuffled,
        device: &Device,
    ) -> Result<(), TrainError> {
        for step in 0..STATISTICS_BATCHES {
            let batch = self.target.batch(&order.batch(step), None, device)?;
            network.forward(batch, Pass { domain: Domain::Target, training: true, stop_after: None });
        }
        Ok(())
    }

    fn round(
        &self,
        state: &mut State,
        seen: &mut Evaluated,
        untrained: Option<&Untrained>,
        order: &[Shuffled; 2],
        observer: &dyn TrainObserver,
        [device, plain]: [&Device; 2],
    ) -> Result<(), TrainError> {
        let settings = self.settings;
        let round = state.rounds + 1;
        let began = Instant::now();
        let labels = self.label(state, seen, untrained, observer)?;
        let changed = labels.as_ref().zip(state.labels.as_ref()).map(|(now, before)| now.changed(before));
        let centres = self.centres(labels.as_ref(), seen);
        if let (Some([source, target]), Some(before)) = (&centres, &state.centres) {
            let share = changed.unwrap_or(0) as f64 / self.target.len().max(1) as f64;
            let moved = mean_distance(target, before);
            state.settled = moved < SETTLED && mean_distance(target, source) < SETTLED && share < SETTLED;
        }
        state.centres = centres.map(|[_, target]| target);
        state.labels = labels;
        let labelled = began.elapsed().as_secs_f64();

        let plan = self.plan(state, round);
        let began = Instant::now();
        let mut sum = Losses::default();
        let steps = if state.settled { 0 } else { plan.steps };
        for step in 0..steps {
            if observer.progress(round, step, steps).is_break() {
                return Err(TrainError::Cancelled);
            }
            let losses = self.step(state, &plan, order, step, device)?;
            self.check(losses, round, step)?;
            sum.source += losses.source;
            sum.target += losses.target;
            sum.domain += losses.domain;
        }
        let mean = |sum: f64| sum / steps.max(1) as f64;
        let losses = Losses { source: mean(sum.source), target: mean(sum.target), domain: mean(sum.domain) };
        let stepped = began.elapsed().as_secs_f64();
        *seen = self.evaluate(&state.network.valid(), observer, plain)?;
        let progress = round as f64 / settings.rounds as f64;
        observer.round(&TrainedRound {
            round,
            steps,
            rate: annealed(settings.rate, settings.mu, settings.beta, progress),
            losses,
            labels: state.labels.as_ref(),
            kept: plan.labels.as_ref().map_or(0, |l| l.iter().filter(|(class, _)| class.is_some()).count()),
            changed,
            probabilities: &seen.probabilities,
            settled: state.settled,
            seconds: [labelled, stepped],
        })?;
        state.rounds = round;
        Ok(())
    }

    /// The pseudo-labels of a round: on the features of the network as it is, or on the input features at first, when an
    /// adapter knows nothing yet.
    fn label(
        &self,
        state: &State,
        seen: &Evaluated,
        untrained: Option<&Untrained>,
        observer: &dyn TrainObserver,
    ) -> Result<Option<TrainingLabels>, TrainError> {
        let knows_nothing = state.rounds == 0 && self.settings.warm_up == 0;
        let given = if knows_nothing { self.given_features() } else { None };
        let mut view = self.view(seen);
        if let Some([source, target]) = &given {
            (view.source, view.target) = (source, target);
        }
        view.labels(self.settings, untrained, &Watch { observer, round: state.rounds + 1 })
    }

    /// The class centres of both domains, for learners that stop when these have met.
    fn centres(&self, labels: Option<&TrainingLabels>, seen: &Evaluated) -> Option<[Vec<Vec<f64>>; 2]> {
        let labels = labels.filter(|_| self.settings.learner.recipe().is_class_aware())?;
        Some(self.view(seen).centres(labels))
    }

    /// The labels and the number of steps of a round.
    fn plan(&self, state: &State, round: usize) -> Plan {
        let settings = self.settings;
        let progress = (round - 1) as f64 / settings.rounds as f64;
        let least = if settings.labeller == Labeller::Own {
            0.0
        } else {
            settings.min_confidence * (1.0 - progress as f32)
        };
        let keep = |(label, &weight): (&Option<u32>, &f32)| {
            (label.filter(|_| least == 0.0 || weight > least), weight)
        };
        let labels: Option<Vec<Weighted>> =
            state.labels.as_ref().map(|labels| labels.labels.iter().zip(&labels.weights).map(keep).collect());
        let class_aware =
            labels.as_ref().filter(|_| settings.learner.recipe().is_class_aware()).map(|labels| {
                let classes: Vec<Option<u32>> = labels.iter().map(|(class, _)| *class).collect();
                ClassAware::new(
                    self.labels,
                    &classes,
                    self.shape.classes,
                    settings.least_items,
                    settings.batch_classes,
                    settings.class_items,
                )
            });
        let by_formula = || {
            let steps = class_aware.as_ref().map_or(0, ClassAware::steps);
            ((steps as f64 * settings.epoch_share) as usize).max(1)
        };
        let steps = settings.steps.unwrap_or_else(by_formula);
        Plan { round, steps, labels, class_aware }
    }

    fn check(&self, losses: Losses, round: usize, step: usize) -> Result<(), TrainError> {
        let finite = [losses.source, losses.target, losses.domain].iter().all(|loss| loss.is_finite());
        if finite { Ok(()) } else { Err(TrainError::Diverged { round, step }) }
    }

    /// The network's features and probabilities of both domains.
    fn evaluate(
        &self,
        network: &LearnerNetwork,
        observer: &dyn TrainObserver,
        device: &Device,
    ) -> Result<Evaluated, TrainError> {
        let go_on = || observer.progress(0, 0, 0);
        let (source, _) = evaluate(network, self.source, Domain::Source, device, &go_on)?;
        let (target, probabilities) = evaluate(network, self.target, Domain::Target, device, &go_on)?;
        Ok(Evaluated { source, target, probabilities })
    }

    /// A hash of everything a run depends on; a checkpoint with another hash is refused.
    fn fingerprint(&self) -> Result<String, TrainError> {
        let mut hash = Sha256::new();
        let told = serde_json::to_string(&(self.settings, &self.shape, env!("CARGO_PKG_VERSION")));
        hash.update(told.unwrap_or_default());
        if let Some(weights) = self.weights {
            hash_file(&mut hash, weights)?;
        }
        self.labels.iter().for_each(|class| hash.update(class.to_le_bytes()));
        for inputs in [self.source, self.target] {
            match inputs {
                Inputs::Rows { values, .. } | Inputs::Digits(values) => {
                    values.iter().for_each(|value| hash.update(value.to_le_bytes()));
                }
                Inputs::Files { .. } => hash_photos(&mut hash, inputs.photos()),
                Inputs::Maps(maps) => hash.update(&maps.fingerprint),
            }
        }
        Ok(in_hex(hash))
    }
}

fn in_hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Takes in which images there are and how they are seen.
fn hash_photos(hash: &mut Sha256, photos: Option<Photos<'_>>) {
    if let Some(Photos { paths, train, test, upright }) = photos {
        hash.update(format!("{} {} {upright}", train.name(), test.name()));
        paths.iter().for_each(|path| hash.update(stamp(path)));
    }
}

/// Features and class probabilities of all items of a domain, in parts for all threads: a convolution of burn keeps one
/// core busy. Asks before every part whether to go on.
fn evaluate(
    network: &LearnerNetwork,
    inputs: &Inputs,
    domain: Domain,
    device: &Device,
    go_on: &(dyn Fn() -> ControlFlow<()> + Sync),
) -> Result<(Matrix, Vec<f32>), TrainError> {
    let rows: Vec<usize> = (0..inputs.len()).collect();
    let are_large = matches!(inputs, Inputs::Files { .. } | Inputs::Maps(_));
    let together = if are_large { PHOTOS_TOGETHER } else { TOGETHER };
    let parts: Vec<(Vec<f32>, Vec<f32>)> = rows
        .par_chunks(together)
        .map(|rows| {
            if go_on().is_break() {
                return Err(TrainError::Cancelled);
            }
            let batch = inputs.batch(rows, None, device)?;
            let found = network.forward(batch, Pass::evaluation(domain));
            let read = |tensor: burn::tensor::Tensor<2>| tensor.into_data().iter::<f32>().collect();
            Ok((read(found.features), read(softmax(found.logits, 1))))
        })
        .collect::<Result<_, TrainError>>()?;
    let (features, probabilities): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let values: Vec<f32> = features.concat();
    let columns = values.len() / inputs.len().max(1);
    Ok((Matrix { columns, values }, probabilities.concat()))
}

/// Lets the graph search stop when the observer says so.
struct Watch<'a> {
    observer: &'a dyn TrainObserver,
    round: usize,
}

impl Observer for Watch<'_> {
    fn progress(&self, _: Stage, _: u64, _: u64) -> ControlFlow<()> {
        self.observer.progress(self.round, 0, 0)
    }
}
