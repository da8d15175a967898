//! The source as a few nodes per class: centres of clusters instead of one centre (the authors' unreported variant).

use super::manifest::Domain;
use a2lp::FeatureMatrix;
use std::collections::BTreeMap;

/// Clusters looked for in each class.
const CLUSTERS: usize = 3;
const ITERATIONS: usize = 50;

/// Centres of the clusters of each class. Only clusters of more than max(3, ⌊rows of the class / 3⌋) rows are kept; a
/// class without any keeps its centre.
pub(super) fn centres(domain: &Domain) -> anyhow::Result<Domain> {
    let mut classes: BTreeMap<&str, Vec<Vec<f64>>> = BTreeMap::new();
    for (row, label) in domain.labels.iter().enumerate() {
        classes.entry(label).or_default().push(unit(domain.features.row(row).iter().map(|&v| f64::from(v))));
    }
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for (class, items) in classes {
        let least = (items.len() / CLUSTERS).max(3);
        let all: Vec<usize> = (0..items.len()).collect();
        let mut kept: Vec<Vec<f64>> = clusters(&items)
            .iter()
            .filter(|cluster| cluster.len() > least)
            .map(|c| mean(&items, c))
            .collect();
        if kept.is_empty() {
            kept.push(mean(&items, &all));
        }
        for centre in kept {
            rows.push(centre.iter().map(|&v| v as f32).collect::<Vec<f32>>());
            labels.push(class.to_string());
        }
    }
    Ok(Domain { features: FeatureMatrix::from_rows(&rows)?, labels })
}

/// Spherical k-means; starts from the item farthest from the mean, then the farthest from those chosen.
fn clusters(items: &[Vec<f64>]) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..items.len()).collect();
    let mut seen = vec![mean(items, &all)];
    let mut centres: Vec<Vec<f64>> = Vec::new();
    while centres.len() < CLUSTERS.min(items.len()) {
        let nearest =
            |item: &[f64]| seen.iter().map(|centre| dot(item, centre)).fold(f64::NEG_INFINITY, f64::max);
        let farthest = all.iter().min_by(|&&a, &&b| nearest(&items[a]).total_cmp(&nearest(&items[b])));
        let Some(&farthest) = farthest else { break };
        if centres.is_empty() {
            seen.clear();
        }
        centres.push(items[farthest].clone());
        seen.push(items[farthest].clone());
    }
    let mut members: Vec<Vec<usize>> = Vec::new();
    for _ in 0..ITERATIONS {
        let mut next = vec![Vec::new(); centres.len()];
        for (at, item) in items.iter().enumerate() {
            // The first of equally near ones.
            let near = |a: &usize, b: &usize| {
                dot(item, &centres[*a]).total_cmp(&dot(item, &centres[*b])).then(b.cmp(a))
            };
            if let Some(best) = (0..centres.len()).max_by(near) {
                next[best].push(at);
            }
        }
        if next == members {
            break;
        }
        for (centre, cluster) in centres.iter_mut().zip(&next).filter(|(_, cluster)| !cluster.is_empty()) {
            *centre = mean(items, cluster);
        }
        members = next;
    }
    members
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn unit(row: impl Iterator<Item = f64>) -> Vec<f64> {
    let row: Vec<f64> = row.collect();
    let length = dot(&row, &row).sqrt();
    row.iter().map(|v| if length > 0.0 { v / length } else { 0.0 }).collect()
}

fn mean(items: &[Vec<f64>], of: &[usize]) -> Vec<f64> {
    let columns = items.first().map_or(0, Vec::len);
    unit((0..columns).map(|column| of.iter().map(|&at| items[at][column]).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_clusters_are_kept_small_ones_are_not() {
        // Class a: 10 rows near one axis, 8 near another, 2 near a third. Class b: too few rows for any cluster.
        let near = |axis: usize, at: usize| -> [f32; 3] {
            std::array::from_fn(|d| if d == axis { 1.0 } else { 0.01 * ((at + d) % 4) as f32 })
        };
        let mut rows: Vec<[f32; 3]> = Vec::new();
        for (axis, count) in [(0, 10), (1, 8), (2, 2)] {
            rows.extend((0..count).map(|at| near(axis, at)));
        }
        rows.extend([near(0, 0), near(1, 0), near(2, 0)]);
        let labels = (0..23).map(|at| if at < 20 { "a" } else { "b" }.to_string()).collect();
        let domain = Domain { features: FeatureMatrix::from_rows(&rows).unwrap(), labels };
        let centres = centres(&domain).unwrap();
        assert_eq!(centres.labels, ["a", "a", "b"]);
        let mut largest: Vec<usize> = (0..2)
            .map(|row| {
                let row = centres.features.row(row);
                (0..3).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap()
            })
            .collect();
        largest.sort_unstable();
        assert_eq!(largest, [0, 1]);
    }
}
