//! An observer that keeps what a report shows of a run.

use crate::pca::Plane;
use crate::trace::{
    AffinityPicture, AnchorPoint, CalibrationBin, ConfidenceBin, Frame, GraphShape, Item, MAX_FRAMES,
    MAX_ITEMS, MAX_POINTS, Map, MapKind, NO_CLASS, Trace, TruthTrace,
};
use a2lp::evaluation::TargetTruth;
use a2lp::{
    Attempt, CheckedParameters, ClassId, Domains, Error, FeatureMatrix, FinishedRound, Labelling, Observer,
    Status,
};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// Bins of the confidence histogram.
const CONFIDENCE_BINS: usize = 20;
/// Bins of the calibration plot.
const CALIBRATION_BINS: usize = 10;
/// Bytes of ids kept for the map.
const ID_BYTES: usize = 600_000;
/// Pixels of the affinity picture: across, down for source nodes, down for anchors.
const PICTURE: (usize, usize, usize) = (160, 120, 40);

/// Where items lie on a map: along the two principal components of all rows.
pub struct Layout {
    plane: Plane,
    places: Vec<[f32; 2]>,
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
struct WatchedRounds {
    /// Confidence of every target item after some rounds.
    confidence: BTreeMap<usize, Vec<u8>>,
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
            least_certain: least_certain(labelling, truth, ids),
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
fn spread(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(most);
    (0..taken).map(move |at| if taken < 2 { 0 } else { at * (count - 1) / (taken - 1) })
}

fn bin_of(value: f32, bins: usize) -> usize {
    ((value * bins as f32) as usize).min(bins - 1)
}

fn packed_class(class: Option<ClassId>) -> u16 {
    class.and_then(|class| u16::try_from(class).ok()).unwrap_or(NO_CLASS)
}

/// The map by principal components.
fn make_map(
    Layout { plane, places }: &Layout,
    source_labels: &[ClassId],
    labelling: &Labelling,
    seen: &WatchedRounds,
    truth: Option<&TargetTruth>,
    ids: Option<&[String]>,
) -> Map {
    let (sources, targets) = (source_labels.len(), labelling.pseudo_labels.len());
    // Each domain gets points in proportion, but not less than half of what an equal share would be.
    let share = MAX_POINTS * sources / (sources + targets);
    let for_sources = share.clamp(MAX_POINTS / 4, MAX_POINTS * 3 / 4).max(MAX_POINTS.saturating_sub(targets));
    let source_rows = stratified(sources, for_sources, |row| Some(source_labels[row]));
    let labels = labelling.pseudo_labels.labels();
    let target_rows = stratified(targets, MAX_POINTS - source_rows.len().min(MAX_POINTS), |row| labels[row]);

    let drawn: Vec<[f32; 2]> = source_rows
        .iter()
        .copied()
        .chain(target_rows.iter().map(|row| sources + row))
        .map(|row| places[row])
        .collect();
    let scale = Scale::of(&drawn);
    let (x, y) = scale.points(&drawn);
    let frames = seen
        .confidence
        .iter()
        .filter_map(|(&round, confidence)| {
            let labels = labelling.labels_by_round.get(round - 1)?;
            Some(Frame {
                round,
                labels: target_rows.iter().map(|&row| packed_class(labels[row])).collect(),
                confidence: target_rows.iter().map(|&row| confidence[row]).collect(),
            })
        })
        .collect();
    let anchors = labelling
        .anchors
        .iter()
        .map(|anchor| {
            let (x, y) = scale.place(plane.place(&anchor.vector));
            // An anchor made after one round takes part in the next.
            AnchorPoint {
                class: packed_class(Some(anchor.class)),
                round: anchor.round + 1,
                items: anchor.items,
                x,
                y,
            }
        })
        .collect();
    let ids: Vec<String> =
        ids.map_or(Vec::new(), |ids| target_rows.iter().map(|&row| ids[row].clone()).collect());
    let ids = if ids.iter().map(String::len).sum::<usize>() > ID_BYTES { Vec::new() } else { ids };
    Map {
        kind: MapKind::Pca,
        explained: Some(plane.explained),
        source_items: sources,
        target_items: targets,
        source_points: source_rows.len(),
        x,
        y,
        rows: source_rows.iter().chain(&target_rows).map(|&row| row as u32).collect(),
        source_labels: source_rows.iter().map(|&row| packed_class(Some(source_labels[row]))).collect(),
        frames,
        truth: truth.map_or(Vec::new(), |truth| {
            target_rows.iter().map(|&row| packed_class(Some(truth.ids()[row]))).collect()
        }),
        ids,
        anchors,
    }
}

/// Rows 0 to `count`, or a sample of `most` of them: every class in proportion but with at least one row, and evenly
/// spaced within the class.
fn stratified(count: usize, most: usize, class_of: impl Fn(usize) -> Option<ClassId>) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    let mut classes: BTreeMap<Option<ClassId>, Vec<usize>> = BTreeMap::new();
    for row in 0..count {
        classes.entry(class_of(row)).or_default().push(row);
    }
    let room = most.saturating_sub(classes.len());
    let mut rows: Vec<usize> = classes
        .values()
        .flat_map(|rows| spread(rows.len(), (rows.len() * room / count).max(1)).map(|at| rows[at]))
        .collect();
    rows.sort_unstable();
    rows
}

/// From the plane to whole numbers, the same in both directions.
pub(crate) struct Scale {
    centre: [f32; 2],
    per_unit: f32,
}

impl Scale {
    const SIDE: f32 = 65535.0;

    pub(crate) fn of(places: &[[f32; 2]]) -> Self {
        let range = |axis: usize| {
            let values = places.iter().map(|place| place[axis]);
            (values.clone().fold(f32::INFINITY, f32::min), values.fold(f32::NEG_INFINITY, f32::max))
        };
        let ((left, right), (bottom, top)) = (range(0), range(1));
        let size = (right - left).max(top - bottom);
        let per_unit = if size > 0.0 && size.is_finite() { Self::SIDE / size } else { 0.0 };
        Scale { centre: [(left + right) / 2.0, (bottom + top) / 2.0], per_unit }
    }

    pub(crate) fn place(&self, place: [f32; 2]) -> (i32, i32) {
        let at = |axis: usize| {
            ((place[axis] - self.centre[axis]) * self.per_unit + Self::SIDE / 2.0).round() as i32
        };
        (at(0), at(1))
    }

    pub(crate) fn points(&self, places: &[[f32; 2]]) -> (Vec<u16>, Vec<u16>) {
        let clamp = |at: i32| at.clamp(0, i32::from(u16::MAX)) as u16;
        places.iter().map(|&place| self.place(place)).map(|(x, y)| (clamp(x), clamp(y))).unzip()
    }
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

fn least_certain(labelling: &Labelling, truth: Option<&TargetTruth>, ids: Option<&[String]>) -> Vec<Item> {
    let pseudo = &labelling.pseudo_labels;
    let opinions: Vec<_> =
        labelling.views.iter().filter_map(|view| Some((view.name, view.labels_by_round.last()?))).collect();
    let agreed = |item: usize| opinions.iter().all(|(_, labels)| labels[item] == opinions[0].1[item]);
    let rank = |item: usize| match pseudo.status()[item] {
        Status::Unreached => 0,
        Status::Weak => 1,
        // What views of a consensus do not agree on comes before what they are unsure of together.
        Status::LowConfidence | Status::Labelled => 2 + usize::from(agreed(item)),
    };
    let mut order: Vec<usize> = (0..pseudo.len()).collect();
    let compare = |&a: &usize, &b: &usize| {
        let confidence = pseudo.confidence();
        rank(a).cmp(&rank(b)).then(confidence[a].total_cmp(&confidence[b])).then(a.cmp(&b))
    };
    if order.len() > MAX_ITEMS {
        order.select_nth_unstable_by(MAX_ITEMS, compare);
        order.truncate(MAX_ITEMS);
    }
    order.sort_unstable_by(compare);
    let name = |class: usize| labelling.classes.names()[class].clone();
    order
        .into_iter()
        .map(|row| {
            let p = pseudo.probabilities(row);
            let label = pseudo.labels()[row].map(|class| class as usize);
            let others = (0..p.len()).filter(|&class| Some(class) != label && p[class] > 0.0);
            let second =
                others.max_by(|&a, &b| p[a].total_cmp(&p[b]).then(b.cmp(&a))).filter(|_| label.is_some());
            Item {
                row,
                id: ids.map(|ids| ids[row].clone()),
                label: label.map(name),
                probability: label.map_or(0.0, |class| p[class]),
                second: second.map(name),
                second_probability: second.map_or(0.0, |class| p[class]),
                confidence: pseudo.confidence()[row],
                status: pseudo.status()[row],
                views: (!agreed(row)).then(|| {
                    let said = opinions.iter().map(|(view, labels)| {
                        let label = labels[row].map_or("nothing".to_string(), |class| name(class as usize));
                        format!("{}: {label}", view.as_str())
                    });
                    said.collect::<Vec<_>>().join(", ")
                }),
                truth: truth.map(|truth| truth.names()[truth.ids()[row] as usize].clone()),
                thumbnail: None,
            }
        })
        .collect()
}

/// Components, reach and degrees of the graph.
fn graph_shape(round: &FinishedRound<'_>) -> GraphShape {
    let nodes = round.affinity.nodes();
    let mut parent: Vec<u32> = (0..nodes as u32).collect();
    let mut row = Vec::new();
    let mut degrees = Vec::with_capacity(nodes);
    let mut touching = 0;
    for node in 0..nodes {
        round.affinity.row(node, &mut row);
        degrees.push(row.len());
        for &(other, _) in &row {
            let (a, b) = (root(&mut parent, node as u32), root(&mut parent, other));
            // The lower root stays, so that the outcome does not depend on the order.
            parent[a.max(b) as usize] = a.min(b);
        }
        if round.node_labels[node].is_none() {
            touching +=
                usize::from(row.iter().any(|&(other, _)| round.node_labels[other as usize].is_some()));
        }
    }
    let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
    (0..nodes as u32).for_each(|node| *sizes.entry(root(&mut parent, node)).or_default() += 1);
    let edges = degrees.iter().sum::<usize>() / 2;
    degrees.sort_unstable();
    let targets = round.pseudo_labels.len();
    GraphShape {
        nodes,
        edges,
        components: sizes.len(),
        largest: sizes.values().copied().max().unwrap_or(0),
        reached_targets: targets - round.round.unreached,
        targets,
        touching,
        median_degree: degrees.get(nodes / 2).copied().unwrap_or(0),
        largest_degree: degrees.last().copied().unwrap_or(0),
        degrees: degree_bins(&degrees),
    }
}

fn root(parent: &mut [u32], mut node: u32) -> u32 {
    while parent[node as usize] != node {
        let above = parent[parent[node as usize] as usize];
        parent[node as usize] = above;
        node = above;
    }
    node
}

/// At most 30 bins, each wider than the one before by a fixed factor once that is more than a whole number.
fn degree_bins(sorted: &[usize]) -> Vec<(usize, usize, usize)> {
    let (Some(&first), Some(&last)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    let factor = ((last + 1) as f64 / (first + 1) as f64).powf(1.0 / 30.0).max(1.0);
    let mut bins = Vec::new();
    let (mut from, mut seen) = (first, 0);
    while from <= last {
        let to = (((from + 1) as f64 * factor).ceil() as usize).max(from + 2) - 2;
        let upto = sorted.partition_point(|&degree| degree <= to);
        bins.push((from, to, upto - seen));
        (from, seen) = (to + 1, upto);
    }
    bins
}

/// The labelled × unlabelled block of A, sorted by class on both sides.
fn affinity_picture(round: &FinishedRound<'_>, truth: Option<&[ClassId]>) -> AffinityPicture {
    let labels = round.node_labels;
    let targets = round.pseudo_labels.len();
    let predicted = round.pseudo_labels.labels();
    let first_anchor = round.first_target + targets;
    let class_of = |item: usize| match truth {
        Some(truth) => Some(truth[item]),
        None => predicted[item],
    };
    let mut columns: Vec<usize> = (0..targets).collect();
    columns.sort_by_key(|&item| class_of(item).unwrap_or(ClassId::MAX));
    let (width, source_height, anchor_height) = (
        PICTURE.0.min(targets),
        PICTURE.1.min(round.first_target),
        PICTURE.2.min(labels.len() - first_anchor),
    );
    let mut pixel_of = vec![0u32; targets];
    for (at, &item) in columns.iter().enumerate() {
        pixel_of[item] = (at * width / targets) as u32;
    }
    let mut sums = vec![0f64; width * (source_height + anchor_height)];
    let mut entries = Vec::new();
    let mut top = 0;
    for (nodes, height) in
        [(0..round.first_target, source_height), (first_anchor..labels.len(), anchor_height)]
    {
        let count = nodes.len();
        let mut rows: Vec<usize> = nodes.collect();
        rows.sort_by_key(|&node| labels[node]);
        for (at, &node) in rows.iter().enumerate() {
            let line = (top + at * height / count) * width;
            round.affinity.row(node, &mut entries);
            for &(other, weight) in &entries {
                let item = (other as usize).checked_sub(round.first_target).filter(|&item| item < targets);
                if let Some(item) = item {
                    sums[line + pixel_of[item] as usize] += f64::from(weight);
                }
            }
        }
        top += height;
    }
    // Anchors have so many more edges that sources would be invisible beside them.
    let (of_sources, of_anchors) = sums.split_at(width * source_height);
    let shades = [of_sources, of_anchors].into_iter().flat_map(|sums| {
        let most = sums.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        sums.iter().map(move |sum| (255.0 * (sum / most).sqrt()).round() as u8)
    });
    AffinityPicture {
        round: round.round.round,
        width,
        source_height,
        anchor_height,
        by_truth: truth.is_some(),
        pixels: shades.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let parameters = Parameters::new().neighbours(1).rounds(3).check().unwrap();
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

    #[test]
    fn samples_keep_every_class_and_their_proportions() {
        let class_of = |row: usize| Some(if row == 77 { 9 } else { ClassId::from(row.is_multiple_of(4)) });
        let rows = stratified(100_000, 1000, class_of);
        assert!(rows.len() <= 1000 && rows.len() > 990, "{}", rows.len());
        assert!(rows.contains(&77) && rows.is_sorted());
        let quarter = rows.iter().filter(|&&row| row.is_multiple_of(4)).count();
        assert!((240..260).contains(&quarter), "{quarter}");
        assert_eq!(stratified(5, 10, class_of), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn degree_bins_cover_every_degree_once() {
        let degrees: Vec<usize> = (20..5000).collect();
        let bins = degree_bins(&degrees);
        assert!(bins.len() <= 32, "{}", bins.len());
        assert_eq!(bins.iter().map(|bin| bin.2).sum::<usize>(), degrees.len());
        assert!(bins.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
        assert_eq!(degree_bins(&[3, 3, 3]), [(3, 3, 3)]);
    }
}
