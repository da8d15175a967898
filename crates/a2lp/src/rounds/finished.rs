//! What is left when all rounds are done: the labelling, its quality, and the nodes it was made from.

use super::{Branch, Source, Voter, run_views};
use crate::error::Error;
use crate::hypothesis::{Hypothesis, MixChoice};
use crate::labelling::{Labelling, Opinion};
use crate::labels::ClassId;
use crate::live::LiveParts;
use crate::method::MethodChoice;
use crate::model::Model;
use crate::neighbours::{GraphReport, NeighbourLists};
use crate::observer::{Attempt, Stage, report_progress};
use crate::propagation::SoftLabels;
use crate::pseudo_labels::PseudoLabels;
use crate::quality::{Quality, quality_graph};
use crate::setup::Setup;
use crate::smoothing::Smoother;
use crate::views::{Built, Nodes, plain_view};
use std::sync::Arc;

/// A finished run: the labelling, and the nodes it was made from.
pub(crate) struct FinishedRounds {
    pub(crate) labelling: Labelling,
    /// The attempt that made it.
    pub(crate) attempt: Attempt,
    source_ids: Vec<ClassId>,
    candidates: Vec<bool>,
    /// The class shares of the source.
    shares: Vec<f64>,
    hypothesis: Option<&'static Hypothesis>,
    smoother: Option<Smoother>,
    /// The first view as the last round left it, and the other voters if they were to be kept.
    views: Vec<(Nodes, SoftLabels)>,
    /// Neighbours that quality can be measured on, if the run has them anyway.
    quality_graph: Option<Arc<NeighbourLists>>,
}

impl FinishedRounds {
    pub(super) fn new(
        source: Source,
        branch: Branch,
        mix: Option<MixChoice>,
        smoother: Option<Smoother>,
        method: MethodChoice,
        neighbours_secs: f64,
        keeps_views: bool,
    ) -> Self {
        let quality_graph = branch.centred_lists().cloned();
        let shares = source.shares();
        let Branch { mut voters, labels: pseudo_labels, trace, attempt, hypothesis, .. } = branch;
        let reports = voters.iter().filter_map(|voter| voter.view.nodes().report.as_ref());
        let graph: Option<GraphReport> = reports.min_by(|a, b| a.recall.total_cmp(&b.recall)).cloned();
        let several = voters.len() > 1;
        let opinion = |voter: &mut Voter| Opinion {
            name: voter.view.name(),
            first_round: voter.view.votes_from(),
            labels_by_round: std::mem::take(&mut voter.labels_by_round),
        };
        let views = if several { voters.iter_mut().map(opinion).collect() } else { Vec::new() };
        voters.retain(|voter| voter.view.votes_from() <= trace.rounds.len());
        voters.truncate(if keeps_views { voters.len() } else { 1 });
        let parts = |Voter { view, soft, .. }: Voter| (view.into_nodes(), soft);
        let labelling = Labelling {
            method,
            classes: source.classes,
            source_counts: source.counts,
            pseudo_labels,
            anchors: trace.anchors,
            rounds: trace.rounds,
            labels_by_round: trace.labels_by_round,
            propagated_counts: trace.first_counts,
            views,
            mix,
            reach: None,
            reach_secs: 0.0,
            nearest_labels: None,
            known: source.known,
            quality: None,
            guard: None,
            graph,
            neighbours_secs,
        };
        FinishedRounds {
            labelling,
            attempt,
            source_ids: source.ids,
            candidates: source.candidates,
            shares,
            hypothesis,
            smoother,
            views: voters.into_iter().map(parts).collect(),
            quality_graph,
        }
    }

    /// Can the quality of the labels be measured? Every source row has to be a node, and there has to be more than one class.
    pub(crate) fn has_quality(&self) -> bool {
        let classes = self.candidates.iter().filter(|&&candidate| candidate).count();
        classes > 1 && self.source_ids.len() == self.views[0].0.first_target
    }

    /// The neighbours that quality is measured on. Uses the features up unless they are to be kept.
    pub(crate) fn quality_lists(
        &mut self,
        keep: bool,
        setup: &Setup<'_>,
    ) -> Result<Arc<NeighbourLists>, Error> {
        if let Some(lists) = self.quality_graph.take() {
            return Ok(lists);
        }
        let base = &mut self.views[0].0.base;
        let mut unit = if keep { (**base).clone() } else { Arc::unwrap_or_clone(std::mem::take(base)) };
        if !setup.parameters.similarity.scales_rows() {
            unit.normalise_rows();
        }
        quality_graph(unit, self.source_ids.len(), setup).map(Arc::new)
    }

    /// Measures the quality of the labels over these neighbours.
    pub(crate) fn measure_quality(&mut self, lists: &NeighbourLists, setup: &Setup<'_>) -> Result<(), Error> {
        let rounds = setup.parameters.rounds as u64;
        let go_on = || report_progress(setup.observer, Stage::Rounds, rounds, rounds);
        let Labelling { classes, pseudo_labels, .. } = &self.labelling;
        let quality = Quality::measure(lists, &self.source_ids, classes.len(), pseudo_labels, &go_on)?;
        self.labelling.quality = Some(quality);
        Ok(())
    }

    /// Plain label propagation over the graph of the first view as it was before any anchor. Its nodes have no features in the end unless
    /// they are to be kept.
    pub(crate) fn plain_propagation(
        &self,
        setup: &Setup<'_>,
        keep: bool,
        keeps_views: bool,
    ) -> Result<FinishedRounds, Error> {
        let nodes = self.views[0].0.without_anchors_and(setup.parameters.similarity);
        let source = Source {
            classes: self.labelling.classes.clone(),
            ids: self.source_ids.clone(),
            counts: self.labelling.source_counts.clone(),
            known: self.labelling.known.clone(),
            candidates: self.candidates.clone(),
        };
        let built = Built { views: vec![plain_view(nodes)], reach_lists: None };
        let secs = self.labelling.neighbours_secs;
        let attempt = Attempt::PlainPropagation;
        let mut plain = run_views(built, source, secs, None, setup, attempt, keeps_views)?;
        if !keep {
            plain.views.iter_mut().for_each(|(nodes, _)| nodes.base = Arc::default());
        }
        Ok(plain)
    }

    /// The labelling, and the nodes with their probabilities as a model.
    pub(crate) fn into_model(self) -> Result<(Labelling, Model), Error> {
        let FinishedRounds { labelling, candidates, mut views, .. } = self;
        let (nodes, soft) = views.swap_remove(0);
        let reached = nodes.affinity()?.reached(&nodes.labels);
        let mut read = PseudoLabels::read(&soft, 0..nodes.labels.len(), &reached, &candidates);
        if !labelling.views.is_empty() || !labelling.known.is_empty() {
            read.replace(nodes.first_target, &labelling.pseudo_labels);
        }
        let model =
            Model::new(Arc::unwrap_or_clone(nodes.base), nodes.anchors, nodes.first_target, read, candidates);
        Ok((labelling, model))
    }

    /// The labelling with the graphs of all its views, to be corrected.
    pub(crate) fn into_live(self) -> (Labelling, LiveParts) {
        let FinishedRounds { labelling, candidates, shares, hypothesis, smoother, views, .. } = self;
        (labelling, LiveParts { candidates, shares, hypothesis, smoother, views })
    }
}
