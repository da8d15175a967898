//! A finished run as a model: it labels new points by their neighbours among its nodes.

use crate::error::{Domain, Error};
use crate::features::{FeatureMatrix, ROWS_PER_TASK};
use crate::labels::Labels;
use crate::neighbours::{BestOf, look_at_all};
use crate::parameters::CheckedParameters;
use crate::propagation::SoftLabels;
use crate::pseudo_labels::PseudoLabels;
use crate::similarity::Similarity;

/// The nodes of a finished run with their class probabilities; made by [`Run::fit`](crate::Run::fit).
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    base: FeatureMatrix,
    anchors: FeatureMatrix,
    first_target: usize,
    /// Rows sum to 1; the row of a node that no label reaches is 0.
    probabilities: Vec<f32>,
    /// Classes that have a labelled node.
    candidates: Vec<bool>,
}

/// What a [`Model`] consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelParts {
    /// Source nodes, then target nodes.
    pub base: FeatureMatrix,
    /// Anchors.
    pub anchors: FeatureMatrix,
    /// Where target nodes begin.
    pub first_target: usize,
    /// One row per node.
    pub probabilities: Vec<f32>,
    /// Classes that have a labelled node.
    pub candidates: Vec<bool>,
}

impl Model {
    pub(crate) fn new(
        base: FeatureMatrix,
        anchors: FeatureMatrix,
        first_target: usize,
        nodes: PseudoLabels,
        candidates: Vec<bool>,
    ) -> Self {
        let mut probabilities = Vec::with_capacity(nodes.len() * candidates.len());
        for node in 0..nodes.len() {
            let reached = nodes.labels()[node].is_some();
            probabilities.extend(nodes.probabilities(node).iter().map(|&p| if reached { p } else { 0.0 }));
        }
        Model { base, anchors, first_target, probabilities, candidates }
    }

    /// A model of labelled rows only: nothing to propagate to, so every node is sure of its label.
    pub fn of_labelled(
        mut features: FeatureMatrix,
        labels: &Labels,
        parameters: &CheckedParameters,
    ) -> Result<Self, Error> {
        if features.rows() == 0 || features.columns() == 0 {
            return Err(Error::Empty(Domain::Source));
        }
        if labels.len() != features.rows() {
            let (labels, rows) = (labels.len(), features.rows());
            return Err(Error::LabelCount { domain: Domain::Source, labels, rows });
        }
        if let Some((row, column, value)) = features.first_non_finite() {
            return Err(Error::NotFinite { domain: Domain::Source, row, column, value });
        }
        if parameters.similarity().scales_rows() {
            parameters.on_threads(|| features.normalise_rows())?;
        }
        let classes = labels.classes().len();
        let mut probabilities = vec![0.0; features.rows() * classes];
        for (row, &class) in labels.ids().iter().enumerate() {
            probabilities[row * classes + class as usize] = 1.0;
        }
        let candidates = labels.counts().iter().map(|&count| count > 0).collect();
        let first_target = features.rows();
        Ok(Model {
            base: features,
            anchors: FeatureMatrix::default(),
            first_target,
            probabilities,
            candidates,
        })
    }

    /// Puts a model together from what [`Model::parts`] gave.
    pub fn from_parts(parts: ModelParts) -> Result<Self, Error> {
        let ModelParts { base, anchors, first_target, probabilities, candidates } = parts;
        let nodes = base.rows() + anchors.rows();
        let fits = probabilities.len() == nodes * candidates.len()
            && (anchors.rows() == 0 || anchors.columns() == base.columns())
            && first_target <= base.rows();
        if !fits {
            return Err(Error::Graph("the parts of a model do not belong together".into()));
        }
        Ok(Model { base, anchors, first_target, probabilities, candidates })
    }

    /// Everything in it, to be stored.
    pub fn parts(&self) -> ModelParts {
        ModelParts {
            base: self.base.clone(),
            anchors: self.anchors.clone(),
            first_target: self.first_target,
            probabilities: self.probabilities.clone(),
            candidates: self.candidates.clone(),
        }
    }

    /// Rows of the nodes but anchors, of unit length under the cosine.
    pub fn base(&self) -> &FeatureMatrix {
        &self.base
    }

    /// Source nodes (or centres); the target nodes follow, then the anchors.
    pub fn first_target(&self) -> usize {
        self.first_target
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.candidates.len()
    }

    /// Columns of the features.
    pub fn columns(&self) -> usize {
        self.base.columns()
    }

    /// Probabilities of one node; all 0 where no label reaches.
    pub fn probabilities(&self, node: usize) -> &[f32] {
        &self.probabilities[node * self.classes()..][..self.classes()]
    }

    /// Labels points that were not there before: p(x) ∝ Σ ε(x, j)·p_j over the k nodes most similar to x, one step of the
    /// harmonic solution. A point similar to no node that a label reaches stays unreached.
    pub fn predict(
        &self,
        mut points: FeatureMatrix,
        parameters: &CheckedParameters,
    ) -> Result<PseudoLabels, Error> {
        if points.columns() != self.columns() {
            let (source_columns, target_columns) = (self.columns(), points.columns());
            return Err(Error::Width { source_columns, target_columns });
        }
        if let Some((row, column, value)) = points.first_non_finite() {
            return Err(Error::NotFinite { domain: Domain::Target, row, column, value });
        }
        parameters.on_threads(|| {
            let similarity = parameters.similarity();
            if similarity.scales_rows() {
                points.normalise_rows();
            }
            let nodes = self.base.rows() + self.anchors.rows();
            let k = parameters.others().unwrap_or(nodes).min(nodes);
            let mut scores = vec![0f32; points.rows() * self.classes()];
            for start in (0..points.rows()).step_by(ROWS_PER_TASK) {
                let block = points.block(start..points.rows().min(start + ROWS_PER_TASK));
                for (row, nearest) in (start..).zip(self.nearest(block, k, similarity)) {
                    let mut sum = vec![0f64; self.classes()];
                    for ranked in nearest.sorted() {
                        let weight = f64::from(similarity.weight(ranked.score()));
                        for (sum, &p) in sum.iter_mut().zip(self.probabilities(ranked.node() as usize)) {
                            *sum += weight * f64::from(p);
                        }
                    }
                    let out = &mut scores[row * self.classes()..][..self.classes()];
                    out.iter_mut().zip(sum).for_each(|(out, sum)| *out = sum as f32);
                }
            }
            let reached: Vec<bool> =
                scores.chunks_exact(self.classes().max(1)).map(|row| row.iter().any(|&s| s > 0.0)).collect();
            let soft = SoftLabels::given(self.classes(), scores);
            let mut labels = PseudoLabels::read(&soft, 0..points.rows(), &reached, &self.candidates);
            labels.mark_low_confidence(parameters.min_confidence());
            labels
        })
    }

    fn nearest(&self, points: &[f32], k: usize, similarity: Similarity) -> Vec<BestOf> {
        let mut best = look_at_all(&self.base, points, k, similarity, |_, _| false);
        if self.anchors.rows() > 0 {
            let anchors = look_at_all(&self.anchors, points, k, similarity, |_, _| false);
            for (best, anchors) in best.iter_mut().zip(anchors) {
                for ranked in anchors.sorted() {
                    best.consider(ranked.score(), ranked.node() + self.base.rows() as u32);
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Domains;
    use crate::parameters::Parameters;
    use crate::run::{Run, label};

    fn points(seed: u64, count: usize) -> Vec<[f32; 6]> {
        (0..count as u64)
            .map(|at| {
                std::array::from_fn(|d| {
                    let bits = (seed * 977 + at * 31 + d as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    (bits >> 40) as f32 / (1u64 << 24) as f32 + if at as usize % 3 == d { 1.0 } else { 0.0 }
                })
            })
            .collect()
    }

    #[test]
    fn new_points_get_the_weighted_mean_of_their_neighbours() {
        let (source, target, new) = (points(1, 30), points(2, 40), points(3, 15));
        let names: Vec<String> = (0..30).map(|at| format!("c{}", at % 3)).collect();
        let domains = || {
            let source = FeatureMatrix::from_rows(&source).unwrap();
            let target = FeatureMatrix::from_rows(&target).unwrap();
            Domains::new(source, Labels::new(&names), target).unwrap()
        };
        let parameters = Parameters::new().neighbours(7).rounds(3).check().unwrap();
        let (labelling, model) = Run::new(domains(), &parameters).fit().unwrap();
        assert_eq!(labelling.pseudo_labels, label(domains(), &parameters).unwrap().pseudo_labels);
        for item in 0..40 {
            assert_eq!(model.probabilities(30 + item), labelling.pseudo_labels.probabilities(item));
        }

        // The same by hand, in f64, over all nodes sorted by cosine.
        let unit = |row: &[f32]| {
            let length = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
            row.iter().map(|&v| f64::from(v) / length).collect::<Vec<f64>>()
        };
        let mut nodes: Vec<Vec<f64>> = source.iter().chain(&target).map(|row| unit(row)).collect();
        nodes.extend(labelling.anchors.iter().map(|anchor| unit(&anchor.vector)));
        let predicted = model.predict(FeatureMatrix::from_rows(&new).unwrap(), &parameters).unwrap();
        for (item, row) in new.iter().enumerate() {
            let x = unit(row);
            let mut near: Vec<(f64, usize)> = nodes
                .iter()
                .enumerate()
                .map(|(j, y)| (x.iter().zip(y).map(|(a, b)| a * b).sum(), j))
                .collect();
            near.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mut p = [0f64; 3];
            for (weight, j) in &near[..7] {
                (0..3).for_each(|c| p[c] += weight * f64::from(model.probabilities(*j)[c]));
            }
            let sum: f64 = p.iter().sum();
            for c in 0..3 {
                assert!((p[c] / sum - f64::from(predicted.probabilities(item)[c])).abs() < 1e-5);
            }
        }
        assert!(model.predict(FeatureMatrix::from_rows(&[[1.0, 2.0]]).unwrap(), &parameters).is_err());
    }

    #[test]
    fn a_model_of_labelled_rows_votes_and_says_when_it_cannot() {
        let rows = FeatureMatrix::from_rows(&[[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]).unwrap();
        let parameters = Parameters::new().neighbours(2).check().unwrap();
        let model = Model::of_labelled(rows, &Labels::new(&["a", "a", "b"]), &parameters).unwrap();
        let new = FeatureMatrix::from_rows(&[[1.0, 0.05], [0.0, 3.0], [-1.0, -1.0], [0.0, 0.0]]).unwrap();
        assert_eq!(model.predict(new, &parameters).unwrap().labels(), [Some(0), Some(1), None, None]);
    }
}
