//! The method itself (Algorithm 1, lines 2 to 10): propagate, place anchors, add them to the graph, repeat.

use crate::affinity::Affinity;
use crate::anchors::Anchor;
use crate::error::{Domain, Error};
use crate::features::Domains;
use crate::graph::NeighbourGraph;
use crate::labels::{ClassId, Classes};
use crate::model::Model;
use crate::neighbours::{GraphReport, NeighbourLists};
use crate::observer::{FinishedRound, Observer, Stage, tell};
use crate::parameters::{CheckedParameters, Method, SourceNodes, Unreached};
use crate::propagation::{LabelMatrix, SoftLabels, Solve, propagate};
use crate::pseudo_labels::{PseudoLabels, Status};
use crate::quality::{Quality, quality_graph};
use crate::view::{View, ViewName};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
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
    /// Share of the target items that all views give the same label; only where several vote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<f64>,
    /// How the solve went; with several views the worst of them, iterations added up.
    pub solve: Solve,
    /// Seconds spent adding anchors and forming the matrix.
    pub graph_secs: f64,
    /// Seconds spent solving.
    pub solve_secs: f64,
}

/// What one view of a consensus made of the target.
#[derive(Clone, Debug)]
pub struct Opinion {
    /// The view.
    pub name: ViewName,
    /// Its own labels in every round, before the vote.
    pub labels_by_round: Vec<Vec<Option<ClassId>>>,
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
    /// What each view of a consensus made of it; empty for the other methods.
    pub views: Vec<Opinion>,
    /// How good the labels look, where that was asked for and could be told.
    pub quality: Option<Quality>,
    /// How neighbours were found (with several views, in the worst of them); `None` for the full graph and for one that was brought along.
    pub graph: Option<GraphReport>,
    /// Seconds spent finding neighbours.
    pub neighbours_secs: f64,
}

impl Labelling {
    /// Did the solver reach its tolerance in every round?
    pub fn converged(&self) -> bool {
        self.rounds.iter().all(|r| r.solve.converged)
    }

    /// How many views of a consensus gave each target item its label; `None` where nothing was voted on.
    pub fn votes(&self) -> Option<Vec<usize>> {
        let last: Vec<_> = self.views.iter().filter_map(|view| view.labels_by_round.last()).collect();
        let votes = |(item, label): (usize, &Option<ClassId>)| {
            last.iter().filter(|labels| labels[item] == *label).count()
        };
        (!last.is_empty()).then(|| self.pseudo_labels.labels().iter().enumerate().map(votes).collect())
    }

    /// Target items to which the views of a consensus gave different labels in the last round.
    pub fn disagreements(&self) -> Vec<usize> {
        let last: Vec<_> = self.views.iter().filter_map(|view| view.labels_by_round.last()).collect();
        let Some((first, others)) = last.split_first() else { return Vec::new() };
        (0..first.len()).filter(|&item| others.iter().any(|labels| labels[item] != first[item])).collect()
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
    parameters
        .pool()?
        .install(|| finish(run(domains, None, None, parameters, observer)?, parameters, observer))
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
        let mut run = run(domains, graph, None, parameters, observer)?;
        run.measure(true, parameters, observer)?;
        let Finished { labelling, view, soft, .. } = run;
        let candidates: Vec<bool> = labelling.source_counts.iter().map(|&n| n > 0).collect();
        let reached = view.affinity()?.reached(&view.labels);
        let mut nodes = PseudoLabels::read(&soft, 0, view.labels.len(), &reached, &candidates);
        if !labelling.views.is_empty() {
            nodes.replace(view.first_target, &labelling.pseudo_labels);
        }
        let model = Model::new(view.base, view.anchors, view.first_target, nodes, candidates);
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
    parameters
        .pool()?
        .install(|| finish(run(domains, Some(graph), None, parameters, observer)?, parameters, observer))
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
    parameters.pool()?.install(|| {
        finish(run(domains, Some(graph), Some(assumed), parameters, observer)?, parameters, observer)
    })
}

/// The answers of a run that is over, with their quality if that was asked for.
fn finish(
    mut run: Finished,
    parameters: &CheckedParameters,
    observer: &dyn Observer,
) -> Result<Labelling, Error> {
    run.measure(false, parameters, observer)?;
    Ok(run.labelling)
}

fn check_graph_use(parameters: &CheckedParameters) -> Result<(), Error> {
    if parameters.method == Method::Consensus {
        return Err(Error::Graph(
            "the consensus builds graphs of its own; use another method with it".into(),
        ));
    }
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
    let source = domains.source_labels.ids().to_vec();
    let shares: Vec<f64> = source_counts.iter().map(|&n| n as f64 / source.len() as f64).collect();
    let candidates: Vec<bool> = source_counts.iter().map(|&n| n > 0).collect();
    let targets = domains.target_rows();

    let started = Instant::now();
    let consensus = parameters.method == Method::Consensus;
    let (names, mut views): (Vec<ViewName>, Vec<View>) = if consensus {
        View::several(domains, parameters, observer)?.into_iter().unzip()
    } else {
        (vec![ViewName::Raw], vec![View::plain(domains, graph, parameters, observer)?])
    };
    let neighbours_secs = started.elapsed().as_secs_f64();
    let mut softs: Vec<SoftLabels> = views.iter().map(|_| SoftLabels::new(classes.len())).collect();
    let mut anchors: Vec<Anchor> = Vec::new();
    let mut rounds: Vec<Round> = Vec::new();
    let mut labels_by_round: Vec<Vec<Option<ClassId>>> = Vec::new();
    let mut labels_by_view: Vec<Vec<Vec<Option<ClassId>>>> = vec![Vec::new(); views.len()];
    let mut found: Option<PseudoLabels> = None;

    let mut pseudo_labels = loop {
        let number = rounds.len() + 1;
        let go_on = || tell(observer, Stage::Rounds, number as u64 - 1, parameters.rounds as u64);
        go_on()?;
        let within = WithinRound { observer, round: number as u64 - 1, rounds: parameters.rounds as u64 };
        let mut votes: Vec<PseudoLabels> = Vec::new();
        let mut solves: Vec<Solve> = Vec::new();
        let (mut graph_secs, mut solve_secs) = (0.0, 0.0);
        let started = Instant::now();
        if let Some(found) = found.take() {
            for (at, view) in views.iter_mut().enumerate() {
                let added = view.learn(&found, number - 1, parameters, &within)?;
                if at == 0 {
                    anchors.extend(added);
                }
            }
        }
        graph_secs += started.elapsed().as_secs_f64();
        // What observers are shown: the first view.
        let mut shown: Option<(Affinity<'_>, &View)> = None;
        for (view, soft) in views.iter().zip(&mut softs) {
            let started = Instant::now();
            let affinity = view.affinity()?;
            let reached = affinity.reached(&view.labels);
            graph_secs += started.elapsed().as_secs_f64();

            let started = Instant::now();
            let labels = LabelMatrix::new(&view.labels, classes.len(), parameters.label_weight);
            solves.push(propagate(&affinity, &labels, &reached, parameters, &go_on, soft)?);
            solve_secs += started.elapsed().as_secs_f64();

            votes.push(PseudoLabels::read(soft, view.first_target, targets, &reached, &candidates));
            shown.get_or_insert((affinity, view));
        }
        let agreement = consensus.then(|| {
            votes.iter_mut().for_each(|vote| vote.correct_class_sizes(&shares));
            for (labels, vote) in labels_by_view.iter_mut().zip(&votes) {
                labels.push(vote.labels().to_vec());
            }
            PseudoLabels::agreement(&votes)
        });
        let mut pseudo =
            if consensus { PseudoLabels::vote(&votes, &candidates) } else { votes.swap_remove(0) };
        let Some((affinity, view)) = shown else { unreachable!("there is a view") };
        let round = Round {
            round: number,
            nodes: affinity.nodes(),
            anchors: view.anchors.rows(),
            changed: labels_by_round.last().map_or(0, |before| pseudo.changed_from(before)),
            unreached: pseudo.count(Status::Unreached),
            weak: pseudo.count(Status::Weak),
            mean_confidence: pseudo.confidence().iter().map(|&w| f64::from(w)).sum::<f64>() / targets as f64,
            class_counts: pseudo.class_counts(),
            agreement,
            solve: Solve::together(&solves),
            graph_secs,
            solve_secs,
        };
        observer.round(&FinishedRound {
            affinity: &affinity,
            node_labels: &view.labels,
            first_target: view.first_target,
            soft_labels: &softs[0],
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
        found = Some(pseudo);
    };
    tell(observer, Stage::Rounds, parameters.rounds as u64, parameters.rounds as u64)?;

    pseudo_labels.mark_low_confidence(parameters.min_confidence);
    if parameters.unreached == Unreached::Nearest {
        views[0].fill_unreached(&mut pseudo_labels);
    }
    let reports = views.iter().filter_map(|view| view.report.as_ref());
    let graph = reports.min_by(|a, b| a.recall.total_cmp(&b.recall)).cloned();
    let opinions = names.iter().zip(labels_by_view).filter(|_| consensus);
    let labelling = Labelling {
        classes,
        source_counts,
        pseudo_labels,
        anchors,
        rounds,
        labels_by_round,
        views: opinions.map(|(&name, labels_by_round)| Opinion { name, labels_by_round }).collect(),
        quality: None,
        graph,
        neighbours_secs,
    };
    let quality_graph = views.get(1).and_then(View::without_anchors).cloned();
    let (view, soft) = (views.swap_remove(0), softs.swap_remove(0));
    Ok(Finished { labelling, source, view, soft, quality_graph })
}

/// The end of a run: the answers, and what they were made of.
struct Finished {
    labelling: Labelling,
    source: Vec<ClassId>,
    /// The first view, as the last round left it.
    view: View,
    soft: SoftLabels,
    /// Neighbours that quality can be measured on, where the run had them anyway.
    quality_graph: Option<NeighbourLists>,
}

impl Finished {
    /// Measures the quality of the labels, if that was asked for and the run knows all rows of the source. `keep` the
    /// features, or use them up.
    fn measure(
        &mut self,
        keep: bool,
        parameters: &CheckedParameters,
        observer: &dyn Observer,
    ) -> Result<(), Error> {
        if !parameters.quality || self.source.len() != self.view.first_target {
            return Ok(());
        }
        let lists = match self.quality_graph.take() {
            Some(lists) => lists,
            None => {
                let base = &mut self.view.base;
                let mut unit = if keep { base.clone() } else { std::mem::take(base) };
                if !parameters.similarity.scales_rows() {
                    unit.normalise_rows();
                }
                quality_graph(unit, self.source.len(), parameters, observer)?
            }
        };
        let rounds = parameters.rounds as u64;
        let go_on = || tell(observer, Stage::Rounds, rounds, rounds);
        let Labelling { classes, pseudo_labels, .. } = &self.labelling;
        self.labelling.quality =
            Some(Quality::measure(&lists, &self.source, classes.len(), pseudo_labels, &go_on)?);
        Ok(())
    }
}

/// Passes on only the wish to stop: views that are built anew within a round are no stage of their own.
struct WithinRound<'a> {
    observer: &'a dyn Observer,
    round: u64,
    rounds: u64,
}

impl Observer for WithinRound<'_> {
    fn progress(&self, _: Stage, _: u64, _: u64) -> ControlFlow<()> {
        self.observer.progress(Stage::Rounds, self.round, self.rounds)
    }
}
