//! Views: ways to see the nodes, each with its own rows, graph and anchors. A²LP has one view, the consensus two or three.
//!
//! | view | rows | neighbours | anchors |
//! |---|---|---|---|
//! | [`raw`] | as given, of unit length under the cosine | the k nearest | of all rounds |
//! | [`centred`] | less the mean of their own domain | half from each domain | of all rounds |
//! | [`discriminant`] | projected so that classes are tight | the k nearest, new in some rounds | of the last round |

mod centred;
mod discriminant;
mod nodes;
mod raw;
mod searches;

pub(crate) use centred::{centre_domains, half_of_each};
pub(crate) use nodes::Nodes;

use crate::anchors::Anchor;
use crate::error::Error;
use crate::features::Domains;
use crate::graph::NeighbourGraph;
use crate::hypothesis::Hypothesis;
use crate::labels::ClassId;
use crate::neighbours::NeighbourLists;
use crate::parameters::Method;
use crate::pseudo_labels::PseudoLabels;
use crate::setup::Setup;
use crate::similarity::Similarity;
use discriminant::Discriminant;
use nodes::AnchorRule;
use searches::UnitSearches;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The name of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
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

/// One way to see the nodes.
pub(crate) trait View: Send {
    fn name(&self) -> ViewName;

    /// Its rows, labels and graph as they are now.
    fn nodes(&self) -> &Nodes;

    /// The first round in which it votes.
    fn votes_from(&self) -> usize {
        1
    }

    /// Learns from the labels of a round: anchors become labelled nodes (eq. 10). Returns the new anchors.
    fn learn(&mut self, lesson: &Lesson<'_>, run: &Setup<'_>) -> Result<Vec<Anchor>, Error>;

    /// A copy for another hypothesis. Rows are shared.
    fn fork(&self) -> Box<dyn View>;

    /// The nodes, to be kept after the run.
    fn into_nodes(self: Box<Self>) -> Nodes;
}

/// What the views learn from: the labels of a round, and the hypothesis that made them.
pub(crate) struct Lesson<'a> {
    pub(crate) labels: &'a PseudoLabels,
    /// The round that made them, from 1.
    pub(crate) round: usize,
    pub(crate) hypothesis: Option<&'a Hypothesis>,
    /// π: the class shares of the source.
    pub(crate) shares: &'a [f64],
}

impl Lesson<'_> {
    fn shrinks_anchors(&self) -> bool {
        self.hypothesis.is_some_and(|hypothesis| hypothesis.shrinkage > 0.0)
    }

    /// For every class, the sum of weights at which an anchor is drawn half-way to the source.
    fn half_way(&self) -> Vec<f64> {
        let shrinkage = self.hypothesis.map_or(0.0, |hypothesis| hypothesis.shrinkage);
        self.shares.iter().map(|share| shrinkage * self.labels.len() as f64 * share).collect()
    }

    /// Anchors of classes that are rarer in the target than in the source weigh less, if the hypothesis says so.
    fn set_masses(&self, anchors: &mut [Anchor]) {
        if !self.hypothesis.is_some_and(|hypothesis| hypothesis.scales_mass) {
            return;
        }
        let counts = self.labels.class_counts();
        for anchor in anchors {
            let class = anchor.class as usize;
            let share = counts[class] as f64 / self.labels.len().max(1) as f64;
            anchor.mass = (share / self.shares[class].max(1e-12)).min(1.0) as f32;
        }
    }
}

/// A view whose rows and graph stay the same but for the anchors.
#[derive(Clone)]
struct FixedView {
    name: ViewName,
    nodes: Nodes,
}

impl View for FixedView {
    fn name(&self) -> ViewName {
        self.name
    }

    fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    fn learn(&mut self, lesson: &Lesson<'_>, run: &Setup<'_>) -> Result<Vec<Anchor>, Error> {
        let lie_apart = self.name != ViewName::Centred;
        Ok(self.nodes.add_anchors(lesson, AnchorRule::from(run.parameters), lie_apart))
    }

    fn fork(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn into_nodes(mut self: Box<Self>) -> Nodes {
        self.nodes.drop_edges();
        self.nodes
    }
}

/// The view of a run without rounds.
pub(crate) fn plain_view(nodes: Nodes) -> Box<dyn View> {
    Box::new(FixedView { name: ViewName::Raw, nodes })
}

/// The views of a run, and what else was searched for.
pub(crate) struct Built {
    pub(crate) views: Vec<Box<dyn View>>,
    /// The neighbours that reach is measured on, if it is to be measured.
    pub(crate) reach_lists: Option<NeighbourLists>,
}

/// Builds the views of the method asked for, the first of them over a given graph if there is one.
pub(crate) fn build(
    domains: Domains,
    graph: Option<NeighbourGraph>,
    run: &Setup<'_>,
) -> Result<Built, Error> {
    if run.parameters.method != Method::Consensus {
        let (nodes, reach_lists) = raw::nodes_as_asked(domains, graph, run)?;
        return Ok(Built { views: vec![Box::new(FixedView { name: ViewName::Raw, nodes })], reach_lists });
    }
    let Domains { mut features, source_rows, source_labels, known } = domains;
    let mut labels: Vec<Option<ClassId>> = source_labels.ids().iter().copied().map(Some).collect();
    labels.resize(features.rows(), None);
    known.mark(&mut labels, source_rows);
    let classes = source_labels.classes().len();
    let k = run.neighbours(features.rows(), classes).unwrap_or(features.rows());

    features.normalise_rows();
    let centred = Arc::new(centre_domains(features.clone(), source_rows));
    let discriminant = (run.parameters.views > 2)
        .then(|| Discriminant::new(&centred, source_rows, &labels, k, run))
        .transpose()?;
    let UnitSearches { raw, centred: centred_lists, reach } =
        UnitSearches::find(&features, source_rows, k, Similarity::Dot3, true, run)?;
    let centred_lists = match centred_lists {
        Some(found) => found,
        None => run.search(&centred, half_of_each(k, source_rows), Similarity::Dot3)?,
    };
    let raw = raw::nodes_of_unit_rows(features, source_rows, &labels, k, run, raw);
    let centred = centred::nodes(centred, source_rows, labels, k, run.parameters.rounds, centred_lists);
    let mut views: Vec<Box<dyn View>> = vec![
        Box::new(FixedView { name: ViewName::Raw, nodes: raw }),
        Box::new(FixedView { name: ViewName::Centred, nodes: centred }),
    ];
    views.extend(discriminant.map(|view| Box::new(view) as Box<dyn View>));
    Ok(Built { views, reach_lists: reach })
}
