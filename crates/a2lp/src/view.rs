//! A view: the nodes seen in one way, their labels, and who is near whom. A²LP has one, the consensus two or three.
//!
//! | view | rows | neighbours | anchors |
//! |---|---|---|---|
//! | raw | as given, of unit length under the cosine | the k nearest | of all rounds |
//! | centred | less the mean of their own domain | half of them from either domain | of all rounds |
//! | discriminant | projected so that classes are tight | the k nearest, new in every round | of the last round |

use crate::affinity::{Affinity, full_graph, symmetrise};
use crate::anchors::{Anchor, Averaging, place_anchors};
use crate::discriminant::Discriminant;
use crate::error::Error;
use crate::features::{Domains, FeatureMatrix, weighted_mean};
use crate::graph::NeighbourGraph;
use crate::labels::ClassId;
use crate::neighbours::{
    GraphReport, NeighbourLists, Ranked, Wanted, find_again, find_neighbours, insert_nodes,
};
use crate::observer::{Observer, Stage, tell};
use crate::parameters::{AnchorMode, AnchorSpace, AnchorWeights, CheckedParameters, SourceNodes};
use crate::pseudo_labels::PseudoLabels;
use crate::similarity::Similarity;
use serde::{Deserialize, Serialize};

/// How a view sees the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ViewName {
    /// Features as given.
    Raw,
    /// Features less the mean of their domain, neighbours in either domain.
    Centred,
    /// Features projected so that the classes known so far are tight.
    Discriminant,
}

impl ViewName {
    /// The word used in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            ViewName::Raw => "raw",
            ViewName::Centred => "centred",
            ViewName::Discriminant => "discriminant",
        }
    }
}

/// The nodes seen in one way.
///
/// Nodes are the labelled source nodes, then the target items, then the anchors.
pub(crate) struct View {
    pub(crate) base: FeatureMatrix,
    pub(crate) anchors: FeatureMatrix,
    pub(crate) first_target: usize,
    pub(crate) labels: Vec<Option<ClassId>>,
    pub(crate) report: Option<GraphReport>,
    /// How neighbours are ranked and what an edge weighs.
    similarity: Similarity,
    /// Are the rows of unit length, and anchors to be?
    unit: bool,
    /// Length of each base row before scaling; only under the cosine.
    norms: Option<Vec<f64>>,
    graph: Graph,
    /// Only of the view that projects anew in every round.
    discriminant: Option<Discriminant>,
}

enum Graph {
    /// The k nearest; `without_anchors` is kept where it is needed again.
    Nearest {
        k: usize,
        lists: NeighbourLists,
        without_anchors: Option<NeighbourLists>,
    },
    Full,
}

impl View {
    /// The one view of A²LP, over a graph that was brought along if there is one.
    pub(crate) fn plain(
        domains: Domains,
        graph: Option<NeighbourGraph>,
        parameters: &CheckedParameters,
        observer: &dyn Observer,
    ) -> Result<Self, Error> {
        let Domains { mut features, source_rows, source_labels } = domains;
        let mut labels: Vec<Option<ClassId>> = source_labels.ids().iter().copied().map(Some).collect();
        let mut first_target = source_rows;
        if parameters.source_nodes == SourceNodes::Centres {
            let (centres, of) = class_centres(&features, source_labels.ids(), source_labels.classes().len());
            first_target = centres.rows();
            features.replace_head(source_rows, &centres);
            labels = of.into_iter().map(Some).collect();
        }
        labels.resize(features.rows(), None);
        let similarity = parameters.similarity;
        let unit = similarity.scales_rows();
        let norms = unit.then(|| features.normalise_rows());
        let mut report = None;
        let graph = match parameters.others() {
            None => Graph::Full,
            Some(k) => {
                // No node can have more neighbours than there will ever be nodes.
                let anchors = source_labels.classes().len() * (parameters.rounds - 1);
                let k = k.min(features.rows() + anchors);
                let lists = match graph {
                    Some(graph) => graph.into_lists(features.rows(), similarity)?,
                    None => {
                        let method = parameters.graph_method;
                        let wanted = Wanted::Nearest(k);
                        let (lists, found) = find_neighbours(
                            &features,
                            wanted,
                            similarity,
                            method,
                            parameters.seed,
                            observer,
                        )?;
                        report = Some(found);
                        lists
                    }
                };
                let keep = parameters.anchor_mode == AnchorMode::Replace && parameters.rounds > 1;
                Graph::Nearest { k, without_anchors: keep.then(|| lists.clone()), lists }
            }
        };
        let anchors = FeatureMatrix::default();
        let discriminant = None;
        Ok(View {
            base: features,
            anchors,
            first_target,
            labels,
            report,
            similarity,
            unit,
            norms,
            graph,
            discriminant,
        })
    }

    /// The two or three views of the consensus.
    pub(crate) fn several(
        domains: Domains,
        parameters: &CheckedParameters,
        observer: &dyn Observer,
    ) -> Result<Vec<(ViewName, Self)>, Error> {
        let Domains { mut features, source_rows, source_labels } = domains;
        let mut labels: Vec<Option<ClassId>> = source_labels.ids().iter().copied().map(Some).collect();
        labels.resize(features.rows(), None);
        let classes = source_labels.classes().len();
        let anchors = classes * (parameters.rounds - 1);
        let k = parameters.others().unwrap_or(usize::MAX).min(features.rows() + anchors);
        let search = |features: &FeatureMatrix, wanted: Wanted| {
            let (method, seed) = (parameters.graph_method, parameters.seed);
            find_neighbours(features, wanted, Similarity::Dot3, method, seed, observer)
        };
        let view = |base, k, (lists, report): (NeighbourLists, _), keep: bool, discriminant| View {
            base,
            anchors: FeatureMatrix::default(),
            first_target: source_rows,
            labels: labels.clone(),
            report: Some(report),
            similarity: Similarity::Dot3,
            unit: true,
            norms: None,
            graph: Graph::Nearest { k, without_anchors: keep.then(|| lists.clone()), lists },
            discriminant,
        };

        features.normalise_rows();
        let centred = centre_domains(features.clone(), source_rows);
        let go_on = || tell(observer, Stage::Neighbours, 0, 1);
        let discriminant = (parameters.views > 2).then(|| Discriminant::new(&centred, &go_on)).transpose()?;
        let found = search(&features, Wanted::Nearest(k))?;
        let mut views = vec![(ViewName::Raw, view(features, k, found, false, None))];
        let found = search(&centred, half_of_each(k, source_rows))?;
        views.push((ViewName::Centred, view(centred, k, found, parameters.quality, None)));
        if let Some(discriminant) = discriminant {
            let base = discriminant.project(&labels, classes);
            let found = search(&base, Wanted::Nearest(k))?;
            views.push((ViewName::Discriminant, view(base, k, found, true, Some(discriminant))));
        }
        Ok(views)
    }

    /// A + Aᵀ over the present nodes (eq. 6).
    pub(crate) fn affinity(&self) -> Result<Affinity<'_>, Error> {
        match &self.graph {
            Graph::Nearest { lists, .. } => symmetrise(lists, self.similarity),
            Graph::Full => full_graph(&self.base, &self.anchors, self.similarity),
        }
    }

    /// Neighbours before any anchor came, where they are kept.
    pub(crate) fn without_anchors(&self) -> Option<&NeighbourLists> {
        match &self.graph {
            Graph::Nearest { without_anchors, .. } => without_anchors.as_ref(),
            Graph::Full => None,
        }
    }

    /// Takes in what round `round` found out: its anchors become labelled nodes (eq. 10). Returns them.
    pub(crate) fn learn(
        &mut self,
        pseudo: &PseudoLabels,
        round: usize,
        parameters: &CheckedParameters,
        observer: &dyn Observer,
    ) -> Result<Vec<Anchor>, Error> {
        if let Some(discriminant) = &self.discriminant {
            let mut known = self.labels[..self.first_target].to_vec();
            known.extend(most_confident(pseudo, round));
            self.base = discriminant.project(&known, pseudo.classes());
            if let Graph::Nearest { k, without_anchors: Some(before), .. } = &mut self.graph {
                let wanted = Wanted::Nearest(*k);
                let (lists, report) =
                    find_again(&self.base, wanted, self.similarity, before, parameters, observer)?;
                (*before, self.report) = (lists, Some(report));
            }
        }
        let added = place_anchors(
            pseudo,
            round,
            &Averaging {
                features: &self.base,
                first_target: self.first_target,
                norms: self.norms.as_deref().filter(|_| parameters.anchor_space == AnchorSpace::Raw),
                unit: self.unit,
                entropy_weights: parameters.anchor_weights == AnchorWeights::Entropy,
            },
        );
        self.add_anchors(&added, parameters);
        Ok(added)
    }

    /// Adds anchors as labelled nodes, in place of the earlier ones if so asked.
    fn add_anchors(&mut self, added: &[Anchor], parameters: &CheckedParameters) {
        if parameters.anchor_mode == AnchorMode::Replace || self.discriminant.is_some() {
            self.anchors = FeatureMatrix::default();
            self.labels.truncate(self.base.rows());
            if let Graph::Nearest { lists, without_anchors: Some(original), .. } = &mut self.graph {
                lists.clone_from(original);
            }
        }
        if added.is_empty() {
            return;
        }
        let first_new = self.anchors.rows();
        for anchor in added {
            self.anchors.append_row(&anchor.vector);
            self.labels.push(Some(anchor.class));
        }
        if let Graph::Nearest { k, lists, .. } = &mut self.graph {
            insert_nodes(lists, &self.base, &self.anchors, first_new, *k, self.similarity);
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

/// Half of k neighbours from the source, half from the target, at least one of each.
pub(crate) fn half_of_each(k: usize, first_target: usize) -> Wanted {
    Wanted::OfEach { first_target, source: (k / 2).max(1), target: (k - k / 2).max(1) }
}

/// Unit rows, less the mean of their own domain, of unit length again.
pub(crate) fn centre_domains(mut unit: FeatureMatrix, first_target: usize) -> FeatureMatrix {
    let rows = unit.rows();
    for domain in [0..first_target, first_target..rows] {
        unit.subtract_mean(domain);
    }
    unit.normalise_rows();
    unit
}

/// Rounds after which every label counts in the discriminant view; before, a part that grows evenly.
const ALL_COUNT_AFTER: usize = 10;

/// The labels of the most confident items of every class, `None` for the others.
fn most_confident(pseudo: &PseudoLabels, round: usize) -> Vec<Option<ClassId>> {
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); pseudo.classes()];
    for (item, label) in pseudo.labels().iter().enumerate() {
        if let Some(class) = label {
            members[*class as usize].push(item);
        }
    }
    let mut chosen = vec![None; pseudo.len()];
    for (class, mut items) in members.into_iter().enumerate() {
        let confidence = pseudo.confidence();
        items.sort_by(|&a, &b| confidence[b].total_cmp(&confidence[a]));
        let count = items.len() * round.min(ALL_COUNT_AFTER) / ALL_COUNT_AFTER;
        items[..count].iter().for_each(|&item| chosen[item] = Some(class as ClassId));
    }
    chosen
}

/// Mean of the raw rows of each class that has any (the paper's variant), and those classes.
pub(crate) fn class_centres(
    features: &FeatureMatrix,
    ids: &[ClassId],
    classes: usize,
) -> (FeatureMatrix, Vec<ClassId>) {
    let mut centres = FeatureMatrix::default();
    let mut of = Vec::new();
    for class in 0..classes as ClassId {
        let rows: Vec<usize> = (0..ids.len()).filter(|&row| ids[row] == class).collect();
        if !rows.is_empty() {
            let weighted = rows.iter().map(|&row| (features.row(row), 1.0));
            centres.append_row(&weighted_mean(weighted, rows.len() as f64, features.columns()));
            of.push(class);
        }
    }
    (centres, of)
}
