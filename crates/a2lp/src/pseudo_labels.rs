//! From scores to answers: label, probabilities, confidence, margin and status of every target item.

use crate::features::ROWS_PER_TASK;
use crate::labels::ClassId;
use crate::propagation::{SoftLabels, widened};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// What can be said of a target item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Status {
    /// It has a label.
    Labelled,
    /// It has a label, but its confidence is below the minimum asked for.
    LowConfidence,
    /// A path leads to a label, but so faintly that the scores are within the solver's error.
    Weak,
    /// No path leads to any label.
    Unreached,
    /// It matches nothing in the source, so its label was taken away.
    Unknown,
}

impl Status {
    /// All of them.
    const ALL: [Status; 5] =
        [Status::Labelled, Status::LowConfidence, Status::Weak, Status::Unreached, Status::Unknown];

    /// The word used in files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Labelled => "labelled",
            Status::LowConfidence => "low-confidence",
            Status::Weak => "weak",
            Status::Unreached => "unreached",
            Status::Unknown => "unknown",
        }
    }
}

/// Labels of the target items and how far to trust them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PseudoLabels {
    classes: usize,
    labels: Vec<Option<ClassId>>,
    probabilities: Vec<f32>,
    confidence: Vec<f32>,
    margin: Vec<f32>,
    status: Vec<Status>,
}

/// Scores of an item that sum to no more than this say nothing.
const LEAST_SUM: f64 = 1e-12;

/// What is known of one item, to be changed.
struct ItemMut<'a> {
    /// Its probabilities.
    row: &'a mut [f32],
    label: &'a mut Option<ClassId>,
    status: &'a mut Status,
    confidence: &'a mut f32,
    margin: &'a mut f32,
}

impl ItemMut<'_> {
    /// Label, confidence and margin from the probabilities and the status.
    fn conclude(&mut self, candidates: &[bool], k: usize) {
        let trusted = *self.status == Status::Labelled;
        *self.confidence = if trusted { entropy_weight(self.row, k) } else { 0.0 };
        *self.margin = if trusted { margin(self.row) } else { 0.0 };
        let reached = *self.status != Status::Unreached;
        *self.label = best_class(self.row, candidates).filter(|_| reached);
    }
}

impl PseudoLabels {
    /// Reads the rows of F of these nodes. `candidates` are the classes with a labelled node: K of eq. 8.
    pub(crate) fn read(
        soft: &SoftLabels,
        nodes: impl IntoParallelIterator<Iter: IndexedParallelIterator<Item = usize>>,
        reached: &[bool],
        candidates: &[bool],
    ) -> Self {
        let nodes = nodes.into_par_iter();
        let (classes, items) = (candidates.len(), nodes.len());
        let k = candidates.iter().filter(|&&c| c).count();
        let mut read = PseudoLabels {
            classes,
            labels: vec![None; items],
            probabilities: vec![0.0; items * classes],
            confidence: vec![0.0; items],
            margin: vec![0.0; items],
            status: vec![Status::Unreached; items],
        };
        read.par_items().zip(nodes).for_each(|(item, node)| {
            let (row, reached) = (soft.row(node), reached[node]);
            let best = best_class(row, candidates);
            // Conjugate gradients may leave entries like -1e-9.
            let clipped = |c: usize| if candidates[c] { f64::from(row[c].max(0.0)) } else { 0.0 };
            let sum: f64 = (0..classes).map(clipped).sum();
            for (class, p) in item.row.iter_mut().enumerate() {
                *p = match () {
                    () if reached && sum > 0.0 => (clipped(class) / sum) as f32,
                    () if candidates[class] => 1.0 / k as f32,
                    () => 0.0,
                };
            }
            let largest = best.map_or(0.0, |c| row[c as usize]);
            *item.status = match () {
                () if !reached => Status::Unreached,
                () if sum <= 0.0 || largest <= soft.error() => Status::Weak,
                () => Status::Labelled,
            };
            let trusted = *item.status == Status::Labelled;
            *item.confidence = if trusted { entropy_weight(item.row, k) } else { 0.0 };
            *item.margin = if trusted { margin(item.row) } else { 0.0 };
            *item.label = if reached { best } else { None };
        });
        read
    }

    /// Labels of items whose class probabilities are known from elsewhere, for example from a classifier.
    pub fn from_probabilities(classes: usize, probabilities: Vec<f32>) -> Self {
        let rows = || probabilities.chunks_exact(classes.max(1));
        let every = vec![true; classes];
        PseudoLabels {
            classes,
            labels: rows().map(|p| best_class(p, &every)).collect(),
            confidence: rows().map(|p| entropy_weight(p, classes)).collect(),
            margin: rows().map(margin).collect(),
            status: rows().map(|_| Status::Labelled).collect(),
            probabilities,
        }
    }

    /// The vote of several views: the mean of their probabilities. An item takes its best status over the views.
    pub(crate) fn vote(views: &[PseudoLabels], candidates: &[bool]) -> Self {
        let (items, classes) = (views[0].len(), candidates.len());
        let k = candidates.iter().filter(|&&c| c).count();
        let mut vote = views[0].clone();
        vote.par_items().zip(0..items).for_each(|(mut item, at)| {
            for (class, p) in item.row.iter_mut().enumerate() {
                let of_class = |view: &PseudoLabels| f64::from(view.probabilities[at * classes + class]);
                *p = (views.iter().map(of_class).sum::<f64>() / views.len() as f64) as f32;
            }
            *item.status = match () {
                () if views.iter().any(|view| view.status[at] == Status::Labelled) => Status::Labelled,
                () if views.iter().any(|view| view.status[at] == Status::Weak) => Status::Weak,
                () => Status::Unreached,
            };
            item.conclude(candidates, k);
        });
        vote
    }

    /// Factors that correct for classes that came out larger or smaller than in the source: (πⱼ / mean_i pᵢⱼ)^τ. `shares` are the
    /// classes' shares of the source, π; `strength` is τ. Classes that only a person has named have no share to be corrected to.
    pub(crate) fn class_size_factors(&self, shares: &[f64], strength: f64, candidates: &[bool]) -> Vec<f64> {
        let classes = shares.len();
        let mut means = vec![0f64; classes];
        for row in self.probabilities.chunks_exact(classes.max(1)) {
            means.iter_mut().zip(row).for_each(|(mean, &p)| *mean += f64::from(p) / self.labels.len() as f64);
        }
        let factor = |class: usize| match () {
            () if shares[class] == 0.0 && candidates[class] => 1.0,
            () if means[class] > 0.0 => (shares[class] / means[class]).powf(strength),
            () => 0.0,
        };
        (0..classes).map(factor).collect()
    }

    /// pᵢⱼ ← pᵢⱼ·factorⱼ, rows scaled to sum 1 again.
    pub(crate) fn scale_classes(&mut self, factors: &[f64], candidates: &[bool]) {
        let k = candidates.iter().filter(|&&c| c).count();
        self.par_items().for_each(|mut item| {
            let sum: f64 = item.row.iter().zip(factors).map(|(&p, f)| f64::from(p) * f).sum();
            if sum > 0.0 {
                item.row.iter_mut().zip(factors).for_each(|(p, f)| *p = (f64::from(*p) * f / sum) as f32);
            }
            item.conclude(candidates, k);
        });
    }

    /// Puts a person's word about an item in place of the label: a class, or that no class fits.
    pub fn take_word(&mut self, item: usize, class: Option<ClassId>) {
        match class {
            Some(class) => self.clamp(item, class),
            None => {
                self.take_label(item);
            }
        }
    }

    /// Gives an item the class that a person has named.
    pub(crate) fn clamp(&mut self, item: usize, class: ClassId) {
        self.labels[item] = Some(class);
        let row = &mut self.probabilities[item * self.classes..][..self.classes];
        row.fill(0.0);
        row[class as usize] = 1.0;
        (self.confidence[item], self.margin[item], self.status[item]) = (1.0, 1.0, Status::Labelled);
    }

    /// conf(p)·p of every item, item after item.
    pub(crate) fn weighted_probabilities(&self, candidates: &[bool]) -> Vec<f32> {
        let k = candidates.iter().filter(|&&c| c).count();
        (0..self.len()).flat_map(|item| self.weighted(item, k)).collect()
    }

    /// p ← (1 − share)·p + share·q, where q are rows of `scores` scaled to sum 1; rows without a score stay.
    pub(crate) fn blend(&mut self, scores: &[f32], share: f64, candidates: &[bool]) {
        let k = candidates.iter().filter(|&&c| c).count();
        let rows = scores.par_chunks_exact(candidates.len().max(1));
        self.par_items().zip(rows).for_each(|(mut item, scores)| {
            let sum: f64 = scores.iter().map(|&score| f64::from(score.max(0.0))).sum();
            if sum > LEAST_SUM {
                for (p, &score) in item.row.iter_mut().zip(scores) {
                    let smoothed = f64::from(score.max(0.0)) / sum;
                    *p = ((1.0 - share) * f64::from(*p) + share * smoothed) as f32;
                }
            }
            item.conclude(candidates, k);
        });
    }

    /// Every item, to be changed on all threads.
    fn par_items(&mut self) -> impl IndexedParallelIterator<Item = ItemMut<'_>> {
        let rows = self.probabilities.par_chunks_exact_mut(self.classes.max(1));
        let labels = self.labels.par_iter_mut().zip(&mut self.status);
        let figures = self.confidence.par_iter_mut().zip(&mut self.margin);
        rows.zip(labels).zip(figures).with_min_len(ROWS_PER_TASK).map(
            |((row, (label, status)), (confidence, margin))| ItemMut {
                row,
                label,
                status,
                confidence,
                margin,
            },
        )
    }

    /// Share of the items that all views give the same label.
    pub(crate) fn agreement(views: &[PseudoLabels]) -> f64 {
        let items = views[0].len();
        let same = |item: &usize| views.iter().all(|view| view.labels[*item] == views[0].labels[*item]);
        (0..items).filter(same).count() as f64 / items.max(1) as f64
    }

    /// Puts the probabilities and labels of `others` in place of those from `first` on.
    pub(crate) fn replace(&mut self, first: usize, others: &PseudoLabels) {
        self.labels[first..][..others.len()].copy_from_slice(&others.labels);
        self.probabilities[first * self.classes..][..others.probabilities.len()]
            .copy_from_slice(&others.probabilities);
    }

    /// Marks labelled items below `least` as [`Status::LowConfidence`].
    pub(crate) fn mark_low_confidence(&mut self, least: f32) {
        (0..self.len()).for_each(|item| self.mark_low(item, least));
    }

    /// Takes the labels of these items away, and so their confidence; probabilities stay. Returns the labels they had, `None` for all
    /// other items.
    pub(crate) fn mark_unknown(&mut self, unknown: impl Fn(usize) -> bool) -> Vec<Option<ClassId>> {
        (0..self.len()).map(|item| unknown(item).then(|| self.take_label(item)).flatten()).collect()
    }

    /// Marks an item if it is labelled with less confidence than `least`.
    pub(crate) fn mark_low(&mut self, item: usize, least: f32) {
        if self.status[item] == Status::Labelled && self.confidence[item] < least {
            self.status[item] = Status::LowConfidence;
        }
    }

    /// Takes the label of an item away as unknown, and so its confidence; probabilities stay. Returns the label it had.
    pub(crate) fn take_label(&mut self, item: usize) -> Option<ClassId> {
        let taken = self.labels[item].take();
        if taken.is_some() {
            self.status[item] = Status::Unknown;
            (self.confidence[item], self.margin[item]) = (0.0, 0.0);
        }
        taken
    }

    /// conf(p)·p of one item.
    pub(crate) fn weighted(&self, item: usize, k: usize) -> impl Iterator<Item = f32> + '_ {
        let p = self.probabilities(item);
        let confidence = entropy_weight(p, k);
        p.iter().map(move |p| confidence * p)
    }

    /// These items alone.
    pub(crate) fn gathered(&self, items: &[usize]) -> Self {
        PseudoLabels {
            classes: self.classes,
            labels: items.iter().map(|&item| self.labels[item]).collect(),
            probabilities: items.iter().flat_map(|&item| self.probabilities(item)).copied().collect(),
            confidence: items.iter().map(|&item| self.confidence[item]).collect(),
            margin: items.iter().map(|&item| self.margin[item]).collect(),
            status: items.iter().map(|&item| self.status[item]).collect(),
        }
    }

    /// Puts what `part` says of these items in place.
    pub(crate) fn scatter(&mut self, items: &[usize], part: &PseudoLabels) {
        for (at, &item) in items.iter().enumerate() {
            self.labels[item] = part.labels[at];
            self.probabilities[item * self.classes..][..self.classes].copy_from_slice(part.probabilities(at));
            self.confidence[item] = part.confidence[at];
            self.margin[item] = part.margin[at];
            self.status[item] = part.status[at];
        }
    }

    /// Makes room for more classes, which no item has.
    pub(crate) fn widen(&mut self, classes: usize) {
        self.probabilities = widened(&self.probabilities, self.classes, classes);
        self.classes = classes;
    }

    /// Gives an item without a label one; status and confidence stay.
    pub(crate) fn fill(&mut self, item: usize, class: ClassId) {
        debug_assert!(self.labels[item].is_none());
        self.labels[item] = Some(class);
    }

    /// Puts other labels in place; status and confidence stay.
    pub(crate) fn assume(&mut self, labels: &[Option<ClassId>]) {
        self.labels.copy_from_slice(labels);
    }

    /// Label, confidence, margin, status and probabilities of every item, four bytes each.
    pub(crate) fn to_records(&self) -> Vec<u8> {
        let mut records = Vec::with_capacity(self.len() * (16 + 4 * self.classes));
        for item in 0..self.len() {
            records.extend(self.labels[item].unwrap_or(ClassId::MAX).to_le_bytes());
            records.extend(self.confidence[item].to_le_bytes());
            records.extend(self.margin[item].to_le_bytes());
            let status = Status::ALL.iter().position(|status| *status == self.status[item]);
            records.extend((status.unwrap_or(0) as u32).to_le_bytes());
            self.probabilities(item).iter().for_each(|p| records.extend(p.to_le_bytes()));
        }
        records
    }

    /// From such records.
    pub(crate) fn from_records(records: &[u8], classes: usize) -> Self {
        let mut labels = PseudoLabels { classes, ..PseudoLabels::default() };
        for record in records.chunks_exact(16 + 4 * classes) {
            let (words, _) = record.as_chunks::<4>();
            let label = ClassId::from_le_bytes(words[0]);
            labels.labels.push((label != ClassId::MAX).then_some(label));
            labels.confidence.push(f32::from_le_bytes(words[1]));
            labels.margin.push(f32::from_le_bytes(words[2]));
            let status = Status::ALL.get(u32::from_le_bytes(words[3]) as usize);
            labels.status.push(status.copied().unwrap_or(Status::Unreached));
            labels.probabilities.extend(words[4..].iter().map(|&word| f32::from_le_bytes(word)));
        }
        labels
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Number of target items.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// No items?
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Class of each item; `None` where no label reaches.
    pub fn labels(&self) -> &[Option<ClassId>] {
        &self.labels
    }

    /// Probability of each class for one item; they sum to 1.
    pub fn probabilities(&self, item: usize) -> &[f32] {
        &self.probabilities[item * self.classes..][..self.classes]
    }

    /// The entropy weight w of eq. 8, between 0 and 1. Not a calibrated probability.
    pub fn confidence(&self) -> &[f32] {
        &self.confidence
    }

    /// Mean of the confidences.
    pub fn mean_confidence(&self) -> f64 {
        self.confidence.iter().map(|&w| f64::from(w)).sum::<f64>() / self.len() as f64
    }

    /// First minus second probability.
    pub fn margin(&self) -> &[f32] {
        &self.margin
    }

    /// What can be said of each item.
    pub fn status(&self) -> &[Status] {
        &self.status
    }

    /// Items with this status.
    pub fn count(&self, status: Status) -> usize {
        self.status.iter().filter(|&&s| s == status).count()
    }

    /// Items per predicted class.
    pub fn class_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes];
        for label in self.labels.iter().flatten() {
            counts[*label as usize] += 1;
        }
        counts
    }

    /// Items whose label differs from `other`'s.
    pub fn changed_from(&self, other: &[Option<ClassId>]) -> usize {
        self.labels.iter().zip(other).filter(|(a, b)| a != b).count()
    }
}

/// argmax_j F_ij, ties to the lower class; `None` when no class stands out at all.
fn best_class(row: &[f32], candidates: &[bool]) -> Option<ClassId> {
    let mut best: Option<usize> = None;
    let mut all_zero = true;
    for c in (0..row.len()).filter(|&c| candidates[c]) {
        all_zero &= row[c] == 0.0;
        if best.is_none_or(|b| row[c] > row[b]) {
            best = Some(c);
        }
    }
    best.filter(|_| !all_zero).map(|c| c as ClassId)
}

/// w = 1 − H(p)/ln K (eq. 8), with 0·ln 0 = 0; with a single class there is nothing to doubt.
pub(crate) fn entropy_weight(p: &[f32], k: usize) -> f32 {
    if k < 2 {
        return 1.0;
    }
    let entropy: f64 = p.iter().filter(|&&p| p > 0.0).map(|&p| -f64::from(p) * f64::from(p).ln()).sum();
    (1.0 - entropy / (k as f64).ln()).clamp(0.0, 1.0) as f32
}

fn margin(p: &[f32]) -> f32 {
    let (mut first, mut second) = (0f32, 0f32);
    for &p in p {
        if p > first {
            (first, second) = (p, first);
        } else if p > second {
            second = p;
        }
    }
    first - second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_weight_runs_from_uniform_to_certain() {
        assert_eq!(entropy_weight(&[0.25; 4], 4), 0.0);
        assert_eq!(entropy_weight(&[0.0, 1.0, 0.0], 3), 1.0);
        // H(0.9, 0.1) / ln 2 = 0.468996
        assert!((entropy_weight(&[0.9, 0.1], 2) - 0.531004).abs() < 1e-6);
        assert_eq!(entropy_weight(&[1.0], 1), 1.0);
    }

    #[test]
    fn an_empty_row_has_no_class_rather_than_class_zero() {
        assert_eq!(best_class(&[0.0, 0.0], &[true, true]), None);
        assert_eq!(best_class(&[0.2, 0.2], &[true, true]), Some(0));
        assert_eq!(best_class(&[0.9, 0.2], &[false, true]), Some(1));
        assert_eq!(best_class(&[-0.9, -0.2], &[true, true]), Some(1));
    }

    #[test]
    fn margin_is_first_minus_second() {
        assert!((margin(&[0.1, 0.6, 0.3]) - 0.3).abs() < 1e-7);
        assert_eq!(margin(&[1.0]), 1.0);
    }

    #[test]
    fn classes_that_came_out_too_large_are_made_smaller() {
        // Means are 0.6 and 0.4, shares 0.3 and 0.7: factors √½ and √1.75.
        let mut pseudo = PseudoLabels::from_probabilities(2, vec![0.9, 0.1, 0.3, 0.7]);
        let every = [true, true];
        pseudo.scale_classes(&pseudo.class_size_factors(&[0.3, 0.7], 0.5, &every), &every);
        let (a, b) = (0.9 * 0.5f64.sqrt(), 0.1 * 1.75f64.sqrt());
        assert!((f64::from(pseudo.probabilities(0)[0]) - a / (a + b)).abs() < 1e-6);
        assert_eq!(pseudo.labels(), [Some(0), Some(1)]);
        assert!((pseudo.margin()[0] - ((a - b) / (a + b)) as f32).abs() < 1e-6);
    }

    #[test]
    fn a_vote_is_the_mean_and_an_item_is_as_well_off_as_in_its_best_view() {
        let views = [[0.9, 0.1, 0.5, 0.5, 0.5, 0.5], [0.2, 0.8, 0.4, 0.6, 0.5, 0.5]];
        let mut views = views.map(|p| PseudoLabels::from_probabilities(2, p.to_vec()));
        views[0].status[1] = Status::Unreached;
        views.iter_mut().for_each(|view| view.status[2] = Status::Unreached);
        let vote = PseudoLabels::vote(&views, &[true, true]);
        assert!((vote.probabilities(0)[0] - 0.55).abs() < 1e-6);
        assert_eq!(vote.labels(), [Some(0), Some(1), None]);
        assert_eq!(vote.status(), [Status::Labelled, Status::Labelled, Status::Unreached]);
        assert_eq!(vote.confidence()[2], 0.0);
    }
}
