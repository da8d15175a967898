//! The same labels, to the bit, from memory and from shards, for any number of workers, and after losses.

use a2lp::blocks::Settings;
use a2lp::{Domains, FeatureMatrix, Labels, Parameters, PseudoLabels, Run, Similarity};
use a2lp_shards::{
    Driver, Engine, Folder, Job, LocalEngine, Outcome, PartLabels, Parts, ShardError, Sink, Stage, Storage,
    Watch,
};
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const CLASSES: usize = 5;

/// Two domains of clusters, of which the target lies a little off; some rows are alone, some are zero.
struct Data {
    columns: usize,
    source: Vec<f32>,
    labels: Vec<String>,
    target: Vec<f32>,
}

fn data(source_rows: usize, target_rows: usize, columns: usize) -> Data {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
    let centres: Vec<f32> = (0..4 * CLASSES * columns).map(|_| rng.random_range(-1.0f32..1.0)).collect();
    let mut rows = |count: usize, shift: f32| {
        let mut values = Vec::with_capacity(count * columns);
        for row in 0..count {
            let centre = &centres[row % (4 * CLASSES) * columns..][..columns];
            values.extend(centre.iter().map(|c| c + shift + 0.8 * rng.random_range(-1.0f32..1.0)));
            if row % 997 == 500 {
                values[row * columns..].fill(0.0);
            }
        }
        values
    };
    let (source, target) = (rows(source_rows, 0.0), rows(target_rows, 0.15));
    let labels = (0..source_rows).map(|row| format!("class {}", row % (4 * CLASSES) % CLASSES)).collect();
    Data { columns, source, labels, target }
}

impl Data {
    fn domains(&self) -> Domains {
        let matrix = |values: &[f32]| {
            FeatureMatrix::new(values.len() / self.columns, self.columns, values.to_vec()).unwrap()
        };
        Domains::new(matrix(&self.source), Labels::new(&self.labels), matrix(&self.target)).unwrap()
    }

    /// Parts of different sizes.
    fn parts(&self) -> Cut {
        let cut = |values: &[f32], sizes: &[usize]| -> Vec<Vec<f32>> {
            let mut rest = values;
            let mut parts = Vec::new();
            for size in sizes {
                let (part, tail) = rest.split_at((size * self.columns).min(rest.len()));
                parts.push(part.to_vec());
                rest = tail;
            }
            parts.push(rest.to_vec());
            parts.retain(|part| !part.is_empty());
            parts
        };
        let mut parts = cut(&self.source, &[1700]);
        let source_parts = parts.len();
        parts.extend(cut(&self.target, &[1, 3000, 2500]));
        Cut { parts, source_parts, columns: self.columns, written: Mutex::default() }
    }
}

/// The data in parts.
struct Cut {
    parts: Vec<Vec<f32>>,
    source_parts: usize,
    columns: usize,
    written: Mutex<BTreeMap<usize, PseudoLabels>>,
}

impl Parts for Cut {
    fn read(&self, part: usize, sink: Sink<'_>) -> Result<(), ShardError> {
        // Pieces that end within rows.
        self.parts[part].chunks(1001).try_for_each(sink)
    }

    fn write(&self, part: usize, labels: &PartLabels<'_>) -> Result<(), ShardError> {
        self.written.lock().unwrap().insert(part, labels.labels.clone());
        Ok(())
    }
}

fn job(data: &Data, cut: &Cut, parameters: &Parameters) -> (Job, Vec<u32>) {
    let parameters = parameters.clone().check().unwrap();
    let labels = Labels::new(&data.labels);
    let rows: Vec<usize> = cut.parts.iter().map(|part| part.len() / cut.columns).collect();
    let job = Job {
        source_parts: cut.source_parts,
        columns: data.columns,
        classes: labels.classes().names().to_vec(),
        chunk_rows: 1500,
        block_rows: Job::usual_block_rows(rows.iter().sum(), data.columns),
        parts: rows,
        probabilities: false,
        fingerprint: String::new(),
        settings: Settings::of(&parameters).unwrap(),
    };
    (job, labels.ids().to_vec())
}

/// A run on shards, with so many workers and so much memory.
fn sharded(
    data: &Data,
    parameters: &Parameters,
    workers: usize,
    memory: usize,
) -> (Vec<PseudoLabels>, Outcome) {
    let cut = Arc::new(data.parts());
    let (job, labels) = job(data, &cut, parameters);
    let folder = tempfile::tempdir().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Folder::new(folder.path()).unwrap());
    assert!(!Driver::prepare(&*storage, &job, &labels).unwrap());
    let mut engine = LocalEngine::new(workers, 2, storage.clone(), cut.clone(), None).unwrap();
    let outcome = Driver::new(storage, &mut engine, memory, &()).unwrap().run().unwrap();
    let written = cut.written.lock().unwrap().values().cloned().collect();
    (written, outcome)
}

/// Labels, confidences, margins, statuses and probabilities, bit by bit.
fn assert_same(parts: &[PseudoLabels], whole: &PseudoLabels, what: &str) {
    let items = || parts.iter().flat_map(|part| (0..part.len()).map(move |item| (part, item)));
    assert_eq!(items().count(), whole.len(), "{what}");
    for (at, (part, item)) in items().enumerate() {
        assert_eq!(part.labels()[item], whole.labels()[at], "{what}: label of item {at}");
        assert_eq!(part.status()[item], whole.status()[at], "{what}: status of item {at}");
        assert_eq!(part.confidence()[item].to_bits(), whole.confidence()[at].to_bits(), "{what}: item {at}");
        assert_eq!(part.margin()[item].to_bits(), whole.margin()[at].to_bits(), "{what}: item {at}");
        let bits = |p: &[f32]| p.iter().map(|p| p.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(part.probabilities(item)), bits(whole.probabilities(at)), "{what}: item {at}");
    }
}

fn parameters() -> Parameters {
    Parameters::paper()
        .neighbours(12)
        .rounds(4)
        .graph_method(a2lp::GraphMethod::Pruned)
        .unknown(a2lp::Unknown::Off)
}

#[test]
fn any_number_of_workers_gives_the_labels_of_a_run_in_memory() {
    let data = data(3000, 9500, 24);
    let checked = parameters().check().unwrap();
    let whole = Run::new(data.domains(), &checked).label().unwrap();
    for workers in [1, 2, 5] {
        let (parts, outcome) = sharded(&data, &parameters(), workers, usize::MAX / 2);
        assert_same(&parts, &whole.pseudo_labels, &format!("{workers} workers"));
        assert_eq!(outcome.rounds.len(), whole.rounds.len());
        for (round, other) in outcome.rounds.iter().zip(&whole.rounds) {
            assert_eq!(round.anchors, other.anchors);
            assert_eq!(round.class_counts, other.class_counts);
            assert_eq!((round.changed, round.unreached), (other.changed, other.unreached));
            assert_eq!(round.solve, other.solve);
        }
        let graph = whole.graph.as_ref().unwrap();
        assert!((outcome.recall - graph.recall).abs() < 1e-12, "{} {}", outcome.recall, graph.recall);
        assert_eq!(outcome.sweep_bytes > 0, workers > 1);
    }
}

#[test]
fn little_memory_changes_nothing() {
    let data = data(3000, 9500, 24);
    let whole = Run::new(data.domains(), &parameters().check().unwrap()).label().unwrap();
    let (parts, _) = sharded(&data, &parameters(), 2, 1 << 20);
    assert_same(&parts, &whole.pseudo_labels, "a megabyte");
}

#[test]
fn every_setting_that_shards_follow_does_what_it_does_in_memory() {
    let data = data(1500, 4000, 10);
    for (what, parameters) in [
        ("gaussian", parameters().similarity(Similarity::Gaussian { sigma2: 2.0 })),
        ("dot3", parameters().similarity(Similarity::Dot3).alpha(0.75)),
        ("replace", parameters().anchor_mode(a2lp::AnchorMode::Replace)),
        ("uniform", parameters().anchor_weights(a2lp::AnchorWeights::Uniform)),
        ("class size", parameters().label_weight(a2lp::LabelWeight::ClassSize).min_confidence(0.5)),
        ("lp", parameters().method(a2lp::Method::Lp)),
        ("stable", parameters().rounds(12).stop_when_stable(true)),
        ("seed", parameters().seed(7).k_includes_self(true)),
    ] {
        let whole = Run::new(data.domains(), &parameters.clone().check().unwrap()).label().unwrap();
        let (parts, _) = sharded(&data, &parameters, 2, usize::MAX / 2);
        assert_same(&parts, &whole.pseudo_labels, what);
    }
}

/// Stops after so many calls.
struct Impatient(AtomicUsize);

impl Watch for Impatient {
    fn progress(&self, _: Stage, _: usize, _: usize) -> ControlFlow<()> {
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
            Ok(_) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

#[test]
fn a_run_that_was_stopped_anywhere_goes_on_to_the_same_labels() {
    let data = data(1500, 4000, 10);
    let whole = Run::new(data.domains(), &parameters().check().unwrap()).label().unwrap();
    let cut = Arc::new(data.parts());
    let (job, labels) = job(&data, &cut, &parameters());
    let folder = tempfile::tempdir().unwrap();
    let mut stops = 0;
    loop {
        let storage: Arc<dyn Storage> = Arc::new(Folder::new(folder.path()).unwrap());
        assert_eq!(Driver::prepare(&*storage, &job, &labels).unwrap(), stops > 0);
        // Other workers every time.
        let mut engine = LocalEngine::new(1 + stops % 3, 1, storage.clone(), cut.clone(), None).unwrap();
        // Enough calls to finish a round of iterations at some time.
        let watch = Impatient(AtomicUsize::new(3 + 2 * stops));
        match Driver::new(storage, &mut engine, usize::MAX / 2, &watch).unwrap().run() {
            Err(ShardError::Run(a2lp::Error::Cancelled)) => stops += 1,
            other => {
                other.unwrap();
                break;
            }
        }
    }
    assert!(stops > 8, "{stops}");
    let written: Vec<PseudoLabels> = cut.written.lock().unwrap().values().cloned().collect();
    assert_same(&written, &whole.pseudo_labels, "after many stops");
}

/// A storage that fails for good after so many operations: a process that was killed there.
struct Mortal {
    folder: Folder,
    left: AtomicUsize,
}

impl Mortal {
    fn live(&self) -> Result<(), ShardError> {
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| ShardError::Broken("killed".into()))
    }
}

impl Storage for Mortal {
    fn length(&self, name: &str) -> Result<Option<u64>, ShardError> {
        self.live()?;
        self.folder.length(name)
    }

    fn read_into(&self, name: &str, offset: u64, bytes: &mut [u8]) -> Result<(), ShardError> {
        self.live()?;
        self.folder.read_into(name, offset, bytes)
    }

    fn write(&self, name: &str, parts: &[&[u8]]) -> Result<(), ShardError> {
        self.live()?;
        self.folder.write(name, parts)
    }

    fn remove(&self, name: &str) -> Result<(), ShardError> {
        self.live()?;
        self.folder.remove(name)
    }
}

#[test]
fn a_run_that_dies_between_any_two_operations_goes_on() {
    let data = data(1500, 4000, 10);
    let whole = Run::new(data.domains(), &parameters().check().unwrap()).label().unwrap();
    let cut = Arc::new(data.parts());
    let (job, labels) = job(&data, &cut, &parameters());
    let folder = tempfile::tempdir().unwrap();
    let mut deaths = 0;
    loop {
        // One operation more every time, so that every one of them is the last at some time.
        let left = AtomicUsize::new(20 + deaths);
        let storage: Arc<dyn Storage> =
            Arc::new(Mortal { folder: Folder::new(folder.path()).unwrap(), left });
        let run = Driver::prepare(&*storage, &job, &labels).and_then(|_| {
            let mut engine = LocalEngine::new(1, 1, storage.clone(), cut.clone(), None)?;
            Driver::new(storage, &mut engine, usize::MAX / 2, &())?.run()
        });
        match run {
            Ok(_) => break,
            Err(ShardError::Broken(message)) if message == "killed" => deaths += 1,
            Err(other) => panic!("after {deaths} deaths: {other}"),
        }
    }
    assert!(deaths > 50, "{deaths}");
    let written: Vec<PseudoLabels> = cut.written.lock().unwrap().values().cloned().collect();
    assert_same(&written, &whole.pseudo_labels, "after many deaths");
}

/// Loses its workers at every n-th step.
struct Fragile<'a> {
    engine: &'a mut LocalEngine,
    every: usize,
    steps: usize,
}

impl Engine for Fragile<'_> {
    fn workers(&self) -> usize {
        self.engine.workers()
    }

    fn tasks(
        &mut self,
        tasks: &[Vec<u8>],
        done: &mut dyn FnMut(usize) -> Result<(), ShardError>,
    ) -> Result<Vec<Vec<u8>>, ShardError> {
        self.engine.tasks(tasks, done)
    }

    fn step(&mut self, message: &[u8], wants_replies: bool) -> Result<Vec<Vec<u8>>, ShardError> {
        self.steps += 1;
        if self.steps.is_multiple_of(self.every) {
            return Err(ShardError::Lost("as planned".into()));
        }
        self.engine.step(message, wants_replies)
    }

    fn start(&mut self, messages: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, ShardError> {
        self.engine.start(messages)
    }

    fn renew(&mut self) -> Result<(), ShardError> {
        self.engine.renew()
    }
}

#[test]
fn lost_workers_are_replaced_and_nothing_shows() {
    let data = data(1500, 4000, 10);
    let whole = Run::new(data.domains(), &parameters().check().unwrap()).label().unwrap();
    let cut = Arc::new(data.parts());
    let (job, labels) = job(&data, &cut, &parameters());
    let folder = tempfile::tempdir().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Folder::new(folder.path()).unwrap());
    Driver::prepare(&*storage, &job, &labels).unwrap();
    let mut local = LocalEngine::new(2, 1, storage.clone(), cut.clone(), None).unwrap();
    let mut engine = Fragile { engine: &mut local, every: 71, steps: 0 };
    let outcome = Driver::new(storage, &mut engine, usize::MAX / 2, &()).unwrap().run().unwrap();
    assert!(outcome.lost >= 2, "{}", outcome.lost);
    let written: Vec<PseudoLabels> = cut.written.lock().unwrap().values().cloned().collect();
    assert_same(&written, &whole.pseudo_labels, "after losses");
}

#[test]
fn bad_rows_and_other_jobs_are_refused() {
    let mut data = data(300, 500, 6);
    data.target[6 * 41 + 2] = f32::NAN;
    let cut = Arc::new(data.parts());
    let (job, labels) = job(&data, &cut, &parameters());
    let folder = tempfile::tempdir().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Folder::new(folder.path()).unwrap());
    Driver::prepare(&*storage, &job, &labels).unwrap();
    let mut engine = LocalEngine::new(1, 1, storage.clone(), cut, None).unwrap();
    let error = Driver::new(storage.clone(), &mut engine, 1 << 30, &()).unwrap().run().unwrap_err();
    assert!(error.to_string().contains("target features: row 41, column 2 is NaN"), "{error}");

    let other = Job { fingerprint: "other".into(), ..job };
    let error = Driver::prepare(&*storage, &other, &labels).unwrap_err();
    assert!(
        error.to_string().contains("another inputs") || error.to_string().contains("other inputs"),
        "{error}"
    );
}
