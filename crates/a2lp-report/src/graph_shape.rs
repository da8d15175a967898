//! The shape of a graph: how nodes are connected, and a picture of the affinity matrix.

use crate::trace::{AffinityPicture, GraphShape};
use a2lp::{ClassId, FinishedRound};
use std::collections::BTreeMap;

/// Pixels of the affinity picture: across, down for source nodes, down for anchors.
const PICTURE: (usize, usize, usize) = (160, 120, 40);

/// Components, reach and degrees of the graph.
pub(crate) fn graph_shape(round: &FinishedRound<'_>) -> GraphShape {
    let nodes = round.affinity.nodes();
    let mut parent: Vec<u32> = (0..nodes as u32).collect();
    let mut row = Vec::new();
    let mut degrees = Vec::with_capacity(nodes);
    let mut touching = 0;
    for node in 0..nodes {
        round.affinity.neighbours(node, &mut row);
        degrees.push(row.len());
        for &other in &row {
            let (a, b) = (root(&mut parent, node as u32), root(&mut parent, other));
            // The lower root stays, so that the outcome does not depend on the order.
            parent[a.max(b) as usize] = a.min(b);
        }
        if round.node_labels[node].is_none() {
            touching += usize::from(row.iter().any(|&other| round.node_labels[other as usize].is_some()));
        }
    }
    let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
    (0..nodes as u32).for_each(|node| *sizes.entry(root(&mut parent, node)).or_default() += 1);
    let edges = degrees.iter().sum::<usize>() / 2;
    degrees.sort_unstable();
    let targets = round.pseudo_labels.len();
    GraphShape {
        nodes,
        edges,
        components: sizes.len(),
        largest: sizes.values().copied().max().unwrap_or(0),
        reached_targets: targets - round.round.unreached,
        targets,
        touching,
        median_degree: degrees.get(nodes / 2).copied().unwrap_or(0),
        largest_degree: degrees.last().copied().unwrap_or(0),
        degrees: degree_bins(&degrees),
    }
}

fn root(parent: &mut [u32], mut node: u32) -> u32 {
    while parent[node as usize] != node {
        let above = parent[parent[node as usize] as usize];
        parent[node as usize] = above;
        node = above;
    }
    node
}

/// At most 30 bins, each wider than the one before by a fixed factor once that is more than a whole number.
fn degree_bins(sorted: &[usize]) -> Vec<(usize, usize, usize)> {
    let (Some(&first), Some(&last)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    let factor = ((last + 1) as f64 / (first + 1) as f64).powf(1.0 / 30.0).max(1.0);
    let mut bins = Vec::new();
    let (mut from, mut seen) = (first, 0);
    while from <= last {
        let to = (((from + 1) as f64 * factor).ceil() as usize).max(from + 2) - 2;
        let upto = sorted.partition_point(|&degree| degree <= to);
        bins.push((from, to, upto - seen));
        (from, seen) = (to + 1, upto);
    }
    bins
}

/// The labelled × unlabelled block of A, sorted by class on both sides.
pub(crate) fn affinity_picture(round: &FinishedRound<'_>, truth: Option<&[ClassId]>) -> AffinityPicture {
    let labels = round.node_labels;
    let targets = round.pseudo_labels.len();
    let predicted = round.pseudo_labels.labels();
    let first_anchor = round.first_target + targets;
    let class_of = |item: usize| match truth {
        Some(truth) => Some(truth[item]),
        None => predicted[item],
    };
    let mut columns: Vec<usize> = (0..targets).collect();
    columns.sort_by_key(|&item| class_of(item).unwrap_or(ClassId::MAX));
    let (width, source_height, anchor_height) = (
        PICTURE.0.min(targets),
        PICTURE.1.min(round.first_target),
        PICTURE.2.min(labels.len() - first_anchor),
    );
    let mut pixel_of = vec![0u32; targets];
    for (at, &item) in columns.iter().enumerate() {
        pixel_of[item] = (at * width / targets) as u32;
    }
    let mut sums = vec![0f64; width * (source_height + anchor_height)];
    let mut entries = Vec::new();
    let mut top = 0;
    for (nodes, height) in
        [(0..round.first_target, source_height), (first_anchor..labels.len(), anchor_height)]
    {
        let count = nodes.len();
        let mut rows: Vec<usize> = nodes.collect();
        rows.sort_by_key(|&node| labels[node]);
        for (at, &node) in rows.iter().enumerate() {
            let line = (top + at * height / count) * width;
            round.affinity.row(node, &mut entries);
            for &(other, weight) in &entries {
                let item = (other as usize).checked_sub(round.first_target).filter(|&item| item < targets);
                if let Some(item) = item {
                    sums[line + pixel_of[item] as usize] += f64::from(weight);
                }
            }
        }
        top += height;
    }
    // Anchors have so many more edges that sources would be invisible beside them.
    let (of_sources, of_anchors) = sums.split_at(width * source_height);
    let shades = [of_sources, of_anchors].into_iter().flat_map(|sums| {
        let most = sums.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        sums.iter().map(move |sum| (255.0 * (sum / most).sqrt()).round() as u8)
    });
    AffinityPicture {
        round: round.round.round,
        width,
        source_height,
        anchor_height,
        by_truth: truth.is_some(),
        pixels: shades.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degree_bins_cover_every_degree_once() {
        let degrees: Vec<usize> = (20..5000).collect();
        let bins = degree_bins(&degrees);
        assert!(bins.len() <= 32, "{}", bins.len());
        assert_eq!(bins.iter().map(|bin| bin.2).sum::<usize>(), degrees.len());
        assert!(bins.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
        assert_eq!(degree_bins(&[3, 3, 3]), [(3, 3, 3)]);
    }
}
