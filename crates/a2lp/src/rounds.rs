//! The loop of the method (Algorithm 1, lines 2 to 10): every view propagates, the views vote, all learn from the vote.

use crate::affinity::Affinity;
use crate::anchors::Anchor;
use crate::error::Error;
use crate::features::Domains;
use crate::graph::NeighbourGraph;
use crate::labelling::{Labelling, Opinion, Round};
use crate::labels::{ClassId, Classes};
use crate::model::Model;
use crate::neighbours::{GraphReport, NeighbourLists};
use crate::observer::{Attempt, FinishedRound, Observer, Stage, report_progress};
use crate::parameters::{Method, Unreached};
use crate::propagation::{LabelMatrix, SoftLabels, Solve, propagate};
use crate::pseudo_labels::{PseudoLabels, Status};
use crate::quality::{Quality, quality_graph};
use crate::views::{self, Nodes, Setup, View};
use std::ops::ControlFlow;
use std::time::Instant;

/// Runs all rounds. With `assumed`, the first anchors are made from those labels.
pub(crate) fn run_rounds(
    domains: Domains,
    graph: Option<NeighbourGraph>,
    assumed: Option<&[Option<ClassId>]>,
    setup: &Setup<'_>,
    attempt: Attempt,
) -> Result<FinishedRounds, Error> {
    let parameters = setup.parameters;
    let source = Source::of(&domains);
    let started = Instant::now();
    let views = views::build(domains, graph, setup)?;
    let neighbours_secs = started.elapsed().as_secs_f64();

    let mut voters: Vec<Voter> = views.into_iter().map(|view| Voter::new(view, &source)).collect();
    let shares = source.shares();
    let mut trace = Trace::default();
    let mut graph_secs = 0.0;
    let mut labels = loop {
        let number = trace.rounds.len() + 1;
        let within = WithinRound { observer: setup.observer, done: number - 1, rounds: parameters.rounds };
        within.report_progress()?;
        let mut ballots = Vec::with_capacity(voters.len());
        for voter in &mut voters {
            let first = ballots.is_empty();
            ballots.push(voter.propagate(&source, setup, &within, first)?);
        }
        let mut votes: Vec<PseudoLabels> =
            ballots.iter_mut().map(|ballot| std::mem::take(&mut ballot.labels)).collect();
        let agreement = (parameters.method == Method::Consensus).then(|| {
            votes.iter_mut().for_each(|vote| vote.correct_class_sizes(&shares));
            PseudoLabels::agreement(&votes)
        });
        let mut labels = match agreement {
            Some(_) => PseudoLabels::vote(&votes, &source.candidates),
            None => votes.swap_remove(0),
        };
        let round = trace.note(&ballots, &labels, agreement, graph_secs);
        ballots[0].show(&labels, round, setup.observer, attempt);
        drop(ballots);
        for (voter, vote) in voters.iter_mut().zip(votes) {
            voter.labels_by_round.push(vote.labels().to_vec());
        }
        let stable = parameters.stop_when_stable && number > 1 && trace.rounds[number - 1].changed == 0;
        if number == parameters.rounds || stable {
            break labels;
        }
        if let Some(assumed) = assumed.filter(|_| number == 1) {
            labels.assume(assumed);
        }
        let started = Instant::now();
        let setup = Setup { parameters, observer: &within };
        for (at, voter) in voters.iter_mut().enumerate() {
            let added = voter.view.learn(&labels, number, &setup)?;
            if at == 0 {
                trace.anchors.extend(added);
            }
        }
        graph_secs = started.elapsed().as_secs_f64();
    };
    report_progress(setup.observer, Stage::Rounds, parameters.rounds as u64, parameters.rounds as u64)?;

    labels.mark_low_confidence(parameters.min_confidence);
    if parameters.unreached == Unreached::Nearest {
        voters[0].view.nodes().fill_unreached(&mut labels);
    }
    Ok(FinishedRounds::new(source, voters, trace, labels, neighbours_secs))
}

/// The classes of the source with their counts.
struct Source {
    classes: Classes,
    ids: Vec<ClassId>,
    counts: Vec<usize>,
    /// Classes that have a labelled node: K of eq. 8.
    candidates: Vec<bool>,
    targets: usize,
}

impl Source {
    fn of(domains: &Domains) -> Self {
        let counts = domains.source_labels.counts();
        Source {
            classes: domains.source_labels.classes().clone(),
            ids: domains.source_labels.ids().to_vec(),
            candidates: counts.iter().map(|&n| n > 0).collect(),
            counts,
            targets: domains.target_rows(),
        }
    }

    fn shares(&self) -> Vec<f64> {
        self.counts.iter().map(|&n| n as f64 / self.ids.len() as f64).collect()
    }
}

/// A view and its labels so far.
struct Voter {
    view: Box<dyn View>,
    soft: SoftLabels,
    /// Its labels after every round, before the vote; only if several views vote.
    labels_by_round: Vec<Vec<Option<ClassId>>>,
}

/// What one view says in one round.
struct Ballot<'a> {
    nodes: &'a Nodes,
    soft: &'a SoftLabels,
    /// Kept for the view that observers are shown.
    affinity: Option<Affinity<'a>>,
    labels: PseudoLabels,
    solve: Solve,
    graph_secs: f64,
    solve_secs: f64,
}

impl Voter {
    fn new(view: Box<dyn View>, source: &Source) -> Self {
        Voter { view, soft: SoftLabels::new(source.classes.len()), labels_by_round: Vec::new() }
    }

    /// Solves (I − αS)F = Y over the nodes of the view and reads the target's labels from F.
    fn propagate(
        &mut self,
        source: &Source,
        setup: &Setup<'_>,
        within: &WithinRound<'_>,
        keeps_affinity: bool,
    ) -> Result<Ballot<'_>, Error> {
        let parameters = setup.parameters;
        let nodes = self.view.nodes();
        let started = Instant::now();
        let affinity = nodes.affinity()?;
        let reached = affinity.reached(&nodes.labels);
        let graph_secs = started.elapsed().as_secs_f64();

        let started = Instant::now();
        let matrix = LabelMatrix::new(&nodes.labels, source.classes.len(), parameters.label_weight);
        let go_on = || within.report_progress();
        let solve = propagate(&affinity, &matrix, &reached, parameters, &go_on, &mut self.soft)?;
        let solve_secs = started.elapsed().as_secs_f64();

        let labels =
            PseudoLabels::read(&self.soft, nodes.first_target, source.targets, &reached, &source.candidates);
        let affinity = keeps_affinity.then_some(affinity);
        Ok(Ballot { nodes, soft: &self.soft, affinity, labels, solve, graph_secs, solve_secs })
    }
}

impl Ballot<'_> {
    /// Shows a finished round to the observer.
    fn show(&self, labels: &PseudoLabels, round: &Round, observer: &dyn Observer, attempt: Attempt) {
        if let Some(affinity) = &self.affinity {
            observer.round(&FinishedRound {
                attempt,
                affinity,
                node_labels: &self.nodes.labels,
                first_target: self.nodes.first_target,
                soft_labels: self.soft,
                pseudo_labels: labels,
                round,
            });
        }
    }
}

/// What is kept of every round.
#[derive(Default)]
struct Trace {
    rounds: Vec<Round>,
    labels_by_round: Vec<Vec<Option<ClassId>>>,
    /// The anchors of the first view.
    anchors: Vec<Anchor>,
}

impl Trace {
    /// Notes the figures of a round. `learning_secs` were spent before it, adding anchors.
    fn note(
        &mut self,
        ballots: &[Ballot<'_>],
        labels: &PseudoLabels,
        agreement: Option<f64>,
        learning_secs: f64,
    ) -> &Round {
        let solves: Vec<&Solve> = ballots.iter().map(|ballot| &ballot.solve).collect();
        let nodes = ballots[0].nodes;
        self.rounds.push(Round {
            round: self.rounds.len() + 1,
            nodes: nodes.labels.len(),
            anchors: nodes.anchors.rows(),
            changed: self.labels_by_round.last().map_or(0, |before| labels.changed_from(before)),
            unreached: labels.count(Status::Unreached),
            weak: labels.count(Status::Weak),
            mean_confidence: labels.mean_confidence(),
            class_counts: labels.class_counts(),
            agreement,
            solve: Solve::together(&solves),
            graph_secs: learning_secs + ballots.iter().map(|ballot| ballot.graph_secs).sum::<f64>(),
            solve_secs: ballots.iter().map(|ballot| ballot.solve_secs).sum(),
        });
        self.labels_by_round.push(labels.labels().to_vec());
        &self.rounds[self.rounds.len() - 1]
    }
}

/// A finished run: the labelling, and the nodes it was made from.
pub(crate) struct FinishedRounds {
    pub(crate) labelling: Labelling,
    source_ids: Vec<ClassId>,
    candidates: Vec<bool>,
    /// The first view, as the last round left it.
    nodes: Nodes,
    soft: SoftLabels,
    /// Neighbours that quality can be measured on, if the run has them anyway.
    quality_graph: Option<NeighbourLists>,
}

impl FinishedRounds {
    fn new(
        source: Source,
        mut voters: Vec<Voter>,
        trace: Trace,
        pseudo_labels: PseudoLabels,
        neighbours_secs: f64,
    ) -> Self {
        let reports = voters.iter().filter_map(|voter| voter.view.nodes().report.as_ref());
        let graph: Option<GraphReport> = reports.min_by(|a, b| a.recall.total_cmp(&b.recall)).cloned();
        let quality_graph = voters.get(1).and_then(|voter| voter.view.nodes().without_anchors()).cloned();
        let several = voters.len() > 1;
        let opinion = |voter: &mut Voter| Opinion {
            name: voter.view.name(),
            labels_by_round: std::mem::take(&mut voter.labels_by_round),
        };
        let views = if several { voters.iter_mut().map(opinion).collect() } else { Vec::new() };
        let Voter { view, soft, .. } = voters.swap_remove(0);
        let labelling = Labelling {
            classes: source.classes,
            source_counts: source.counts,
            pseudo_labels,
            anchors: trace.anchors,
            rounds: trace.rounds,
            labels_by_round: trace.labels_by_round,
            views,
            quality: None,
            guard: None,
            graph,
            neighbours_secs,
        };
        FinishedRounds {
            labelling,
            source_ids: source.ids,
            candidates: source.candidates,
            nodes: view.into_nodes(),
            soft,
            quality_graph,
        }
    }

    /// Measures the quality of the labels, if that was asked for and every source row is a node. Uses the features up unless
    /// they are to be kept.
    pub(crate) fn measure_quality(&mut self, keep: bool, setup: &Setup<'_>) -> Result<(), Error> {
        let Setup { parameters, observer } = setup;
        if !parameters.quality || self.source_ids.len() != self.nodes.first_target {
            return Ok(());
        }
        let lists = match self.quality_graph.take() {
            Some(lists) => lists,
            None => {
                let base = &mut self.nodes.base;
                let mut unit = if keep { base.clone() } else { std::mem::take(base) };
                if !parameters.similarity.scales_rows() {
                    unit.normalise_rows();
                }
                quality_graph(unit, self.source_ids.len(), setup)?
            }
        };
        let rounds = parameters.rounds as u64;
        let go_on = || report_progress(*observer, Stage::Rounds, rounds, rounds);
        let Labelling { classes, pseudo_labels, .. } = &self.labelling;
        self.labelling.quality =
            Some(Quality::measure(&lists, &self.source_ids, classes.len(), pseudo_labels, &go_on)?);
        Ok(())
    }

    /// The labelling, and the nodes with their probabilities as a model.
    pub(crate) fn into_model(self) -> Result<(Labelling, Model), Error> {
        let FinishedRounds { labelling, candidates, nodes, soft, .. } = self;
        let reached = nodes.affinity()?.reached(&nodes.labels);
        let mut read = PseudoLabels::read(&soft, 0, nodes.labels.len(), &reached, &candidates);
        if !labelling.views.is_empty() {
            read.replace(nodes.first_target, &labelling.pseudo_labels);
        }
        let model = Model::new(nodes.base, nodes.anchors, nodes.first_target, read, candidates);
        Ok((labelling, model))
    }
}

/// Passes on only the wish to stop: a search within a round is no stage of its own.
struct WithinRound<'a> {
    observer: &'a dyn Observer,
    done: usize,
    rounds: usize,
}

impl WithinRound<'_> {
    fn report_progress(&self) -> Result<(), Error> {
        report_progress(self.observer, Stage::Rounds, self.done as u64, self.rounds as u64)
    }
}

impl Observer for WithinRound<'_> {
    fn progress(&self, _: Stage, _: u64, _: u64) -> ControlFlow<()> {
        self.observer.progress(Stage::Rounds, self.done as u64, self.rounds as u64)
    }
}
