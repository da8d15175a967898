//! The nodes of a view: rows, labels, anchors and the graph that joins them.

use crate::affinity::{Affinity, full_graph, symmetrise};
use crate::anchors::{Anchor, Averaging, place_anchors};
use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::labels::ClassId;
use crate::neighbours::{GraphReport, NeighbourLists, Ranked, insert_nodes};
use crate::parameters::{AnchorMode, AnchorSpace, AnchorWeights, CheckedParameters};
use crate::pseudo_labels::PseudoLabels;
use crate::similarity::Similarity;

/// The nodes of a view: labelled source nodes, then target items, then anchors.
pub(crate) struct Nodes {
    /// Source and target rows.
    pub(crate) base: FeatureMatrix,
    pub(crate) anchors: FeatureMatrix,
    pub(crate) first_target: usize,
    pub(crate) labels: Vec<Option<ClassId>>,
    /// How the neighbours were found.
    pub(crate) report: Option<GraphReport>,
    /// How neighbours are ranked and what an edge weighs.
    pub(crate) similarity: Similarity,
    scaling: Scaling,
    pub(super) graph: Graph,
}

/// The length of rows and anchors.
pub(super) enum Scaling {
    AsGiven,
    /// Unit length. `norms` are the lengths of the base rows before scaling, if they are known.
    Unit {
        norms: Option<Vec<f64>>,
    },
}

pub(super) enum Graph {
    /// The k nearest; `without_anchors` is kept if it is needed again.
    Nearest {
        k: usize,
        lists: NeighbourLists,
        without_anchors: Option<NeighbourLists>,
    },
    Full,
}

impl Graph {
    pub(super) fn nearest(k: usize, lists: NeighbourLists, keep_without_anchors: bool) -> Self {
        Graph::Nearest { k, without_anchors: keep_without_anchors.then(|| lists.clone()), lists }
    }
}

/// How a view makes its anchors and whether it keeps the earlier ones.
#[derive(Clone, Copy)]
pub(super) struct AnchorRule {
    pub(super) mode: AnchorMode,
    pub(super) space: AnchorSpace,
    pub(super) weights: AnchorWeights,
}

impl From<&CheckedParameters> for AnchorRule {
    fn from(parameters: &CheckedParameters) -> Self {
        AnchorRule {
            mode: parameters.anchor_mode,
            space: parameters.anchor_space,
            weights: parameters.anchor_weights,
        }
    }
}

impl Nodes {
    pub(super) fn new(
        base: FeatureMatrix,
        first_target: usize,
        labels: Vec<Option<ClassId>>,
        similarity: Similarity,
        scaling: Scaling,
        graph: Graph,
        report: Option<GraphReport>,
    ) -> Self {
        let anchors = FeatureMatrix::default();
        Nodes { base, anchors, first_target, labels, report, similarity, scaling, graph }
    }

    /// A + Aᵀ over the present nodes (eq. 6).
    pub(crate) fn affinity(&self) -> Result<Affinity<'_>, Error> {
        match &self.graph {
            Graph::Nearest { lists, .. } => symmetrise(lists, self.similarity),
            Graph::Full => full_graph(&self.base, &self.anchors, self.similarity),
        }
    }

    /// The neighbour lists without anchors, if the view keeps them.
    pub(crate) fn without_anchors(&self) -> Option<&NeighbourLists> {
        match &self.graph {
            Graph::Nearest { without_anchors, .. } => without_anchors.as_ref(),
            Graph::Full => None,
        }
    }

    /// Makes the anchors of a round (eq. 9) and adds them as labelled nodes (eq. 10). Returns them.
    pub(super) fn add_anchors(
        &mut self,
        labels: &PseudoLabels,
        round: usize,
        rule: AnchorRule,
    ) -> Vec<Anchor> {
        let norms = match &self.scaling {
            Scaling::Unit { norms } if rule.space == AnchorSpace::Raw => norms.as_deref(),
            _ => None,
        };
        let added = place_anchors(
            labels,
            round,
            &Averaging {
                features: &self.base,
                first_target: self.first_target,
                norms,
                unit: matches!(self.scaling, Scaling::Unit { .. }),
                entropy_weights: rule.weights == AnchorWeights::Entropy,
            },
        );
        if rule.mode == AnchorMode::Replace {
            self.drop_anchors();
        }
        if added.is_empty() {
            return added;
        }
        let first_new = self.anchors.rows();
        for anchor in &added {
            self.anchors.append_row(&anchor.vector);
            self.labels.push(Some(anchor.class));
        }
        if let Graph::Nearest { k, lists, .. } = &mut self.graph {
            insert_nodes(lists, &self.base, &self.anchors, first_new, *k, self.similarity);
        }
        added
    }

    fn drop_anchors(&mut self) {
        self.anchors = FeatureMatrix::default();
        self.labels.truncate(self.base.rows());
        if let Graph::Nearest { lists, without_anchors: Some(original), .. } = &mut self.graph {
            lists.clone_from(original);
        }
    }

    /// Gives unreached items the label of the most similar labelled node, if any is similar at all.
    pub(crate) fn fill_unreached(&self, pseudo: &mut PseudoLabels) {
        let similarity = self.similarity;
        for item in 0..pseudo.len() {
            if pseudo.labels()[item].is_some() {
                continue;
            }
            let row = self.base.row(self.first_target + item);
            let labelled = self.labels.iter().enumerate().filter_map(|(node, label)| Some((node, (*label)?)));
            let nearest = labelled
                .map(|(node, class)| {
                    let anchor = node.checked_sub(self.base.rows());
                    let other = anchor.map_or_else(|| self.base.row(node), |a| self.anchors.row(a));
                    (Ranked::new(similarity.score(similarity.chain().of(row, other)), node as u32), class)
                })
                .max();
            if let Some((nearest, class)) = nearest
                && nearest.score() > similarity.floor()
            {
                pseudo.fill(item, class);
            }
        }
    }
}
