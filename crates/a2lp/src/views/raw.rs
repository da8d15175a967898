//! The features as given: the one view of A²LP, and the first of the consensus.

use super::nodes::{Graph, Nodes, Scaling};
use super::searches::UnitSearches;
use crate::error::Error;
use crate::features::{Domains, FeatureMatrix, class_centres};
use crate::graph::NeighbourGraph;
use crate::labels::ClassId;
use crate::neighbours::{GraphReport, NeighbourLists, Wanted};
use crate::parameters::{AnchorMode, SourceNodes};
use crate::reach;
use crate::setup::Setup;
use crate::similarity::Similarity;

/// Nodes with the similarity, the source nodes and the graph asked for, and the neighbours that reach is measured on.
pub(super) fn nodes_as_asked(
    domains: Domains,
    graph: Option<NeighbourGraph>,
    run: &Setup<'_>,
) -> Result<(Nodes, Option<NeighbourLists>), Error> {
    let similarity = run.parameters.similarity;
    let serves_reach = graph.is_none() && run.parameters.searches_unit_rows();
    let (rows, columns) = (domains.features.rows(), domains.features.columns());
    let mut reach_lists = match run.parameters.measures_reach(rows, columns) && !serves_reach {
        true => Some(reach::search(domains.features.clone(), domains.source_rows, run)?),
        false => None,
    };
    let Domains { mut features, source_rows, source_labels, known } = domains;
    let classes = source_labels.classes().len();
    let mut labels: Vec<Option<ClassId>> = source_labels.ids().iter().copied().map(Some).collect();
    let mut first_target = source_rows;
    if run.parameters.source_nodes == SourceNodes::Centres {
        let (centres, of) = class_centres(&features, source_labels.ids(), classes);
        first_target = centres.rows();
        features.replace_head(source_rows, &centres);
        labels = of.into_iter().map(Some).collect();
    }
    labels.resize(features.rows(), None);
    known.mark(&mut labels, first_target);
    let scaling = match similarity.scales_rows() {
        true => Scaling::Unit { norms: Some(features.normalise_rows()) },
        false => Scaling::AsGiven,
    };
    let mut report = None;
    let graph = match run.neighbours(features.rows(), classes) {
        None => Graph::Full,
        Some(k) => {
            let lists = match graph {
                Some(graph) => graph.into_lists(features.rows(), similarity)?,
                None => {
                    let (lists, found) = if serves_reach {
                        let found = UnitSearches::find(&features, first_target, k, similarity, false, run)?;
                        reach_lists = found.reach;
                        found.raw
                    } else {
                        run.search(&features, Wanted::Nearest(k), similarity)?
                    };
                    report = Some(found);
                    lists
                }
            };
            // The guard propagates over the lists without anchors.
            let replaces = run.parameters.anchor_mode == AnchorMode::Replace || run.parameters.guard;
            let replaces = replaces && run.parameters.rounds > 1;
            Graph::nearest(k, lists, run.parameters.rounds, replaces)
        }
    };
    Ok((Nodes::new(features, first_target, labels, similarity, scaling, graph, report), reach_lists))
}

/// For the consensus: rows of unit length, edges that weigh the cube of the cosine.
pub(super) fn nodes_of_unit_rows(
    features: FeatureMatrix,
    first_target: usize,
    labels: &[Option<ClassId>],
    k: usize,
    run: &Setup<'_>,
    (lists, report): (NeighbourLists, GraphReport),
) -> Nodes {
    let graph = Graph::nearest(k, lists, run.parameters.rounds, run.parameters.guard);
    let scaling = Scaling::Unit { norms: None };
    let labels = labels.to_vec();
    Nodes::new(features, first_target, labels, Similarity::Dot3, scaling, graph, Some(report))
}
