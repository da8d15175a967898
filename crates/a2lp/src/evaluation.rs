//! Comparing labels with the truth about the target, if it is known.
//!
//! No function of the method accepts a [`TargetTruth`]. The [`Evaluator`] is an [`Observer`], which can give nothing back.

use crate::affinity::Affinity;
use crate::error::{Domain, Error};
use crate::features::ROWS_PER_TASK;
use crate::kernels::{Loops, vectorised};
use crate::labels::{ClassId, Classes, remove_rows};
use crate::observer::{Attempt, FinishedRound, Observer};
use crate::propagation::SoftLabels;
use crate::reach::Reach;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// The true classes of the target items. Classes the source does not have get numbers of their own.
#[derive(Clone, Debug)]
pub struct TargetTruth {
    names: Vec<String>,
    known: usize,
    ids: Vec<ClassId>,
}

impl TargetTruth {
    /// True labels by name, against the class list of a run.
    pub fn new<S: AsRef<str>>(classes: &Classes, labels: &[S]) -> Self {
        let mut names = classes.names().to_vec();
        let unknown: Vec<&str> =
            labels.iter().map(AsRef::as_ref).filter(|name| classes.find(name).is_none()).collect();
        let unknown = Classes::from_labels(&unknown);
        names.extend_from_slice(unknown.names());
        let id = |name: &str| {
            let own = || unknown.find(name).map(|id| id + classes.len() as ClassId);
            classes.find(name).or_else(own).expect("every name is in one of the two lists")
        };
        TargetTruth {
            known: classes.len(),
            ids: labels.iter().map(|name| id(name.as_ref())).collect(),
            names,
        }
    }

    /// The same against another class list.
    pub fn within(self, classes: &Classes) -> Self {
        let labels: Vec<&str> = self.ids.iter().map(|&id| self.names[id as usize].as_str()).collect();
        TargetTruth::new(classes, &labels)
    }

    /// The truth about all items but these, given in order.
    pub fn without_rows(mut self, rows: &[usize]) -> Self {
        remove_rows(&mut self.ids, rows);
        self
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// No items?
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The class of each item, as a position in [`TargetTruth::names`].
    pub fn ids(&self) -> &[ClassId] {
        &self.ids
    }

    /// The classes of the run, then those that only the truth has.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Classes of the truth that the class list of the run does not have.
    pub fn unknown_classes(&self) -> &[String] {
        &self.names[self.known..]
    }

    /// Counts how often `labels` are right; an item without a label is wrong (eq. 5).
    pub fn score(&self, labels: &[Option<ClassId>]) -> Result<Score, Error> {
        if labels.len() != self.ids.len() {
            return Err(Error::LabelCount {
                domain: Domain::Target,
                labels: self.ids.len(),
                rows: labels.len(),
            });
        }
        let mut classes: Vec<ClassScore> =
            self.names.iter().map(|name| ClassScore { class: name.clone(), items: 0, correct: 0 }).collect();
        for (&truth, label) in self.ids.iter().zip(labels) {
            classes[truth as usize].items += 1;
            classes[truth as usize].correct += usize::from(*label == Some(truth));
        }
        classes.retain(|class| class.items > 0);
        let correct: usize = classes.iter().map(|class| class.correct).sum();
        let recall: f64 = classes.iter().map(ClassScore::accuracy).sum();
        Ok(Score {
            accuracy: correct as f64 / labels.len().max(1) as f64,
            mean_class_accuracy: recall / classes.len().max(1) as f64,
            classes,
        })
    }
}

/// How well items of classes that the source lacks are told from the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnknownScore {
    /// Items whose true class the source lacks.
    pub items: usize,
    /// How often such an item has a smaller reach than an item of a known class; `None` without one of either.
    pub auroc: Option<f64>,
    /// Share of them below the threshold; `None` without any.
    pub recall: Option<f64>,
    /// Share of the items of known classes below the threshold; `None` without any.
    pub false_flags: Option<f64>,
    /// 2ab/(a + b), where a is the mean over the known classes of the share labelled correctly and not flagged, and b the recall.
    pub h_score: Option<f64>,
}

impl TargetTruth {
    /// Is the true class of this item one that the source lacks?
    pub fn is_unknown(&self, item: usize) -> bool {
        self.ids[item] as usize >= self.known
    }

    /// Compares reach, and the labels of items that it does not flag, with the truth. `None` if they are not of the same items.
    pub fn score_unknown(&self, reach: &Reach, labels: &[Option<ClassId>]) -> Option<UnknownScore> {
        let flagged = |item: usize| reach.is_unknown(item);
        (reach.values.len() == self.len()).then(|| self.score_flags(&reach.values, flagged, labels)).flatten()
    }

    /// The same for any score of which small values mean unknown, and any flags.
    pub fn score_flags(
        &self,
        values: &[f32],
        flagged: impl Fn(usize) -> bool,
        labels: &[Option<ClassId>],
    ) -> Option<UnknownScore> {
        let (unknown, known): (Vec<usize>, Vec<usize>) =
            (0..self.len()).partition(|&item| self.is_unknown(item));
        let share = |items: &[usize]| {
            let count = items.iter().filter(|&&item| flagged(item)).count();
            (!items.is_empty()).then(|| count as f64 / items.len() as f64)
        };
        let (recall, false_flags) = (share(&unknown), share(&known));
        let kept: Vec<Option<ClassId>> =
            labels.iter().enumerate().map(|(item, &label)| label.filter(|_| !flagged(item))).collect();
        let names = &self.names[..self.known];
        let score = self.score(&kept).ok()?;
        let of_known: Vec<f64> = score
            .classes
            .iter()
            .filter(|class| names.contains(&class.class))
            .map(ClassScore::accuracy)
            .collect();
        let accuracy = of_known.iter().sum::<f64>() / of_known.len().max(1) as f64;
        let h_score = recall.filter(|_| !of_known.is_empty()).map(|recall| match accuracy + recall {
            sum if sum > 0.0 => 2.0 * accuracy * recall / sum,
            _ => 0.0,
        });
        let auroc = auroc(values, &unknown, &known);
        Some(UnknownScore { items: unknown.len(), auroc, recall, false_flags, h_score })
    }
}

/// How often one of `low` has a smaller value than one of `high`; ties count half. `None` if either is empty.
fn auroc(values: &[f32], low: &[usize], high: &[usize]) -> Option<f64> {
    let mut sorted: Vec<f32> = high.iter().map(|&item| values[item]).collect();
    sorted.sort_by(f32::total_cmp);
    let wins = |&item: &usize| {
        let at_most = sorted.partition_point(|&value| value <= values[item]);
        let below = sorted.partition_point(|&value| value < values[item]);
        sorted.len() as f64 - 0.5 * (at_most + below) as f64
    };
    let pairs = (low.len() * high.len()) as f64;
    (pairs > 0.0).then(|| low.iter().map(wins).sum::<f64>() / pairs)
}

/// How often labels were right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Share of items labelled correctly.
    pub accuracy: f64,
    /// Mean over the classes present in the truth of the share of their items labelled correctly.
    pub mean_class_accuracy: f64,
    /// Each class present in the truth.
    pub classes: Vec<ClassScore>,
}

/// How often one class was labelled right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassScore {
    /// Its name.
    pub class: String,
    /// Target items that truly belong to it.
    pub items: usize,
    /// Those among them that were labelled so.
    pub correct: usize,
}

impl ClassScore {
    /// Share of the class's items labelled correctly.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.items.max(1) as f64
    }
}

/// One round against the truth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoundScore {
    /// From 1.
    pub round: usize,
    /// Share of items labelled correctly.
    pub accuracy: f64,
    /// Mean of the classes' shares.
    pub mean_class_accuracy: f64,
    /// PoW: share of the graph's weight between labelled and unlabelled nodes of the same class.
    pub pow: f64,
    /// Part of the regulariser (eq. 4) from pairs of the same class.
    pub same_class_regulariser: f64,
    /// Part of the regulariser from pairs of different classes.
    pub other_class_regulariser: f64,
}

/// Scores every round against the truth.
pub struct Evaluator {
    truth: TargetTruth,
    seen: Mutex<ScoredRounds>,
}

#[derive(Default)]
struct ScoredRounds {
    rounds: BTreeMap<Attempt, Vec<RoundScore>>,
    kept: Attempt,
}

impl Evaluator {
    /// An evaluator with this truth.
    pub fn new(truth: TargetTruth) -> Self {
        Evaluator { truth, seen: Mutex::default() }
    }

    /// The truth.
    pub fn truth(&self) -> &TargetTruth {
        &self.truth
    }

    /// The rounds of the labelling that the run kept, as far as they are finished.
    pub fn rounds(&self) -> Vec<RoundScore> {
        let seen = self.seen();
        seen.rounds.get(&seen.kept).cloned().unwrap_or_default()
    }

    fn seen(&self) -> MutexGuard<'_, ScoredRounds> {
        self.seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Observer for Evaluator {
    fn round(&self, finished: &FinishedRound<'_>) {
        let Ok(score) = self.truth.score(finished.pseudo_labels.labels()) else {
            return;
        };
        let class_of = |node: usize| match finished.node_labels[node] {
            Some(class) => class,
            None => self.truth.ids[node - finished.first_target],
        };
        let parts =
            GraphParts::measure(finished.affinity, finished.soft_labels, finished.node_labels, &class_of);
        self.seen().rounds.entry(finished.attempt).or_default().push(RoundScore {
            round: finished.round.round,
            accuracy: score.accuracy,
            mean_class_accuracy: score.mean_class_accuracy,
            pow: if parts.all > 0.0 { parts.labelled_unlabelled / parts.all } else { 0.0 },
            same_class_regulariser: parts.same_class,
            other_class_regulariser: parts.other_class,
        });
    }

    fn chosen(&self, attempt: Attempt) {
        self.seen().kept = attempt;
    }
}

/// Sums over the entries of A.
#[derive(Clone, Copy, Default)]
struct GraphParts {
    /// W_all
    all: f64,
    /// W_lu: one end labelled, one not, same class.
    labelled_unlabelled: f64,
    same_class: f64,
    other_class: f64,
}

impl GraphParts {
    /// One pass over the entries for up to sixteen classes.
    fn measure(
        affinity: &Affinity<'_>,
        soft: &SoftLabels,
        labels: &[Option<ClassId>],
        class_of: &(dyn Fn(usize) -> ClassId + Sync),
    ) -> Self {
        let graph = LabelledGraph { affinity, soft, labels, class_of };
        let mut sum = GraphParts::default();
        for first in (0..soft.classes()).step_by(16) {
            let parts = match soft.classes() - first {
                ..=4 => graph.parts::<4>(first),
                5..=8 => graph.parts::<8>(first),
                9..=12 => graph.parts::<12>(first),
                _ => graph.parts::<16>(first),
            };
            // Weights are the same in every pass.
            (sum.all, sum.labelled_unlabelled) = (parts.all, parts.labelled_unlabelled);
            sum.same_class += parts.same_class;
            sum.other_class += parts.other_class;
        }
        sum
    }

    fn add(self, other: Self) -> Self {
        GraphParts {
            all: self.all + other.all,
            labelled_unlabelled: self.labelled_unlabelled + other.labelled_unlabelled,
            same_class: self.same_class + other.same_class,
            other_class: self.other_class + other.other_class,
        }
    }
}

/// A graph whose nodes all have a class, known or true.
struct LabelledGraph<'a> {
    affinity: &'a Affinity<'a>,
    soft: &'a SoftLabels,
    labels: &'a [Option<ClassId>],
    class_of: &'a (dyn Fn(usize) -> ClassId + Sync),
}

/// What is looked up for every neighbour, side by side.
#[derive(Clone, Copy)]
struct Looked<const W: usize> {
    /// Some of its scores, divided by the root of its row sum; 0 for isolated nodes, which have no entries.
    scores: [f32; W],
    /// The root of its row sum.
    root: f32,
    class: ClassId,
    is_labelled: bool,
}

impl LabelledGraph<'_> {
    /// The sums, where scores are those of up to `W` classes from `first` on.
    fn parts<const W: usize>(&self, first: usize) -> GraphParts {
        let (nodes, numbering) = (self.affinity.nodes(), self.affinity.numbering());
        let looked = |position: usize| {
            let node = numbering.node_at(position);
            let root = self.affinity.degree(node).sqrt();
            let scale = if root > 0.0 { root.recip() } else { 0.0 };
            let row = &self.soft.row(node)[first..];
            let scores =
                std::array::from_fn(|c| row.get(c).map_or(0.0, |&score| (f64::from(score) * scale) as f32));
            Looked {
                scores,
                root: root as f32,
                class: (self.class_of)(node),
                is_labelled: self.labels[node].is_some(),
            }
        };
        let looked: Vec<Looked<W>> =
            (0..nodes).into_par_iter().with_min_len(ROWS_PER_TASK).map(looked).collect();
        let tasks: Vec<GraphParts> = (0..nodes.div_ceil(ROWS_PER_TASK))
            .into_par_iter()
            .map_init(Vec::new, |row, task| {
                let start = task * ROWS_PER_TASK;
                let rows = start..nodes.min(start + ROWS_PER_TASK);
                rows.fold(GraphParts::default(), |sum, at| {
                    let entries = self.affinity.normalised_row(at, row);
                    sum.add(vectorised(RowParts { own: &looked[at], entries, looked: &looked }))
                })
            })
            .collect();
        tasks.into_iter().fold(GraphParts::default(), GraphParts::add)
    }
}

/// The sums over the entries of a row.
struct RowParts<'a, const W: usize> {
    own: &'a Looked<W>,
    entries: &'a [(u32, f32)],
    looked: &'a [Looked<W>],
}

impl<const W: usize> Loops for RowParts<'_, W> {
    type Output = GraphParts;

    #[inline(always)]
    fn run(self) -> GraphParts {
        let (own, mut parts) = (self.own, GraphParts::default());
        for &(other, s) in self.entries {
            let other = &self.looked[other as usize];
            let weight = f64::from(s * own.root * other.root);
            let is_same = own.class == other.class;
            parts.all += weight;
            if is_same && own.is_labelled != other.is_labelled {
                parts.labelled_unlabelled += weight;
            }
            // Four sums, so that one addition need not wait for the other.
            let mut squares = [0f32; 4];
            for c in 0..W {
                squares[c % 4] += (own.scores[c] - other.scores[c]).powi(2);
            }
            let part = weight * f64::from((squares[0] + squares[1]) + (squares[2] + squares[3]));
            parts.same_class += if is_same { part } else { 0.0 };
            parts.other_class += if is_same { 0.0 } else { part };
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Domains, FeatureMatrix, GraphMethod, Labels, Method, Parameters, Run};
    use rand::{RngExt, SeedableRng};

    /// The sums by their definition: a double loop over the rows of A, in nodes' own order.
    struct ByDefinition<'a>(&'a TargetTruth, Mutex<Vec<[f64; 3]>>);

    impl Observer for ByDefinition<'_> {
        fn round(&self, finished: &FinishedRound<'_>) {
            let class_of = |node: usize| {
                finished.node_labels[node].unwrap_or_else(|| self.0.ids()[node - finished.first_target])
            };
            let (mut row, mut all, mut between, mut sums) = (Vec::new(), 0.0, 0.0, [0.0; 2]);
            for i in 0..finished.affinity.nodes() {
                finished.affinity.row(i, &mut row);
                for &(j, weight) in &row {
                    let (j, weight) = (j as usize, f64::from(weight));
                    let is_same = class_of(i) == class_of(j);
                    let labelled = |node: usize| finished.node_labels[node].is_some();
                    all += weight;
                    between += if is_same && labelled(i) != labelled(j) { weight } else { 0.0 };
                    let root = |node: usize| finished.affinity.degree(node).sqrt();
                    let pairs = finished.soft_labels.row(i).iter().zip(finished.soft_labels.row(j));
                    let squares =
                        pairs.map(|(&a, &b)| (f64::from(a) / root(i) - f64::from(b) / root(j)).powi(2));
                    sums[usize::from(!is_same)] += weight * squares.sum::<f64>();
                }
            }
            self.1.lock().unwrap().push([between / all, sums[0], sums[1]]);
        }
    }

    #[test]
    fn the_sums_over_the_graph_follow_their_definition() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(2);
        let mut rows = FeatureMatrix::default();
        for row in 0..900 {
            let value =
                |column: usize| rng.random_range(0.0f32..1.0) + f32::from(u8::from(column == row % 3));
            rows.append_row(&(0..6).map(value).collect::<Vec<_>>());
        }
        let names: Vec<String> = (0..900).map(|row| (row % 3).to_string()).collect();
        let labels = Labels::new(&names[..300]);
        let truth = TargetTruth::new(labels.classes(), &names[300..]);
        for method in [GraphMethod::Exact, GraphMethod::Pruned] {
            let domains = Domains::stacked(rows.clone(), 300, labels.clone()).unwrap();
            let parameters =
                Parameters::new().method(Method::A2lp).graph_method(method).neighbours(8).rounds(3);
            let evaluator = Evaluator::new(truth.clone());
            let definition = ByDefinition(&truth, Mutex::default());
            let parameters = parameters.check().unwrap();
            let observer = (&evaluator, &definition);
            assert!(Run::new(domains, &parameters).observe(&observer).label().is_ok());
            let expected = definition.1.into_inner().unwrap();
            assert_eq!(expected.len(), 3);
            for (round, expected) in evaluator.rounds().iter().zip(expected) {
                let found = [round.pow, round.same_class_regulariser, round.other_class_regulariser];
                for (found, expected) in found.iter().zip(expected) {
                    assert!((found - expected).abs() <= 1e-5 * expected.abs(), "{found} {expected}");
                }
            }
        }
    }

    #[test]
    fn absent_classes_do_not_count_and_missing_labels_are_wrong() {
        let classes = Classes::new(vec!["a".into(), "b".into(), "c".into()]).unwrap();
        let truth = TargetTruth::new(&classes, &["a", "a", "b", "z"]);
        assert_eq!(truth.unknown_classes(), ["z"]);
        let score = truth.score(&[Some(0), None, Some(1), Some(2)]).unwrap();
        assert_eq!(score.accuracy, 0.5);
        assert!((score.mean_class_accuracy - (0.5 + 1.0 + 0.0) / 3.0).abs() < 1e-12);
        assert_eq!(score.classes.len(), 3);
    }
}
