//! An observer that keeps what a report shows of a run.

use crate::graph_shape::{affinity_picture, graph_shape};
use crate::items::Items;
use crate::map::{make_map, packed_class};
use crate::pca::Plane;
use crate::trace::{
    AffinityPicture, CalibrationBin, ConfidenceBin, GraphShape, MAX_FRAMES, Trace, TruthTrace,
};
use a2lp::evaluation::TargetTruth;
use a2lp::{
    Attempt, CheckedParameters, ClassId, Domains, Error, FeatureMatrix, FinishedRound, Labelling, Observer,
};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// Bins of the confidence histogram.
const CONFIDENCE_BINS: usize = 20;
/// Bins of the calibration plot.
const CALIBRATION_BINS: usize = 10;

/// Where items lie on a map: along the two principal components of all rows.
pub struct Layout {
    pub(crate) plane: Plane,
    pub(crate) places: Vec<[f32; 2]>,
}

impl Layout {
    /// Of source rows, then target rows.
    pub fn new(features: &FeatureMatrix, parameters: &CheckedParameters) -> Result<Self, Error> {
        parameters.on_threads(|| {
            let plane = Plane::of(features, parameters.similarity().scales_rows());
            let places = plane.place_all(features);
            Layout { plane, places }
        })
    }
}

/// An observer that keeps what a report shows.
pub struct Watcher<'a> {
    truth: Option<&'a TargetTruth>,
    source_labels: Vec<ClassId>,
    /// Most rounds there will be.
    rounds: usize,
    /// Rounds to keep for the map.
    frames: Vec<usize>,
    seen: Mutex<Attempts>,
}

/// What was seen of every labelling that the run tried.
#[derive(Default)]
struct Attempts {
    of: BTreeMap<Attempt, WatchedRounds>,
    kept: Attempt,
}

#[derive(Default)]
pub(crate) struct WatchedRounds {
    /// Confidence of every target item after some rounds.
    pub(crate) confidence: BTreeMap<usize, Vec<u8>>,
    graph: Option<GraphShape>,
    affinity: Vec<AffinityPicture>,
}

impl<'a> Watcher<'a> {
    /// Prepares to watch a run on these domains. The truth, if known already, orders the picture of the graph.
    pub fn new(domains: &Domains, parameters: &CheckedParameters, truth: Option<&'a TargetTruth>) -> Self {
        let source_labels = domains.source_labels().ids().to_vec();
        let frames = spread(parameters.rounds(), MAX_FRAMES).map(|at| at + 1).collect();
        let rounds = parameters.rounds();
        Watcher { truth, source_labels, rounds, frames, seen: Mutex::default() }
    }

    /// What was seen of the run that gave `labelling`, and how it compares with the truth where that is known. `layout` has a
    /// place for every source row and every target row.
    pub fn trace(
        &self,
        layout: &Layout,
        labelling: &Labelling,
        truth: Option<&TargetTruth>,
        ids: Option<&[String]>,
    ) -> Trace {
        let pseudo = &labelling.pseudo_labels;
        let attempts = self.attempts();
        let none = WatchedRounds::default();
        let seen = attempts.of.get(&attempts.kept).unwrap_or(&none);
        let names = truth.map_or(labelling.classes.names(), TargetTruth::names);
        let correct =
            |item: usize| truth.is_some_and(|truth| pseudo.labels()[item] == Some(truth.ids()[item]));

        let mut confidence = vec![ConfidenceBin::default(); CONFIDENCE_BINS];
        let mut class_confidence = vec![0f64; labelling.classes.len()];
        for (item, &value) in pseudo.confidence().iter().enumerate() {
            let bin = &mut confidence[bin_of(value, CONFIDENCE_BINS)];
            bin.items += 1;
            bin.correct += usize::from(correct(item));
            if let Some(class) = pseudo.labels()[item] {
                class_confidence[class as usize] += f64::from(value);
            }
        }
        let target_counts = pseudo.class_counts();
        for (sum, &count) in class_confidence.iter_mut().zip(&target_counts) {
            *sum /= count.max(1) as f64;
        }
        let overturned = labelling.labels_by_round.first().map_or(0, |first| pseudo.changed_from(first));

        let items = Items { labelling, truth, ids };
        let map = make_map(layout, &self.source_labels, labelling, seen, truth, ids);
        Trace {
            classes: names.to_vec(),
            source_counts: labelling.source_counts.clone(),
            target_counts,
            class_confidence,
            overturned,
            confidence,
            truth: truth.map(|truth| truth_trace(truth, labelling)),
            graph: seen.graph.clone(),
            affinity: seen.affinity.clone(),
            map,
            least_certain: items.least_certain(),
            reach: items.reach(),
        }
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Observer for Watcher<'_> {
    fn round(&self, round: &FinishedRound<'_>) {
        let number = round.round.round;
        let mut attempts = self.attempts();
        let seen = attempts.of.entry(round.attempt).or_default();
        // The last round so far stays only if it is to be kept.
        let kept = &self.frames;
        seen.confidence.retain(|number, _| kept.contains(number));
        let confidence = round.pseudo_labels.confidence().iter().map(|&w| (255.0 * w).round() as u8);
        seen.confidence.insert(number, confidence.collect());
        // A full graph that is not stored would have to be computed anew.
        if round.affinity.entries() == 0 {
            return;
        }
        if number == 1 {
            seen.graph = Some(graph_shape(round));
        }
        // A round that changes nothing may be the last.
        if number == 1 || number == self.rounds || round.round.changed == 0 {
            let picture = affinity_picture(round, self.truth.map(TargetTruth::ids));
            seen.affinity.truncate(1);
            seen.affinity.push(picture);
        }
    }

    fn chosen(&self, attempt: Attempt) {
        self.attempts().kept = attempt;
    }
}

/// At most `most` positions out of `count`, evenly spread, with the first and the last.
pub(crate) fn spread(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(most);
    (0..taken).map(move |at| if taken < 2 { 0 } else { at * (count - 1) / (taken - 1) })
}

fn bin_of(value: f32, bins: usize) -> usize {
    ((value * bins as f32) as usize).min(bins - 1)
}

fn truth_trace(truth: &TargetTruth, labelling: &Labelling) -> TruthTrace {
    let pseudo = &labelling.pseudo_labels;
    let mut counts = vec![0; truth.names().len()];
    let mut confusion: BTreeMap<(u16, u16), usize> = BTreeMap::new();
    let mut bins = vec![CalibrationBin::default(); CALIBRATION_BINS];
    for (item, (&truth, &label)) in truth.ids().iter().zip(pseudo.labels()).enumerate() {
        counts[truth as usize] += 1;
        *confusion.entry((packed_class(Some(truth)), packed_class(label))).or_default() += 1;
        if let Some(label) = label {
            let probability = pseudo.probabilities(item)[label as usize];
            let bin = &mut bins[bin_of(probability, CALIBRATION_BINS)];
            bin.items += 1;
            bin.probability += f64::from(probability);
            bin.correct += f64::from(u8::from(label == truth));
        }
    }
    for bin in &mut bins {
        bin.probability /= bin.items.max(1) as f64;
        bin.correct /= bin.items.max(1) as f64;
    }
    let mut order: Vec<usize> = (0..pseudo.len()).collect();
    order.sort_by(|&a, &b| pseudo.confidence()[b].total_cmp(&pseudo.confidence()[a]));
    let mut correct = 0;
    let running: Vec<(f64, f64)> = order
        .iter()
        .enumerate()
        .map(|(at, &item)| {
            correct += usize::from(pseudo.labels()[item] == Some(truth.ids()[item]));
            ((at + 1) as f64 / order.len() as f64, correct as f64 / (at + 1) as f64)
        })
        .collect();
    // From a tenth on; of fewer items the share says little.
    let first = running.len().div_ceil(10).max(1) - 1;
    let coverage = spread(running.len() - first, 50).map(|at| running[first + at]).collect();
    TruthTrace {
        counts,
        calibration: bins,
        confusion: confusion.into_iter().map(|((truth, label), items)| (truth, label, items)).collect(),
        coverage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::NO_CLASS;
    use a2lp::{FeatureMatrix, Labels, Parameters, Run};

    fn domains() -> Domains {
        // Two clusters, and two target items that are joined to each other and to nothing else.
        let source =
            FeatureMatrix::from_rows(&[[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.1, 0.9, 0.0]]);
        let target =
            FeatureMatrix::from_rows(&[[0.8, 0.2, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 2.0]]);
        Domains::new(source.unwrap(), Labels::new(&["a", "a", "b", "b"]), target.unwrap()).unwrap()
    }

    #[test]
    fn a_trace_counts_what_there_is() {
        let domains = domains();
        let parameters = Parameters::paper().neighbours(1).rounds(3).check().unwrap();
        let truth = TargetTruth::new(domains.source_labels().classes(), &["a", "a", "b", "z"]);
        let watcher = Watcher::new(&domains, &parameters, Some(&truth));
        let layout = Layout::new(domains.features(), &parameters).unwrap();
        let labelling = Run::new(domains, &parameters).observe(&watcher).label().unwrap();
        let ids: Vec<String> = (0..4).map(|at| format!("item {at}")).collect();
        let trace = watcher.trace(&layout, &labelling, Some(&truth), Some(&ids));

        let graph = trace.graph.as_ref().unwrap();
        assert_eq!((graph.nodes, graph.targets, graph.reached_targets), (8, 4, 2));
        // With one neighbour each: {a's}, {b's}, {the two strangers}, joined no further.
        assert_eq!((graph.components, graph.largest, graph.touching), (3, 3, 2));
        assert_eq!(graph.degrees.iter().map(|bin| bin.2).sum::<usize>(), 8);
        assert_eq!(trace.classes, ["a", "b", "z"]);
        assert_eq!(trace.target_counts, [1, 1]);
        let with_truth = trace.truth.as_ref().unwrap();
        assert_eq!(with_truth.counts, [2, 1, 1]);
        assert_eq!(with_truth.confusion, [(0, 0, 1), (0, 1, 1), (1, NO_CLASS, 1), (2, NO_CLASS, 1)]);
        assert_eq!(
            trace
                .confidence
                .iter()
                .map(|bin| (bin.items, bin.correct))
                .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)),
            (4, 1)
        );
        // The strangers come first in the list, without a label.
        assert_eq!(trace.least_certain[0].id.as_deref(), Some("item 2"));
        assert_eq!(trace.least_certain[0].label, None);
        assert_eq!(trace.map.frames.len(), 3);
        assert_eq!(trace.map.frames[2].labels, [0, 1, NO_CLASS, NO_CLASS]);
        assert_eq!(trace.map.anchors.len(), 4);
        assert_eq!(trace.affinity.len(), 2);
        assert_eq!((trace.affinity[1].source_height, trace.affinity[1].anchor_height), (4, 4));

        let text = serde_json::to_string(&trace).unwrap();
        assert_eq!(serde_json::from_str::<Trace>(&text).unwrap(), trace);
    }
}
