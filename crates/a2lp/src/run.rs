//! Starting a run: the domains, the parameters, and optionally a graph and an observer.

use crate::error::{Domain, Error};
use crate::features::Domains;
use crate::graph::NeighbourGraph;
use crate::labelling::{Guard, Labelling};
use crate::labels::ClassId;
use crate::live::{LiveLabels, LiveParts};
use crate::model::Model;
use crate::observer::{Attempt, Observer};
use crate::parameters::{CheckedParameters, Method, SourceNodes, Unknown};
use crate::plan::Shape;
use crate::rounds::{FinishedRounds, run_rounds};
use crate::setup::Setup;

/// Labels the target of `domains` with the recommended way to run: no given graph, no observer.
///
/// ```
/// use a2lp::{Domains, FeatureMatrix, Labels, Parameters, label};
///
/// let source = FeatureMatrix::from_rows(&[[1.0, 0.1], [0.1, 1.0]])?;
/// let target = FeatureMatrix::from_rows(&[[0.9, 0.3], [0.8, 0.2], [0.3, 0.7]])?;
/// let domains = Domains::new(source, Labels::new(&["mug", "bike"]), target)?;
/// let parameters = Parameters::new().neighbours(2).check()?;
///
/// let labelling = label(domains, &parameters)?;
/// let names: Vec<_> = labelling.pseudo_labels.labels().iter()
///     .map(|l| l.map_or("?", |class| labelling.classes.name(class)))
///     .collect();
/// assert_eq!(names, ["mug", "mug", "bike"]);
/// # Ok::<(), a2lp::Error>(())
/// ```
pub fn label(domains: Domains, parameters: &CheckedParameters) -> Result<Labelling, Error> {
    Run::new(domains, parameters).label()
}

/// A run that is about to start.
///
/// ```
/// use a2lp::{Domains, FeatureMatrix, Labels, Parameters, Run};
///
/// let rows = FeatureMatrix::from_rows(&[[1.0, 0.1], [0.1, 1.0]])?;
/// let domains = Domains::new(rows.clone(), Labels::new(&["mug", "bike"]), rows)?;
/// let parameters = Parameters::new().neighbours(2).check()?;
///
/// let (labelling, model) = Run::new(domains, &parameters).observe(&()).fit()?;
/// let new = FeatureMatrix::from_rows(&[[0.2, 0.9]])?;
/// assert_eq!(model.predict(new, &parameters)?.labels(), [labelling.classes.find("bike")]);
/// # Ok::<(), a2lp::Error>(())
/// ```
#[must_use = "a run starts with `label` or `fit`"]
pub struct Run<'a> {
    domains: Domains,
    parameters: &'a CheckedParameters,
    graph: Option<NeighbourGraph>,
    observer: &'a dyn Observer,
    assumed: Option<&'a [Option<ClassId>]>,
}

impl<'a> Run<'a> {
    /// A run on these domains.
    pub fn new(domains: Domains, parameters: &'a CheckedParameters) -> Self {
        Run { domains, parameters, graph: None, observer: &(), assumed: None }
    }

    /// Uses this graph instead of searching: nodes are the source rows, then the target rows.
    ///
    /// Directed rows are symmetrised as A + Aᵀ and each row's own length is its k; a symmetric matrix is used as it is.
    /// Anchors are compared with the features as always.
    pub fn graph(mut self, graph: impl Into<Option<NeighbourGraph>>) -> Self {
        self.graph = graph.into();
        self
    }

    /// Shows this observer every round, and lets it stop the run.
    pub fn observe(mut self, observer: &'a dyn Observer) -> Self {
        self.observer = observer;
        self
    }

    /// For our own experiments (the paper's table 1): the first anchors are made from these labels, one for each target item,
    /// weighted by the confidence of the propagated ones. It lets target labels into the method, so it is no way to label data.
    #[doc(hidden)]
    pub fn assume_first_labels(mut self, assumed: &'a [Option<ClassId>]) -> Self {
        self.assumed = Some(assumed);
        self
    }

    /// Labels the target.
    pub fn label(self) -> Result<Labelling, Error> {
        self.run(Keep::Labels).map(|finished| finished.labelling)
    }

    /// Labels the target, and keeps what is needed to label points that come later.
    pub fn fit(self) -> Result<(Labelling, Model), Error> {
        match self.run(Keep::Model)? {
            Finished { labelling, kept: Kept::Model(model), .. } => Ok((labelling, *model)),
            _ => unreachable!("a run that keeps its model has one"),
        }
    }

    /// Labels the target, and keeps what is needed to take corrections.
    pub fn live(self) -> Result<LiveLabels, Error> {
        match self.run(Keep::Live)? {
            Finished { labelling, kept: Kept::Live(parts), parameters } => {
                LiveLabels::new(labelling, *parts, &parameters)
            }
            _ => unreachable!("a run that is to be corrected keeps its views"),
        }
    }

    fn run(self, keep: Keep) -> Result<Finished, Error> {
        self.check()?;
        let Run { domains, parameters, graph, observer, assumed } = self;
        let (parameters, chosen) = parameters.resolve(Shape::of(&domains), graph.is_some());
        parameters.pool()?.install(|| {
            let setup = Setup { parameters: &parameters, observer };
            let mut finished = guarded(domains, graph, assumed, &setup, keep)?;
            let labelling = &mut finished.labelling;
            labelling.method = chosen;
            if labelling.reach.is_some() && parameters.unknown == Unknown::Flag {
                let items = 0..labelling.pseudo_labels.len();
                let unknown: Vec<bool> = items.map(|item| labelling.is_unknown(item)).collect();
                labelling.nearest_labels = Some(labelling.pseudo_labels.mark_unknown(|item| unknown[item]));
            }
            Ok(finished)
        })
    }

    fn check(&self) -> Result<(), Error> {
        if let Some(assumed) = self.assumed.filter(|assumed| assumed.len() != self.domains.target_rows()) {
            let (labels, rows) = (assumed.len(), self.domains.target_rows());
            return Err(Error::LabelCount { domain: Domain::Target, labels, rows });
        }
        if self.graph.is_none() {
            return Ok(());
        }
        if self.parameters.method == Method::Consensus {
            return Err(Error::Graph(
                "the consensus builds graphs of its own; use another method with it".into(),
            ));
        }
        if self.parameters.source_nodes == SourceNodes::Centres || self.parameters.others().is_none() {
            let message =
                "it has a node for every source row, so neither centres nor the full graph can be asked for";
            return Err(Error::Graph(message.into()));
        }
        Ok(())
    }
}

/// What a run keeps beside its labels.
#[derive(Clone, Copy, PartialEq)]
enum Keep {
    Labels,
    Model,
    Live,
}

/// What a run has kept.
enum Kept {
    Labels,
    Model(Box<Model>),
    Live(Box<LiveParts>),
}

/// A finished run, and the parameters that made its labels.
struct Finished {
    labelling: Labelling,
    kept: Kept,
    parameters: CheckedParameters,
}

/// The attempt with the method asked for and, with the guard, plain label propagation to compare it with.
fn guarded(
    domains: Domains,
    graph: Option<NeighbourGraph>,
    assumed: Option<&[Option<ClassId>]>,
    setup: &Setup<'_>,
    keep: Keep,
) -> Result<Finished, Error> {
    let Setup { parameters, observer } = *setup;
    let (keeps_views, keeps_features) = (keep == Keep::Live, keep != Keep::Labels);
    let mut asked = run_rounds(domains, graph, assumed, setup, Attempt::Asked, keeps_views)?;
    let attempt = asked.attempt;
    // Without a quality score there is nothing to compare.
    if !parameters.quality || !asked.has_quality() {
        observer.chosen(attempt);
        return finish(asked, keep, setup);
    }
    let guarded = parameters.guard && parameters.method != Method::Lp;
    let plain = parameters.plain_propagation();
    let plain_setup = Setup { parameters: &plain, observer };
    let lp =
        guarded.then(|| asked.plain_propagation(&plain_setup, keeps_features, keeps_views)).transpose()?;
    let lists = asked.quality_lists(keeps_features, setup)?;
    asked.measure_quality(&lists, setup)?;
    if let Some(mut lp) = lp {
        lp.measure_quality(&lists, &plain_setup)?;
        let score = |run: &FinishedRounds| run.labelling.quality.map_or(0.0, |quality| quality.score);
        let guard = Guard::judge(parameters.method, score(&asked), score(&lp));
        if guard.fell_back {
            observer.chosen(Attempt::PlainPropagation);
            (lp.labelling.reach, lp.labelling.reach_secs) =
                (asked.labelling.reach.take(), asked.labelling.reach_secs);
            lp.labelling.guard = Some(guard);
            return finish(lp, keep, &plain_setup);
        }
        asked.labelling.guard = Some(guard);
    }
    observer.chosen(attempt);
    finish(asked, keep, setup)
}

/// Keeps what is to be kept.
fn finish(finished: FinishedRounds, keep: Keep, setup: &Setup<'_>) -> Result<Finished, Error> {
    let parameters = setup.parameters.clone();
    let (labelling, kept) = match keep {
        Keep::Labels => (finished.labelling, Kept::Labels),
        Keep::Model => {
            let (labelling, model) = finished.into_model()?;
            (labelling, Kept::Model(Box::new(model)))
        }
        Keep::Live => {
            let (labelling, parts) = finished.into_live();
            (labelling, Kept::Live(Box::new(parts)))
        }
    };
    Ok(Finished { labelling, kept, parameters })
}
