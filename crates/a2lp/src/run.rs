//! Starting a run: the domains, the parameters, and optionally a graph and an observer.

use crate::error::{Domain, Error};
use crate::features::Domains;
use crate::graph::NeighbourGraph;
use crate::labelling::{Guard, Labelling};
use crate::labels::ClassId;
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
        self.run(false).map(|(labelling, _)| labelling)
    }

    /// Labels the target, and keeps what is needed to label points that come later.
    pub fn fit(self) -> Result<(Labelling, Model), Error> {
        let (labelling, model) = self.run(true)?;
        Ok((labelling, model.expect("a run that keeps its model has one")))
    }

    fn run(self, keeps_model: bool) -> Result<(Labelling, Option<Model>), Error> {
        self.check()?;
        let Run { domains, parameters, graph, observer, assumed } = self;
        let (parameters, chosen) = parameters.resolve(Shape::of(&domains), graph.is_some());
        parameters.pool()?.install(|| {
            let setup = Setup { parameters: &parameters, observer };
            let (mut labelling, model) = guarded(domains, graph, assumed, &setup, keeps_model)?;
            labelling.method = chosen;
            if let (Some(reach), Unknown::Flag) = (&labelling.reach, parameters.unknown) {
                let unknown: Vec<bool> = (0..reach.values.len()).map(|item| reach.is_unknown(item)).collect();
                labelling.nearest_labels = Some(labelling.pseudo_labels.mark_unknown(&unknown));
            }
            Ok((labelling, model))
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

/// The attempt with the method asked for and, with the guard, plain label propagation to compare it with.
fn guarded(
    domains: Domains,
    graph: Option<NeighbourGraph>,
    assumed: Option<&[Option<ClassId>]>,
    setup: &Setup<'_>,
    keeps_model: bool,
) -> Result<(Labelling, Option<Model>), Error> {
    let Setup { parameters, observer } = *setup;
    let guarded = parameters.guard && parameters.method != Method::Lp;
    let spare = guarded.then(|| (domains.clone(), graph.clone()));
    let asked = run_rounds(domains, graph, assumed, setup, Attempt::Asked)?;
    let attempt = asked.attempt;
    let (mut asked, model) = finish(asked, keeps_model, setup)?;
    // Without a quality score there is nothing to compare.
    let (Some((domains, graph)), Some(quality)) = (spare, asked.quality) else {
        observer.chosen(attempt);
        return Ok((asked, model));
    };
    let plain = parameters.plain_propagation();
    let setup = Setup { parameters: &plain, observer };
    let lp = run_rounds(domains, graph, None, &setup, Attempt::PlainPropagation)?;
    let (mut lp, lp_model) = finish(lp, keeps_model, &setup)?;
    let lp_score = lp.quality.map_or(0.0, |quality| quality.score);
    let guard = Guard::judge(parameters.method, quality.score, lp_score);
    if guard.fell_back {
        observer.chosen(Attempt::PlainPropagation);
        (lp.reach, lp.reach_secs) = (asked.reach, asked.reach_secs);
        lp.guard = Some(guard);
        Ok((lp, lp_model))
    } else {
        observer.chosen(attempt);
        asked.guard = Some(guard);
        Ok((asked, model))
    }
}

/// Measures the quality of the labels, if it was asked for, and keeps the model.
fn finish(
    mut finished: FinishedRounds,
    keeps_model: bool,
    setup: &Setup<'_>,
) -> Result<(Labelling, Option<Model>), Error> {
    finished.measure_quality(keeps_model, setup)?;
    if !keeps_model {
        return Ok((finished.labelling, None));
    }
    let (labelling, model) = finished.into_model()?;
    Ok((labelling, Some(model)))
}
