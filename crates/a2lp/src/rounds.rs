//! The method itself (Algorithm 1, lines 2 to 10): propagate, place anchors, add them to the graph, repeat.

use crate::affinity::{Affinity, full_graph, symmetrise};
use crate::anchors::{Anchor, Averaging, place_anchors, weighted_mean};
use crate::error::{Domain, Error};
use crate::features::{Domains, FeatureMatrix};
use crate::graph::NeighbourGraph;
use crate::labels::{ClassId, Classes};
use crate::model::Model;
use crate::neighbours::{GraphReport, NeighbourLists, Ranked, find_neighbours, insert_nodes};
use crate::observer::{FinishedRound, Observer, Stage, tell};
use crate::parameters::{
    AnchorMode, AnchorSpace, AnchorWeights, CheckedParameters, Similarity, SourceNodes, Unreached,
};
use crate::propagation::{LabelMatrix, SoftLabels, Solve, propagate};
use crate::pseudo_labels::{PseudoLabels, Status};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The figures of one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Round {
    /// From 1.
    pub round: usize,
    /// Nodes of the graph, anchors included.
    pub nodes: usize,
    /// Anchors in the graph.
    pub anchors: usize,
    /// Target items whose label differs from the round before (0 in the first).
    pub changed: usize,
    /// Target items no label reaches.
    pub unreached: usize,
    /// Target items whose scores are within the solver's error.
    pub weak: usize,
    /// Mean confidence over the target.
    pub mean_confidence: f64,
    /// Target items per predicted class.
    pub class_counts: Vec<usize>,
    /// How the solve went.
    pub solve: Solve,
    /// Seconds spent adding anchors and forming the matrix.
    pub graph_secs: f64,
    /// Seconds spent solving.
    pub solve_secs: f64,
}

/// All that a run found out.
#[derive(Clone, Debug)]
pub struct Labelling {
    /// The class list.
    pub classes: Classes,
    /// Source rows per class.
    pub source_counts: Vec<usize>,
    /// Labels, probabilities and confidence of the target items.
    pub pseudo_labels: PseudoLabels,
    /// Every anchor that stood in the graph, in order of creation.
    pub anchors: Vec<Anchor>,
    /// The figures of every round.
    pub rounds: Vec<Round>,
    /// Labels after each round; the first are those of plain label propagation.
    pub labels_by_round: Vec<Vec<Option<ClassId>>>,
    /// How neighbours were found; `None` for the full graph and for one that was brought along.
    pub graph: Option<GraphReport>,
    /// Seconds spent finding neighbours.
    pub neighbours_secs: f64,
}

impl Labelling {
    /// Did the solver reach its tolerance in every round?
    pub fn converged(&self) -> bool {
        self.rounds.iter().all(|r| r.solve.converged)
    }
}

/// Labels the target of `domains`: A²LP, or plain label propagation when one round is asked for.
///
/// ```
/// use a2lp::{Domains, FeatureMatrix, Labels, Parameters, label};
///
/// let source = FeatureMatrix::from_rows(&[[1.0, 0.1], [0.1, 1.0]])?;
/// let target = FeatureMatrix::from_rows(&[[0.9, 0.3], [0.8, 0.2], [0.3, 0.7]])?;
/// let domains = Domains::new(source, Labels::new(&["mug", "bike"]), target)?;
/// let parameters = Parameters::new().neighbours(2).check()?;
///
/// let labelling = label(domains, &parameters, &())?;
/// let names: Vec<_> = labelling.pseudo_labels.labels().iter()
///     .map(|l| l.map_or("?", |class| labelling.classes.name(class)))
///     .collect();
/// assert_eq!(names, ["mug", "mug", "bike"]);
/// # Ok::<(), a2lp::Error>(())
/// ```
pub fn label(
    domains: Domains,
    parameters: &CheckedParameters,
    observer: &dyn Observer,
) -> Result<Labelling, Error> {
    parameters.pool()?.install(|| Ok(run(domains, None, None, parameters, observer)?.labelling))
}

/// Labels the target, over a graph that was brought along if there is one, and keeps what is needed to label points
/// that come later.
pub fn fit(
    domains: Domains,
    graph: Option<NeighbourGraph>,
    parameters: &CheckedParameters,
    observer: &dyn Observer,
) -> Result<(Labelling, Model), Error> {
    if graph.is_some() {
        check_graph_use(parameters)?;
    }
    parameters.pool()?.install(|| {
        let Finished { labelling, view, soft } = run(domains, graph, None, parameters, observer)?;
        let candidates: Vec<bool> = labelling.source_counts.iter().map(|&n| n > 0).collect();
        let reached = view.affinity(parameters)?.reached(&view.labels);
        let read = PseudoLabels::read(&soft, 0, view.labels.len(), &reached, &candidates);
        let first_target = view.first_target;
        let model = Model::new(view.base, view.anchors, first_target, read, candidates);
        Ok((labelling, model))
    })
}

/// Labels the target over a graph that was brought along: nodes are the source rows, then the target rows.
///
/// Directed rows are symmetrised as A + Aᵀ and each row's own length is its k; a symmetric matrix is used as it is.
/// Anchors are compared with the features as always.
pub fn label_on_graph(
    domains: Domains,
    graph: NeighbourGraph,
    parameters: &CheckedParameters,
    observer: &dyn Observer,
) -> Result<Labelling, Error> {
    check_graph_use(parameters)?;
    parameters.pool()?.install(|| Ok(run(domains, Some(graph), None, parameters, observer)?.labelling))
}

/// The same, but the first anchors are made from the labels `assumed`, one for each target item, weighted by the
/// confidence of the propagated ones: how much does it matter if the first labels are wrong?
pub fn label_assuming(
    domains: Domains,
    graph: NeighbourGraph,
    assumed: &[Option<ClassId>],
    parameters: &CheckedParameters,
    observer: &dyn Observer,
) -> Result<Labelling, Error> {
    check_graph_use(parameters)?;
    if assumed.len() != domains.target_rows() {
        let (labels, rows) = (assumed.len(), domains.target_rows());
        return Err(Error::LabelCount { domain: Domain::Target, labels, rows });
    }
    parameters
        .pool()?
        .install(|| Ok(run(domains, Some(graph), Some(assumed), parameters, observer)?.labelling))
}

fn check_graph_use(parameters: &CheckedParameters) -> Result<(), Error> {
    if parameters.source_nodes == SourceNodes::Centres || parameters.others().is_none() {
        let message =
            "it has a node for every source row, so neither centres nor the full graph can be asked for";
        return Err(Error::Graph(message.into()));
    }
    Ok(())
}

fn run(
    domains: Domains,
    graph: Option<NeighbourGraph>,
    assumed: Option<&[Option<ClassId>]>,
    parameters: &CheckedParameters,
    observer: &dyn Observer,
) -> Result<Finished, Error> {
    let classes = domains.source_labels.classes().clone();
    let source_counts = domains.source_labels.counts();
    let candidates: Vec<bool> = source_counts.iter().map(|&n| n > 0).collect();
    let targets = domains.target_rows();

    let started = Instant::now();
    let mut view = View::build(domains, graph, parameters, observer)?;
    let neighbours_secs = started.elapsed().as_secs_f64();
    let mut soft = SoftLabels::new(classes.len());
    let mut anchors: Vec<Anchor> = Vec::new();
    let mut rounds: Vec<Round> = Vec::new();
    let mut labels_by_round: Vec<Vec<Option<ClassId>>> = Vec::new();

    let mut pseudo_labels = loop {
        let number = rounds.len() + 1;
        let go_on = || tell(observer, Stage::Rounds, number as u64 - 1, parameters.rounds as u64);
        go_on()?;
        let started = Instant::now();
        if number > 1 {
            let added: Vec<&Anchor> = anchors.iter().filter(|a| a.round + 1 == number).collect();
            view.add_anchors(&added, parameters);
        }
        let affinity = view.affinity(parameters)?;
        let reached = affinity.reached(&view.labels);
        let graph_secs = started.elapsed().as_secs_f64();

        let started = Instant::now();
        let labels = LabelMatrix::new(&view.labels, classes.len(), parameters.label_weight);
        let solve = propagate(&affinity, &labels, &reached, parameters, &go_on, &mut soft)?;
        let solve_secs = started.elapsed().as_secs_f64();

        let mut pseudo = PseudoLabels::read(&soft, view.first_target, targets, &reached, &candidates);
        let round = Round {
            round: number,
            nodes: affinity.nodes(),
            anchors: view.anchors.rows(),
            changed: labels_by_round.last().map_or(0, |before| pseudo.changed_from(before)),
            unreached: pseudo.count(Status::Unreached),
            weak: pseudo.count(Status::Weak),
            mean_confidence: pseudo.confidence().iter().map(|&w| f64::from(w)).sum::<f64>() / targets as f64,
            class_counts: pseudo.class_counts(),
            solve,
            graph_secs,
            solve_secs,
        };
        observer.round(&FinishedRound {
            affinity: &affinity,
            node_labels: &view.labels,
            first_target: view.first_target,
            soft_labels: &soft,
            pseudo_labels: &pseudo,
            round: &round,
        });
        let stable = parameters.stop_when_stable && number > 1 && round.changed == 0;
        labels_by_round.push(pseudo.labels().to_vec());
        rounds.push(round);
        if number == parameters.rounds || stable {
            break pseudo;
        }
        if let Some(assumed) = assumed.filter(|_| number == 1) {
            pseudo.assume(assumed);
        }
        anchors.extend(place_anchors(&pseudo, number, &view.averaging(parameters)));
    };
    tell(observer, Stage::Rounds, parameters.rounds as u64, parameters.rounds as u64)?;

    pseudo_labels.mark_low_confidence(parameters.min_confidence);
    if parameters.unreached == Unreached::Nearest {
        view.fill_unreached(&mut pseudo_labels, parameters.similarity);
    }
    let labelling = Labelling {
        classes,
        source_counts,
        pseudo_labels,
        anchors,
        rounds,
        labels_by_round,
        graph: view.report.clone(),
        neighbours_secs,
    };
    Ok(Finished { labelling, view, soft })
}

/// The end of a run: the answers, and what they were made of.
struct Finished {
    labelling: Labelling,
    view: View,
    soft: SoftLabels,
}

/// The nodes seen in one way: their vectors, their labels, and who is near whom.
///
/// Nodes are the labelled source nodes, then the target items, then the anchors.
struct View {
    base: FeatureMatrix,
    anchors: FeatureMatrix,
    first_target: usize,
    /// Length of each base row before scaling; only under the cosine.
    norms: Option<Vec<f64>>,
    labels: Vec<Option<ClassId>>,
    graph: Graph,
    report: Option<GraphReport>,
}

enum Graph {
    /// The k nearest; `without_anchors` is kept when anchors are replaced each round.
    Nearest {
        k: usize,
        lists: NeighbourLists,
        without_anchors: Option<NeighbourLists>,
    },
    Full,
}

impl View {
    fn build(
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
        let norms = (parameters.similarity == Similarity::Cosine).then(|| features.normalise_rows());
        let mut report = None;
        let graph = match parameters.others() {
            None => Graph::Full,
            Some(k) => {
                // No node can have more neighbours than there will ever be nodes.
                let anchors = source_labels.classes().len() * (parameters.rounds - 1);
                let k = k.min(features.rows() + anchors);
                let lists = match graph {
                    Some(graph) => graph.into_lists(features.rows(), parameters.similarity)?,
                    None => {
                        let method = parameters.graph_method;
                        let (lists, found) = find_neighbours(
                            &features,
                            k,
                            parameters.similarity,
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
        Ok(View { base: features, anchors, first_target, norms, labels, graph, report })
    }

    /// A + Aᵀ over the present nodes (eq. 6).
    fn affinity(&self, parameters: &CheckedParameters) -> Result<Affinity<'_>, Error> {
        match &self.graph {
            Graph::Nearest { lists, .. } => symmetrise(lists, parameters.similarity),
            Graph::Full => full_graph(&self.base, &self.anchors, parameters.similarity),
        }
    }

    fn averaging(&self, parameters: &CheckedParameters) -> Averaging<'_> {
        Averaging {
            features: &self.base,
            first_target: self.first_target,
            norms: self.norms.as_deref().filter(|_| parameters.anchor_space == AnchorSpace::Raw),
            unit: parameters.similarity == Similarity::Cosine,
            entropy_weights: parameters.anchor_weights == AnchorWeights::Entropy,
        }
    }

    /// Adds anchors as labelled nodes (eq. 10), in place of the earlier ones if so asked.
    fn add_anchors(&mut self, added: &[&Anchor], parameters: &CheckedParameters) {
        if parameters.anchor_mode == AnchorMode::Replace {
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
            insert_nodes(lists, &self.base, &self.anchors, first_new, *k, parameters.similarity);
        }
    }

    /// Gives unreached items the label of the most similar labelled node, if any is similar at all.
    fn fill_unreached(&self, pseudo: &mut PseudoLabels, similarity: Similarity) {
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
