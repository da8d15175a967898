//! Domains without some of their classes, or with other class shares; the same for the same seed.

use super::manifest::Domain;
use super::sample::mix;
use std::collections::{BTreeMap, BTreeSet};

/// The classes of a domain.
pub(super) fn classes(domain: &Domain) -> BTreeSet<String> {
    domain.labels.iter().cloned().collect()
}

/// About this share of the classes, at least one.
pub(super) fn draw_classes(classes: &BTreeSet<String>, share: f64, seed: u64) -> BTreeSet<String> {
    let count = ((classes.len() as f64 * share).round() as usize).max(1);
    let mut order: Vec<(u64, &String)> = (0..).map(|at| mix(seed, at)).zip(classes).collect();
    order.sort_unstable();
    order.into_iter().take(count).map(|(_, class)| class.clone()).collect()
}

/// The items of these classes.
pub(super) fn with_classes(domain: &Domain, classes: &BTreeSet<String>) -> anyhow::Result<Domain> {
    let rows: Vec<usize> =
        (0..domain.labels.len()).filter(|&row| classes.contains(&domain.labels[row])).collect();
    domain.rows(&rows)
}

/// Half of the items, drawn without replacement so that the classes have random shares: Dirichlet(1) over the classes.
pub(super) fn shifted(domain: &Domain, seed: u64) -> anyhow::Result<Domain> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    domain.labels.iter().for_each(|label| *counts.entry(label).or_default() += 1);
    // Exponential numbers in proportion are a draw of Dirichlet(1).
    let weights: BTreeMap<&str, f64> = counts
        .iter()
        .zip(0..)
        .map(|((&class, &count), at)| (class, exponential(seed, at) / count as f64))
        .collect();
    // The rows whose exponential waiting times, at the rates of their weights, end first.
    let mut order: Vec<(f64, usize)> = domain
        .labels
        .iter()
        .enumerate()
        .map(|(row, label)| (exponential(seed.wrapping_add(1), row as u64) / weights[label.as_str()], row))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut rows: Vec<usize> = order.into_iter().take(domain.labels.len() / 2).map(|(_, row)| row).collect();
    rows.sort_unstable();
    domain.rows(&rows)
}

/// An exponentially distributed number with mean 1.
fn exponential(seed: u64, value: u64) -> f64 {
    // Above 0 and at most 1.
    let uniform = ((mix(seed, value) >> 11) + 1) as f64 / (1u64 << 53) as f64;
    -uniform.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2lp::FeatureMatrix;

    fn domain() -> Domain {
        let labels: Vec<String> = (0..1000).map(|row| format!("c{}", row % 10)).collect();
        Domain { features: FeatureMatrix::new(1000, 1, vec![0.0; 1000]).unwrap(), labels }
    }

    #[test]
    fn classes_are_drawn_by_the_seed() {
        let all = classes(&domain());
        let half = draw_classes(&all, 0.5, 3);
        assert_eq!((half.len(), draw_classes(&all, 0.3, 3).len()), (5, 3));
        assert_eq!(half, draw_classes(&all, 0.5, 3));
        assert!((4..20).any(|seed| draw_classes(&all, 0.5, seed) != half));
        assert_eq!(draw_classes(&BTreeSet::from(["only".to_string()]), 0.3, 0).len(), 1);
        assert_eq!(with_classes(&domain(), &half).unwrap().labels.len(), 500);
    }

    /// The share of a class in a draw of Dirichlet(1) over ten classes has mean 0.1 and deviation 0.09; without replacement no class
    /// can have more than a fifth of the half.
    #[test]
    fn shifted_shares_differ_as_dirichlet_does() {
        let counts = |domain: &Domain| {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            domain.labels.iter().for_each(|label| *counts.entry(label.clone()).or_default() += 1);
            counts
        };
        let (mut smallest, mut largest) = (0.0, 0.0);
        for seed in 0..40 {
            let drawn = shifted(&domain(), seed).unwrap();
            assert_eq!(drawn.labels.len(), 500);
            let counts = counts(&drawn);
            smallest += counts.values().copied().min().unwrap() as f64 / 500.0 / 40.0;
            largest += counts.values().copied().max().unwrap() as f64 / 500.0 / 40.0;
        }
        assert!(smallest < 0.03 && largest > 0.17, "{smallest} {largest}");
        assert_eq!(shifted(&domain(), 5).unwrap().labels, shifted(&domain(), 5).unwrap().labels);
    }
}
