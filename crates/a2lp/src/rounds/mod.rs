//! The loop of the method (Algorithm 1, lines 2 to 10): every view propagates, the views vote, all learn from the vote. A
//! consensus runs it for every hypothesis about the target's class mix, and keeps the one that fits after three rounds.

mod finished;

pub(crate) use finished::FinishedRounds;

use crate::affinity::Affinity;
use crate::anchors::Anchor;
use crate::error::Error;
use crate::features::Domains;
use crate::graph::NeighbourGraph;
use crate::hypothesis::{AssumedMix, DECIDE_AFTER, Hypothesis, MixChoice, fit};
use crate::known::KnownLabels;
use crate::labelling::Round;
use crate::labels::{ClassId, Classes};
use crate::method::MethodChoice;
use crate::neighbours::NeighbourLists;
use crate::observer::{Attempt, FinishedRound, Observer, Stage, report_progress};
use crate::parameters::Unreached;
use crate::propagation::{LabelMatrix, SoftLabels, Solve, propagate};
use crate::pseudo_labels::{PseudoLabels, Status};
use crate::reach::Reach;
use crate::setup::Setup;
use crate::smoothing::Smoother;
use crate::views::{self, Built, Lesson, Nodes, View, ViewName};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// Runs all rounds. With `assumed`, the first anchors are made from those labels. Only the first view is kept, unless the run is to
/// be corrected later.
pub(crate) fn run_rounds(
    domains: Domains,
    graph: Option<NeighbourGraph>,
    assumed: Option<&[Option<ClassId>]>,
    setup: &Setup<'_>,
    attempt: Attempt,
    keeps_views: bool,
) -> Result<FinishedRounds, Error> {
    let source = Source::of(&domains);
    let started = Instant::now();
    let built = views::build(domains, graph, setup)?;
    let neighbours_secs = started.elapsed().as_secs_f64();
    run_views(built, source, neighbours_secs, assumed, setup, attempt, keeps_views)
}

/// The same with views that are there already.
fn run_views(
    Built { views, reach_lists }: Built,
    source: Source,
    neighbours_secs: f64,
    assumed: Option<&[Option<ClassId>]>,
    setup: &Setup<'_>,
    attempt: Attempt,
    keeps_views: bool,
) -> Result<FinishedRounds, Error> {
    let rounds = setup.parameters.rounds;
    let started = Instant::now();
    let go_on = || report_progress(setup.observer, Stage::Rounds, 0, rounds as u64);
    let reach = reach_lists
        .map(|lists| Reach::measure(&lists, &source.ids, source.classes.len(), &go_on))
        .transpose()?;
    let reach_secs = started.elapsed().as_secs_f64();

    let smoother = Smoother::of(&views)?;
    let common = Common { source: &source, shares: &source.shares(), smoother: smoother.as_ref(), setup };
    let mut branches = Branch::start(views, attempt, &common);
    let mut choice = None;
    for number in 1..=rounds {
        let within = WithinRound { observer: setup.observer, done: number - 1, rounds };
        let mut first: Option<FirstRound> = None;
        for branch in &mut branches {
            branch.propagate_and_vote(number, &common, &within, &mut first)?;
        }
        if number == DECIDE_AFTER.min(rounds) {
            choice = choose(&mut branches, &source);
        }
        let is_stable = setup.parameters.stop_when_stable && branches.iter().all(Branch::is_stable);
        if number == rounds || is_stable && branches.len() == 1 {
            break;
        }
        for branch in &mut branches {
            branch.learn(number, assumed, &common, &within)?;
        }
    }
    report_progress(setup.observer, Stage::Rounds, rounds as u64, rounds as u64)?;

    let mut branch = branches.swap_remove(0);
    branch.labels.mark_low_confidence(setup.parameters.min_confidence);
    if setup.parameters.unreached == Unreached::Nearest {
        branch.voters[0].view.nodes().fill_unreached(&mut branch.labels);
    }
    let method = MethodChoice::asked(setup.parameters);
    let smoother = smoother.filter(|_| keeps_views);
    let mut finished =
        FinishedRounds::new(source, branch, choice, smoother, method, neighbours_secs, keeps_views);
    (finished.labelling.reach, finished.labelling.reach_secs) = (reach, reach_secs);
    Ok(finished)
}

/// Keeps the hypothesis that fits the graph of the centred view best. `None` if the run has no hypotheses.
fn choose(branches: &mut Vec<Branch>, source: &Source) -> Option<MixChoice> {
    let fit = |mix: AssumedMix| {
        let branch = branches.iter().find(|branch| branch.assumes(mix))?;
        Some(fit(branch.centred_lists()?, &source.ids, &branch.labels))
    };
    let (fit_same, fit_own) = (fit(AssumedMix::Same), fit(AssumedMix::Own));
    if fit_same.is_none() && fit_own.is_none() {
        return None;
    }
    let choice = MixChoice::new(fit_same, fit_own);
    branches.retain(|branch| branch.assumes(choice.chosen));
    Some(choice)
}

/// What all hypotheses of a run share.
struct Common<'a> {
    source: &'a Source,
    /// π: the class shares of the source.
    shares: &'a [f64],
    smoother: Option<&'a Smoother>,
    setup: &'a Setup<'a>,
}

/// A hypothesis, or the run itself if it makes none: its views, and its labels so far.
struct Branch {
    hypothesis: Option<&'static Hypothesis>,
    attempt: Attempt,
    voters: Vec<Voter>,
    labels: PseudoLabels,
    trace: Trace,
    learning_secs: f64,
}

/// The propagation of the first round, which is the same for all hypotheses.
struct FirstRound {
    voters: Vec<(SoftLabels, PseudoLabels)>,
}

impl Branch {
    /// One branch for every hypothesis, or a single one.
    fn start(views: Vec<Box<dyn View>>, attempt: Attempt, common: &Common<'_>) -> Vec<Branch> {
        let hypotheses = common.setup.parameters.hypotheses();
        let copies: Vec<Vec<Box<dyn View>>> =
            (1..hypotheses.len()).map(|_| views.iter().map(|view| view.fork()).collect()).collect();
        let voters = |views: Vec<Box<dyn View>>| -> Vec<Voter> {
            views.into_iter().map(|view| Voter::new(view, common.source)).collect()
        };
        let branch = |(at, views)| {
            let hypothesis = hypotheses.get(at);
            Branch {
                hypothesis,
                attempt: match hypothesis {
                    Some(Hypothesis { mix: AssumedMix::Own, .. }) => Attempt::OwnMix,
                    _ => attempt,
                },
                voters: voters(views),
                labels: PseudoLabels::default(),
                trace: Trace::default(),
                learning_secs: 0.0,
            }
        };
        std::iter::once(views).chain(copies).enumerate().map(branch).collect()
    }

    /// The lists of the centred view, without anchors.
    fn centred_lists(&self) -> Option<&Arc<NeighbourLists>> {
        let centred = self.voters.iter().find(|voter| voter.view.name() == ViewName::Centred)?;
        centred.view.nodes().without_anchors()
    }

    fn assumes(&self, mix: AssumedMix) -> bool {
        self.hypothesis.is_some_and(|hypothesis| hypothesis.mix == mix)
    }

    /// Did the last round change no label?
    fn is_stable(&self) -> bool {
        self.trace.rounds.len() > 1 && self.trace.rounds.last().is_some_and(|round| round.changed == 0)
    }

    /// A round up to its labels: every view propagates, the views vote, the vote is smoothed.
    fn propagate_and_vote(
        &mut self,
        number: usize,
        common: &Common<'_>,
        within: &WithinRound<'_>,
        first: &mut Option<FirstRound>,
    ) -> Result<(), Error> {
        let Common { source, setup, .. } = common;
        within.report()?;
        let mut ballots = Vec::with_capacity(self.voters.len());
        for (at, voter) in
            self.voters.iter_mut().filter(|voter| voter.view.votes_from() <= number).enumerate()
        {
            let known = first.as_ref().map(|first| &first.voters[at]);
            ballots.push(voter.propagate(source, setup, within, at == 0, known)?);
        }
        if number == 1 && first.is_none() && setup.parameters.hypotheses().len() > 1 {
            let voters = ballots.iter().map(|ballot| (ballot.soft.clone(), ballot.labels.clone())).collect();
            *first = Some(FirstRound { voters });
        }
        if number == 1 {
            self.trace.first_counts = ballots[0].labels.class_counts();
        }
        let mut votes: Vec<PseudoLabels> =
            ballots.iter_mut().map(|ballot| std::mem::take(&mut ballot.labels)).collect();
        let agreement = self.hypothesis.map(|hypothesis| {
            if hypothesis.prior_strength > 0.0 {
                let strength = hypothesis.prior_strength;
                for vote in &mut votes {
                    let factors = vote.class_size_factors(common.shares, strength, &source.candidates);
                    vote.scale_classes(&factors, &source.candidates);
                }
            }
            PseudoLabels::agreement(&votes)
        });
        self.labels = match self.hypothesis {
            Some(_) => PseudoLabels::vote(&votes, &source.candidates),
            None => votes.swap_remove(0),
        };
        source.known.iter().for_each(|(item, class)| self.labels.clamp(item, class));
        let mut solves: Vec<Solve> = ballots.iter().map(|ballot| ballot.solve.clone()).collect();
        if let (Some(hypothesis), Some(smoother)) = (self.hypothesis, common.smoother) {
            let go_on = || within.report();
            let share = hypothesis.smoothing;
            let candidates = &source.candidates;
            solves.push(smoother.smooth(&mut self.labels, share, candidates, setup.parameters, &go_on)?);
            source.known.iter().for_each(|(item, class)| self.labels.clamp(item, class));
        }
        let solve = Solve::together(&solves);
        let round = self.trace.note(&ballots, &self.labels, agreement, solve, self.learning_secs);
        ballots[0].show(&self.labels, round, setup.observer, self.attempt);
        drop(ballots);
        let voting = self.voters.iter_mut().filter(|voter| voter.view.votes_from() <= number);
        for (voter, vote) in voting.zip(votes) {
            voter.labels_by_round.push(vote.labels().to_vec());
        }
        Ok(())
    }

    /// All views learn from the labels.
    fn learn(
        &mut self,
        round: usize,
        assumed: Option<&[Option<ClassId>]>,
        common: &Common<'_>,
        within: &WithinRound<'_>,
    ) -> Result<(), Error> {
        if let Some(assumed) = assumed.filter(|_| round == 1) {
            self.labels.assume(assumed);
        }
        let started = Instant::now();
        let setup = Setup { parameters: common.setup.parameters, observer: within };
        let lesson =
            Lesson { labels: &self.labels, round, hypothesis: self.hypothesis, shares: common.shares };
        for (at, voter) in self.voters.iter_mut().enumerate() {
            let added = voter.view.learn(&lesson, &setup)?;
            if at == 0 {
                self.trace.anchors.extend(added);
            }
        }
        self.learning_secs = started.elapsed().as_secs_f64();
        Ok(())
    }
}

/// The classes of a run with their counts, and what is known of the items.
struct Source {
    classes: Classes,
    ids: Vec<ClassId>,
    counts: Vec<usize>,
    /// What a person said of target items.
    known: KnownLabels,
    /// Classes that have a labelled node: K of eq. 8.
    candidates: Vec<bool>,
}

impl Source {
    fn of(domains: &Domains) -> Self {
        let counts = domains.source_labels.counts();
        let mut candidates: Vec<bool> = counts.iter().map(|&n| n > 0).collect();
        domains.known.iter().for_each(|(_, class)| candidates[class as usize] = true);
        Source {
            classes: domains.source_labels.classes().clone(),
            ids: domains.source_labels.ids().to_vec(),
            known: domains.known.clone(),
            candidates,
            counts,
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

    /// Solves (I − αS)F = Y over the nodes of the view and reads the target's labels from F, unless they are `known`.
    fn propagate(
        &mut self,
        source: &Source,
        setup: &Setup<'_>,
        within: &WithinRound<'_>,
        keeps_affinity: bool,
        known: Option<&(SoftLabels, PseudoLabels)>,
    ) -> Result<Ballot<'_>, Error> {
        let parameters = setup.parameters;
        let nodes = self.view.nodes();
        if let Some((soft, labels)) = known {
            self.soft.clone_from(soft);
            let affinity = keeps_affinity.then(|| nodes.affinity()).transpose()?;
            let (labels, solve) = (labels.clone(), Solve::KNOWN);
            return Ok(Ballot {
                nodes,
                soft: &self.soft,
                affinity,
                labels,
                solve,
                graph_secs: 0.0,
                solve_secs: 0.0,
            });
        }
        let started = Instant::now();
        let affinity = nodes.affinity()?;
        let reached = affinity.reached(&nodes.labels);
        let graph_secs = started.elapsed().as_secs_f64();

        let started = Instant::now();
        let classes = source.classes.len();
        let masses = nodes.masses(parameters.known_weight);
        let matrix = LabelMatrix::with_masses(&nodes.labels, masses, classes, parameters.label_weight);
        let go_on = || within.report();
        let solve = propagate(&affinity, &matrix, &reached, parameters, &go_on, &mut self.soft)?;
        let solve_secs = started.elapsed().as_secs_f64();

        let labels = PseudoLabels::read(&self.soft, nodes.targets(), &reached, &source.candidates);
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
    /// Items per class by the first view alone in the first round.
    first_counts: Vec<usize>,
}

impl Trace {
    /// Notes the figures of a round. `learning_secs` were spent before it, adding anchors.
    fn note(
        &mut self,
        ballots: &[Ballot<'_>],
        labels: &PseudoLabels,
        agreement: Option<f64>,
        solve: Solve,
        learning_secs: f64,
    ) -> &Round {
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
            solve,
            graph_secs: learning_secs + ballots.iter().map(|ballot| ballot.graph_secs).sum::<f64>(),
            solve_secs: ballots.iter().map(|ballot| ballot.solve_secs).sum(),
        });
        self.labels_by_round.push(labels.labels().to_vec());
        &self.rounds[self.rounds.len() - 1]
    }
}

/// Passes on only the wish to stop: a search within a round is no stage of its own.
struct WithinRound<'a> {
    observer: &'a dyn Observer,
    done: usize,
    rounds: usize,
}

impl WithinRound<'_> {
    fn report(&self) -> Result<(), Error> {
        report_progress(self.observer, Stage::Rounds, self.done as u64, self.rounds as u64)
    }
}

impl Observer for WithinRound<'_> {
    fn progress(&self, _: Stage, _: u64, _: u64) -> ControlFlow<()> {
        self.observer.progress(Stage::Rounds, self.done as u64, self.rounds as u64)
    }
}
