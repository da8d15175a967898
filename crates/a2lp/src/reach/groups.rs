//! Groups of unknown items that look alike: candidates for new classes.

use super::VOTES;
use crate::neighbours::NeighbourLists;

/// A group of fewer items is not listed.
const LEAST_ITEMS: usize = 3;

/// Unknown items that look alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownGroup {
    /// The items, the most central first: those that look most like others of the group.
    pub items: Vec<usize>,
}

/// Two unknown items belong to one group if each is among the other's nearest target items, or if others join them so. The
/// largest group comes first.
pub(super) fn find(
    lists: &NeighbourLists,
    first_target: usize,
    is_unknown: &dyn Fn(usize) -> bool,
) -> Vec<UnknownGroup> {
    let unknown: Vec<usize> = (0..lists.nodes() - first_target).filter(|&item| is_unknown(item)).collect();
    let near = |item: usize| {
        let nodes = lists.of(first_target + item).iter();
        let in_target = nodes.filter(|ranked| ranked.node() as usize >= first_target);
        in_target.take(VOTES).map(|ranked| (ranked.node() as usize - first_target, ranked.score()))
    };
    let near = &near;
    let linked = |item: usize| {
        near(item).filter(move |&(other, _)| is_unknown(other) && near(other).any(|(back, _)| back == item))
    };
    let mut waiting: std::collections::BTreeSet<usize> = unknown.into_iter().collect();
    let mut groups: Vec<UnknownGroup> = Vec::new();
    while let Some(first) = waiting.pop_first() {
        let mut items = vec![first];
        let mut seen = 0;
        while let Some(&item) = items.get(seen) {
            seen += 1;
            items.extend(linked(item).map(|(other, _)| other).filter(|other| waiting.remove(other)));
        }
        if items.len() >= LEAST_ITEMS {
            let centrality = |item: usize| linked(item).map(|(_, score)| f64::from(score)).sum::<f64>();
            let mut ranked: Vec<(f64, usize)> =
                items.into_iter().map(|item| (centrality(item), item)).collect();
            ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            groups.push(UnknownGroup { items: ranked.into_iter().map(|(_, item)| item).collect() });
        }
    }
    // Groups of one size stay in the order of their first items.
    groups.sort_by_key(|group| std::cmp::Reverse(group.items.len()));
    groups
}
