//! The nodes of a view: rows, labels, anchors and the graph that joins them.

use super::Lesson;
use crate::affinity::{Affinity, BaseEdges, full_graph, symmetrise};
use crate::anchors::{Anchor, Averaging, Shrinkage, place_anchors};
use crate::error::Error;
use crate::features::{FeatureMatrix, class_centres, weighted_mean};
use crate::labels::ClassId;
use crate::neighbours::{GraphReport, NeighbourLists, Numbering, Ranked, insert_nodes};
use crate::parameters::{AnchorMode, AnchorSpace, AnchorWeights, CheckedParameters};
use crate::propagation::Masses;
use crate::pseudo_labels::PseudoLabels;
use crate::similarity::Similarity;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The nodes of a view: labelled source nodes, then target items, then anchors.
#[derive(Clone)]
pub(crate) struct Nodes {
    /// Source and target rows; the hypotheses of a run share them.
    pub(crate) base: Arc<FeatureMatrix>,
    pub(crate) anchors: FeatureMatrix,
    /// Weights of the anchors as labelled nodes.
    masses: Vec<f32>,
    pub(crate) first_target: usize,
    pub(crate) labels: Vec<Option<ClassId>>,
    /// Means of the source's classes, where anchors are drawn to them.
    class_means: Option<Arc<FeatureMatrix>>,
    /// How the neighbours were found.
    pub(crate) report: Option<GraphReport>,
    /// How neighbours are ranked and what an edge weighs.
    pub(crate) similarity: Similarity,
    scaling: Scaling,
    pub(super) graph: Graph,
}

/// The length of rows and anchors.
#[derive(Clone)]
pub(super) enum Scaling {
    AsGiven,
    /// Unit length. `norms` are the lengths of the base rows before scaling, if they are known.
    Unit {
        norms: Option<Vec<f64>>,
    },
}

#[derive(Clone)]
pub(super) enum Graph {
    /// The k nearest; `without_anchors` is kept if it is needed again.
    Nearest {
        k: usize,
        lists: NeighbourLists,
        without_anchors: Option<Arc<NeighbourLists>>,
        /// The edges of the lists without anchors, from the first time they are needed. Only for lists that stay for several rounds.
        edges: Option<Arc<OnceLock<BaseEdges>>>,
    },
    Full,
}

impl Graph {
    /// Lists that stay the same but for the anchors, for so many rounds.
    pub(super) fn nearest(
        k: usize,
        lists: NeighbourLists,
        rounds: usize,
        keep_without_anchors: bool,
    ) -> Self {
        Graph::Nearest {
            k,
            without_anchors: keep_without_anchors.then(|| Arc::new(lists.clone())),
            lists,
            edges: (rounds > 1 && BaseEdges::can_follow(k)).then(Arc::default),
        }
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
        base: impl Into<Arc<FeatureMatrix>>,
        first_target: usize,
        labels: Vec<Option<ClassId>>,
        similarity: Similarity,
        scaling: Scaling,
        graph: Graph,
        report: Option<GraphReport>,
    ) -> Self {
        Nodes {
            base: base.into(),
            anchors: FeatureMatrix::default(),
            masses: Vec::new(),
            first_target,
            labels,
            class_means: None,
            report,
            similarity,
            scaling,
            graph,
        }
    }

    /// A + Aᵀ over the present nodes (eq. 6).
    pub(crate) fn affinity(&self) -> Result<Affinity<'_>, Error> {
        match &self.graph {
            Graph::Nearest { lists, without_anchors, edges: Some(edges), .. } => {
                let make = || BaseEdges::new(without_anchors.as_deref().unwrap_or(lists), self.similarity);
                edges.get_or_init(make).affinity(lists)
            }
            Graph::Nearest { lists, .. } => symmetrise(lists, self.similarity),
            Graph::Full => full_graph(&self.base, &self.anchors, self.similarity),
        }
    }

    /// The same, kept apart from the nodes; `None` if all pairs are joined.
    pub(crate) fn own_affinity(&self) -> Result<Option<Affinity<'static>>, Error> {
        self.lists().map(|lists| symmetrise(lists, self.similarity)).transpose()
    }

    /// The neighbours of the present nodes; `None` if all pairs are joined.
    pub(crate) fn lists(&self) -> Option<&NeighbourLists> {
        match &self.graph {
            Graph::Nearest { lists, .. } => Some(lists),
            Graph::Full => None,
        }
    }

    /// The order in which the nodes are worked through.
    fn numbering(&self) -> Numbering {
        Numbering::new(self.lists().and_then(NeighbourLists::order))
    }

    /// What the labelled nodes weigh.
    pub(crate) fn masses(&self, known: f32) -> Masses<'_> {
        Masses { targets: self.targets(), known, anchors: &self.masses }
    }

    /// The nodes that are target items.
    pub(crate) fn targets(&self) -> Range<usize> {
        self.first_target..self.base.rows()
    }

    /// The neighbour lists without anchors, if the view keeps them.
    pub(crate) fn without_anchors(&self) -> Option<&Arc<NeighbourLists>> {
        match &self.graph {
            Graph::Nearest { without_anchors, .. } => without_anchors.as_ref(),
            Graph::Full => None,
        }
    }

    /// These nodes before any anchor was added, if the view keeps those lists; edges weigh what this similarity says of the same
    /// scores.
    pub(crate) fn without_anchors_and(&self, similarity: Similarity) -> Self {
        let graph = match &self.graph {
            Graph::Nearest { k, lists, without_anchors, .. } => {
                let lists = without_anchors.as_deref().unwrap_or(lists).clone();
                Graph::Nearest { k: *k, lists, without_anchors: None, edges: None }
            }
            Graph::Full => Graph::Full,
        };
        let labels = self.labels[..self.base.rows()].to_vec();
        let scaling = self.scaling.clone();
        Nodes::new(
            self.base.clone(),
            self.first_target,
            labels,
            similarity,
            scaling,
            graph,
            self.report.clone(),
        )
    }

    /// Makes the anchors of a round (eq. 9) and adds them as labelled nodes (eq. 10). Returns them. `moves_means`: the domains
    /// lie apart, so the means of the source's classes move by the difference of the domains' means.
    pub(super) fn add_anchors(
        &mut self,
        lesson: &Lesson<'_>,
        rule: AnchorRule,
        moves_means: bool,
    ) -> Vec<Anchor> {
        let norms = match &self.scaling {
            Scaling::Unit { norms } if rule.space == AnchorSpace::Raw => norms.as_deref(),
            _ => None,
        };
        let means = lesson.shrinks_anchors().then(|| {
            let means =
                || Arc::new(class_means(&self.base, &self.labels, self.first_target, lesson, moves_means));
            self.class_means.get_or_insert_with(means).clone()
        });
        let shrinkage = means.as_ref().map(|means| Shrinkage { means, half_way: lesson.half_way() });
        let mut added = place_anchors(
            lesson.labels,
            lesson.round,
            &Averaging {
                features: &self.base,
                first_target: self.first_target,
                numbering: self.numbering(),
                norms,
                unit: matches!(self.scaling, Scaling::Unit { .. }),
                entropy_weights: rule.weights == AnchorWeights::Entropy,
                shrinkage,
            },
        );
        lesson.set_masses(&mut added);
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
            self.masses.push(anchor.mass);
        }
        if let Graph::Nearest { k, lists, .. } = &mut self.graph {
            insert_nodes(lists, &self.base, &self.anchors, first_new, *k, self.similarity);
        }
        added
    }

    /// Frees what only further rounds need.
    pub(super) fn drop_edges(&mut self) {
        if let Graph::Nearest { edges, .. } = &mut self.graph {
            *edges = None;
        }
    }

    /// Frees the rows and the lists with anchors, which others are about to replace.
    pub(super) fn drop_rows(&mut self) {
        self.base = Arc::default();
        if let Graph::Nearest { lists, .. } = &mut self.graph {
            *lists = NeighbourLists::new();
        }
    }

    /// Puts other rows in place, with their own neighbours, and drops the anchors.
    pub(super) fn replace_rows(
        &mut self,
        base: FeatureMatrix,
        lists: Arc<NeighbourLists>,
        report: GraphReport,
    ) {
        self.base = Arc::new(base);
        self.class_means = None;
        self.report = Some(report);
        if let Graph::Nearest { without_anchors, .. } = &mut self.graph {
            *without_anchors = Some(lists);
        }
        self.drop_anchors();
    }

    fn drop_anchors(&mut self) {
        self.anchors = FeatureMatrix::default();
        self.masses.clear();
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

/// The means of the source's classes, a row per class; zeros for a class without rows.
fn class_means(
    base: &FeatureMatrix,
    labels: &[Option<ClassId>],
    first_target: usize,
    lesson: &Lesson<'_>,
    moves: bool,
) -> FeatureMatrix {
    let ids: Vec<ClassId> = labels[..first_target].iter().flatten().copied().collect();
    let (centres, of) = class_centres(base, &ids, lesson.labels.classes());
    let mean = |rows: std::ops::Range<usize>| {
        let count = rows.len() as f64;
        weighted_mean(rows.map(|row| (base.row(row), 1.0)), count, base.columns())
    };
    let shift: Vec<f32> = match moves {
        true => {
            mean(first_target..base.rows()).iter().zip(mean(0..first_target)).map(|(t, s)| t - s).collect()
        }
        false => vec![0.0; base.columns()],
    };
    let mut rows = vec![0f32; lesson.labels.classes() * base.columns()];
    for (at, &class) in of.iter().enumerate() {
        let row = &mut rows[class as usize * base.columns()..][..base.columns()];
        let moved = centres.row(at).iter().zip(&shift);
        row.iter_mut().zip(moved).for_each(|(value, (centre, shift))| *value = centre + shift);
    }
    FeatureMatrix::from_parts(lesson.labels.classes(), base.columns(), rows)
}
