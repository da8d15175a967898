//! Pseudo-labels for a round of training: by the graph, or by the learner's own means.

use super::judge::Untrained;
use super::settings::{Labeller, TrainSettings};
use crate::error::TrainError;
use a2lp::{
    CheckedParameters, Classes, Domains, FeatureMatrix, Labels, Method, Observer, Parameters, PseudoLabels,
    Run, SourceNodes, Unknown,
};

use burn::tensor::{Device, Tensor, TensorData};

/// Features of all items of a domain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) columns: usize,
    pub(crate) values: Vec<f32>,
}

impl Matrix {
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.columns.max(1))
    }

    /// Some rows as a tensor.
    pub(crate) fn some(&self, rows: &[usize], device: &Device) -> Tensor<2> {
        let values: Vec<f32> = rows
            .iter()
            .flat_map(|&row| &self.values[row * self.columns..][..self.columns])
            .copied()
            .collect();
        Tensor::from_data(TensorData::new(values, [rows.len(), self.columns]), device)
    }

    fn features(&self) -> Result<FeatureMatrix, a2lp::Error> {
        FeatureMatrix::new(self.values.len() / self.columns.max(1), self.columns, self.values.clone())
    }
}

/// Labels of the target items to learn from, and how far to trust each.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingLabels {
    /// `None`: no label reaches it.
    pub labels: Vec<Option<u32>>,
    /// From 0 to 1.
    pub weights: Vec<f32>,
}

impl TrainingLabels {
    /// Items whose label differs from an earlier one.
    pub(crate) fn changed(&self, before: &TrainingLabels) -> usize {
        self.labels.iter().zip(&before.labels).filter(|(now, before)| now != before).count()
    }
}

/// The features and predictions of both domains at the start of a round: what pseudo-labels are made from.
pub(crate) struct RoundView<'a> {
    pub(crate) source: &'a Matrix,
    pub(crate) labels: &'a [u32],
    pub(crate) target: &'a Matrix,
    /// What the classifier says of the target.
    pub(crate) probabilities: &'a [f32],
    pub(crate) classes: usize,
}

/// Features of both domains for the method.
pub(super) fn domains(
    source: &Matrix,
    labels: &[u32],
    target: &Matrix,
    classes: usize,
) -> Result<Domains, a2lp::Error> {
    let names = (0..classes).map(|class| class.to_string()).collect();
    let labels = Labels::from_ids(Classes::new(names)?, labels.to_vec())?;
    Domains::new(source.features()?, labels, target.features()?)
}

impl From<PseudoLabels> for TrainingLabels {
    fn from(found: PseudoLabels) -> Self {
        TrainingLabels { labels: found.labels().to_vec(), weights: found.confidence().to_vec() }
    }
}

impl RoundView<'_> {
    /// The labels of a round, or those without training if they look better; `None` where the learner makes them batch by batch, or needs none.
    pub(super) fn labels(
        &self,
        settings: &TrainSettings,
        untrained: Option<&Untrained>,
        observer: &dyn Observer,
    ) -> Result<Option<TrainingLabels>, TrainError> {
        let recipe = settings.learner.recipe();
        match settings.labeller {
            _ if !recipe.uses_pseudo_labels() => Ok(None),
            Labeller::Own => Ok(recipe.own_labels(self)),
            _ => {
                let found = self.by_graph(settings, observer)?;
                let Some(untrained) = untrained.filter(|_| settings.labeller.may_fall_back()) else {
                    return Ok(Some(found.into()));
                };
                let verdict = untrained.judge(&found, self, observer)?;
                let better = if verdict.prefers_untrained() { untrained.labels() } else { &found };
                Ok(Some(better.clone().into()))
            }
        }
    }

    /// What the graph over the features says.
    pub(super) fn by_graph(
        &self,
        settings: &TrainSettings,
        observer: &dyn Observer,
    ) -> Result<PseudoLabels, TrainError> {
        let parameters = graph_parameters(settings)?;
        let domains = domains(self.source, self.labels, self.target, self.classes)?;
        Ok(Run::new(domains, &parameters).observe(observer).label()?.pseudo_labels)
    }

    /// The classifier's own, as sure as its probabilities are far from even.
    pub(crate) fn of_classifier(&self) -> PseudoLabels {
        PseudoLabels::from_probabilities(self.classes, self.probabilities.to_vec())
    }

    /// CAN's spherical k-means, from the source's centres: cosine distances, centres that are sums of raw features.
    pub(crate) fn clusters(&self) -> TrainingLabels {
        let start = sums(
            self.source.rows().zip(self.labels.iter().map(|&c| Some((c, 1.0)))),
            self.classes,
            self.source.columns,
        );
        let mut centres = start.clone();
        let mut nearest: Vec<(u32, f32)> = Vec::new();
        for _ in 0..MAX_CLUSTERINGS {
            nearest = self.target.rows().map(|row| nearest_centre(row, &centres)).collect();
            let mut moved = sums(
                self.target.rows().zip(nearest.iter().map(|&(c, _)| Some((c, 1.0)))),
                self.classes,
                self.target.columns,
            );
            for (centre, start) in moved.iter_mut().zip(&start) {
                if centre.iter().all(|&v| v == 0.0) {
                    centre.clone_from(start);
                }
            }
            let shift = mean_distance(&moved, &centres);
            centres = moved;
            if shift < 0.005 {
                break;
            }
        }
        // A cluster is called after the source's centre it belongs to best.
        let costs: Vec<Vec<f64>> =
            centres.iter().map(|c| start.iter().map(|s| distance(c, s)).collect()).collect();
        let names = cheapest_matching(&costs);
        TrainingLabels {
            labels: nearest.iter().map(|&(cluster, _)| Some(names[cluster as usize] as u32)).collect(),
            weights: nearest.iter().map(|&(_, distance)| 1.0 - distance).collect(),
        }
    }

    /// Weighted means of the target's classes and means of the source's, for CAN's test whether to stop.
    pub(crate) fn centres(&self, labels: &TrainingLabels) -> [Vec<Vec<f64>>; 2] {
        let weighted = labels.labels.iter().zip(&labels.weights);
        let target = weighted.map(|(label, &weight)| label.map(|class| (class, f64::from(weight))));
        let source = self.labels.iter().map(|&class| Some((class, 1.0)));
        [
            sums(self.source.rows().zip(source), self.classes, self.source.columns),
            sums(self.target.rows().zip(target), self.classes, self.target.columns),
        ]
    }
}

/// The parameters of the graph that makes pseudo-labels.
pub(crate) fn graph_parameters(settings: &TrainSettings) -> Result<CheckedParameters, a2lp::Error> {
    let method = match settings.labeller {
        Labeller::Auto => Method::Auto,
        Labeller::Own | Labeller::A2lp => Method::A2lp,
        Labeller::Lp => Method::Lp,
        Labeller::Consensus => Method::Consensus,
    };
    let nodes = if settings.centres { SourceNodes::Centres } else { SourceNodes::All };
    Parameters::new()
        .neighbours(settings.neighbours)
        .alpha(settings.alpha)
        .method(method)
        .unknown(Unknown::Off)
        .rounds(settings.labelling_rounds)
        .source_nodes(nodes)
        .seed(settings.seed)
        .check()
}

const MAX_CLUSTERINGS: usize = 100;

/// The sum of the rows of every class, weighted; under the cosine as good as the mean.
fn sums<'a>(
    rows: impl Iterator<Item = (&'a [f32], Option<(u32, f64)>)>,
    classes: usize,
    columns: usize,
) -> Vec<Vec<f64>> {
    let mut sums = vec![vec![0f64; columns]; classes];
    for (row, class) in rows {
        if let Some((class, weight)) = class {
            sums[class as usize].iter_mut().zip(row).for_each(|(sum, &v)| *sum += weight * f64::from(v));
        }
    }
    sums
}

fn nearest_centre(row: &[f32], centres: &[Vec<f64>]) -> (u32, f32) {
    let row: Vec<f64> = row.iter().map(|&v| f64::from(v)).collect();
    let mut best = (0, f64::INFINITY);
    for (class, centre) in centres.iter().enumerate() {
        let distance = distance(&row, centre);
        if distance < best.1 {
            best = (class as u32, distance);
        }
    }
    (best.0, best.1 as f32)
}

/// ½·(1 − cos); ½ where one of the two has no direction.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths > 0.0 { 0.5 * (1.0 - dot(a, b) / lengths) } else { 0.5 }
}

pub(crate) fn mean_distance(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    a.iter().zip(b).map(|(a, b)| distance(a, b)).sum::<f64>() / a.len().max(1) as f64
}

/// Which column each row gets so that the sum is smallest: the Hungarian method with potentials.
fn cheapest_matching(costs: &[Vec<f64>]) -> Vec<usize> {
    let n = costs.len();
    // Rows and columns count from 1; column 0 holds the row that is being placed.
    let (mut u, mut v) = (vec![0f64; n + 1], vec![0f64; n + 1]);
    let (mut row_of, mut way) = (vec![0usize; n + 1], vec![0usize; n + 1]);
    for row in 1..=n {
        row_of[0] = row;
        let mut column = 0;
        let (mut least, mut used) = (vec![f64::INFINITY; n + 1], vec![false; n + 1]);
        while row_of[column] != 0 {
            used[column] = true;
            let from = row_of[column];
            let (mut step, mut next) = (f64::INFINITY, 0);
            for at in (1..=n).filter(|&at| !used[at]) {
                let cost = costs[from - 1][at - 1] - u[from] - v[at];
                if cost < least[at] {
                    (least[at], way[at]) = (cost, column);
                }
                if least[at] < step {
                    (step, next) = (least[at], at);
                }
            }
            for at in 0..=n {
                if used[at] {
                    u[row_of[at]] += step;
                    v[at] -= step;
                } else {
                    least[at] -= step;
                }
            }
            column = next;
        }
        while column != 0 {
            row_of[column] = row_of[way[column]];
            column = way[column];
        }
    }
    let mut column_of = vec![0; n];
    (1..=n).for_each(|column| column_of[row_of[column] - 1] = column - 1);
    column_of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_matching_is_that_of_trying_all() {
        fn all(costs: &[Vec<f64>], row: usize, free: &mut Vec<usize>) -> f64 {
            if row == costs.len() {
                return 0.0;
            }
            let mut best = f64::INFINITY;
            for at in 0..free.len() {
                let column = free.remove(at);
                best = best.min(costs[row][column] + all(costs, row + 1, free));
                free.insert(at, column);
            }
            best
        }
        for seed in 0..40usize {
            let n = 1 + seed % 6;
            let cost = |r: usize, c: usize| ((seed * 31 + r * 17 + c * 71 + r * c * 13) * 7919 % 97) as f64;
            let costs: Vec<Vec<f64>> = (0..n).map(|r| (0..n).map(|c| cost(r, c)).collect()).collect();
            let matching = cheapest_matching(&costs);
            let mut sorted = matching.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..n).collect::<Vec<_>>());
            let sum: f64 = matching.iter().enumerate().map(|(row, &column)| costs[row][column]).sum();
            assert_eq!(sum, all(&costs, 0, &mut (0..n).collect()), "{costs:?}");
        }
    }

    #[test]
    fn clusters_start_from_the_source_and_follow_the_target() {
        let matrix = |values: &[f32]| Matrix { columns: 2, values: values.to_vec() };
        let source = matrix(&[1.0, 0.0, 0.0, 2.0]);
        let target = matrix(&[1.0, 0.6, 2.0, 1.1, 0.1, 1.0, 0.9, 1.0]);
        let seen =
            RoundView { source: &source, labels: &[0, 1], target: &target, probabilities: &[], classes: 3 };
        let found = seen.clusters();
        assert_eq!(found.labels[..3], [Some(0), Some(0), Some(1)]);
        assert!(found.weights.iter().all(|w| (0.5..=1.0).contains(w)), "{:?}", found.weights);
    }
}
