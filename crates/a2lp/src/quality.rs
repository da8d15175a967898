//! How good labels look without knowing the truth: do they lead back to the source, and do neighbours agree?
//!
//! Ranks runs on the same features well. It is no estimate of the accuracy, and settings tuned by it get worse.

use crate::affinity::symmetrise;
use crate::error::{Domain, Error};
use crate::features::{Domains, FeatureMatrix};
use crate::hypothesis::coherence;
use crate::labels::ClassId;
use crate::neighbours::NeighbourLists;
use crate::observer::{Observer, Stage, report_progress};
use crate::parameters::{LabelWeight, Parameters};
use crate::propagation::{GoOn, LabelMatrix, SoftLabels, propagate};
use crate::pseudo_labels::PseudoLabels;
use crate::setup::Setup;
use crate::similarity::Similarity;
use crate::views::{centre_domains, half_of_each};
use serde::{Deserialize, Serialize};

/// Neighbours in the graph that quality is measured on, whatever the run used: scores are to be comparable.
const NEIGHBOURS: usize = 20;

/// Scores below this are remarked on.
pub(crate) const LOW: f64 = 0.65;

/// What labels look like from within.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// (reverse + coherence) / 2.
    pub score: f64,
    /// Share of the source that gets its own label back from the target's labels: mean over the classes, where classes that are
    /// rarer in the target than in the source count for less.
    pub reverse: f64,
    /// How much more often target neighbours have equal labels than chance would have it: 0 = chance, 1 = always.
    pub coherence: f64,
}

/// The neighbours that quality is measured on: centred features, half of them from either domain. Takes unit rows.
pub(crate) fn quality_graph(
    unit: FeatureMatrix,
    first_target: usize,
    setup: &Setup<'_>,
) -> Result<NeighbourLists, Error> {
    let centred = centre_domains(unit, first_target);
    let k = NEIGHBOURS.min(centred.rows());
    Ok(setup.search(&centred, half_of_each(k, first_target), Similarity::Cosine)?.0)
}

impl Quality {
    /// Scores labels of a target that were made by any means, over the features of these domains.
    pub fn of_each(
        domains: &Domains,
        labels: &[&PseudoLabels],
        observer: &dyn Observer,
    ) -> Result<Vec<Self>, Error> {
        let mut unit = domains.features().clone();
        unit.normalise_rows();
        let parameters = Parameters::new().check()?;
        let lists = quality_graph(unit, domains.source_rows(), &Setup { parameters: &parameters, observer })?;
        let source = domains.source_labels();
        let go_on = || report_progress(observer, Stage::Rounds, 0, 1);
        let score = |labels: &&PseudoLabels| {
            if labels.len() != domains.target_rows() {
                let rows = domains.target_rows();
                return Err(Error::LabelCount { domain: Domain::Target, labels: labels.len(), rows });
            }
            Quality::measure(&lists, source.ids(), source.classes().len(), labels, &go_on)
        };
        labels.iter().map(score).collect()
    }

    /// Measures the labels of a target over neighbours of both domains.
    pub(crate) fn measure(
        lists: &NeighbourLists,
        source: &[ClassId],
        classes: usize,
        target: &PseudoLabels,
        go_on: GoOn<'_>,
    ) -> Result<Self, Error> {
        let reverse = reverse(lists, source, classes, target, go_on)?;
        let coherence = coherence(lists, source.len(), target).unwrap_or(0.0);
        Ok(Quality { score: (reverse + coherence) / 2.0, reverse, coherence })
    }
}

/// Propagates the target's labels back to the source, which forgets its own.
fn reverse(
    lists: &NeighbourLists,
    source: &[ClassId],
    classes: usize,
    target: &PseudoLabels,
    go_on: GoOn<'_>,
) -> Result<f64, Error> {
    let mut labels: Vec<Option<ClassId>> = vec![None; source.len()];
    labels.extend_from_slice(target.labels());
    let affinity = symmetrise(lists, Similarity::Cosine)?;
    let reached = affinity.reached(&labels);
    let parameters = Parameters::new().check()?;
    let mut soft = SoftLabels::new(classes);
    let matrix = LabelMatrix::new(&labels, classes, LabelWeight::None);
    propagate(&affinity, &matrix, &reached, &parameters, go_on, &mut soft)?;
    let back = PseudoLabels::read(&soft, 0..source.len(), &reached, &vec![true; classes]);
    let (mut right, mut all) = (vec![0usize; classes], vec![0usize; classes]);
    for (&truth, back) in source.iter().zip(back.labels()) {
        all[truth as usize] += 1;
        right[truth as usize] += usize::from(*back == Some(truth));
    }
    // A class that the target lacks cannot come back, and says nothing about the labels; a rare one says little.
    let counts = target.class_counts();
    let items = counts.iter().sum::<usize>().max(1) as f64;
    let weight = |class: usize| {
        let expected = all[class] as f64 / source.len().max(1) as f64 * items;
        if expected > 0.0 { (counts[class] as f64 / expected).min(1.0) } else { 0.0 }
    };
    let share = |class: usize| right[class] as f64 / all[class].max(1) as f64;
    let total: f64 = (0..classes).map(weight).sum();
    let sum: f64 = (0..classes).map(|class| weight(class) * share(class)).sum();
    Ok(if total > 0.0 { sum / total } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_algebra::Lu;
    use rand::{RngExt, SeedableRng};

    /// Both parts by their definitions: a dense matrix, its closed form, and a double loop.
    #[test]
    fn quality_is_that_of_the_closed_form() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(5);
        let (sources, targets, columns, classes) = (30, 40, 6, 3usize);
        let mut unit = FeatureMatrix::default();
        for row in 0..sources + targets {
            let value =
                |column| rng.random_range(-1.0f32..1.0) + if column == row % classes { 1.5 } else { 0.0 };
            unit.append_row(&(0..columns).map(value).collect::<Vec<_>>());
        }
        unit.normalise_rows();
        let source: Vec<ClassId> = (0..sources).map(|row| (row % classes) as ClassId).collect();
        // One target in five has a wrong label.
        let guess = |row: usize| (row + sources + usize::from(row.is_multiple_of(5))) % classes;
        let probabilities =
            (0..targets).flat_map(|row| (0..classes).map(move |c| if c == guess(row) { 1.0 } else { 0.0 }));
        let target = PseudoLabels::from_probabilities(classes, probabilities.collect());

        let parameters = Parameters::new().check().unwrap();
        let lists =
            quality_graph(unit.clone(), sources, &Setup { parameters: &parameters, observer: &() }).unwrap();
        let quality = Quality::measure(&lists, &source, classes, &target, &|| Ok(())).unwrap();

        let n = sources + targets;
        let mut x: Vec<Vec<f64>> =
            (0..n).map(|r| unit.row(r).iter().map(|&v| f64::from(v)).collect()).collect();
        for domain in [0..sources, sources..n] {
            let mean: Vec<f64> = (0..columns)
                .map(|c| x[domain.clone()].iter().map(|row| row[c]).sum::<f64>() / domain.len() as f64)
                .collect();
            for row in &mut x[domain] {
                row.iter_mut().zip(&mean).for_each(|(v, m)| *v -= m);
                let length = row.iter().map(|v| v * v).sum::<f64>().sqrt();
                row.iter_mut().for_each(|v| *v /= length);
            }
        }
        let cosine = |i: usize, j: usize| x[i].iter().zip(&x[j]).map(|(a, b)| a * b).sum::<f64>();
        let mut a = vec![0f64; n * n];
        let (mut equal, mut all) = (0.0, 0.0);
        for i in 0..n {
            for pool in [0..sources, sources..n] {
                let mut near: Vec<usize> = pool.filter(|&j| j != i && cosine(i, j) > 0.0).collect();
                near.sort_by(|&p, &q| cosine(i, q).total_cmp(&cosine(i, p)));
                for &j in near.iter().take(10) {
                    a[i * n + j] = cosine(i, j);
                    if i >= sources && j >= sources {
                        all += 1.0;
                        equal += f64::from(u8::from(guess(i - sources) == guess(j - sources)));
                    }
                }
            }
        }
        let both = |i: usize, j: usize| a[i * n + j] + a[j * n + i];
        let degree: Vec<f64> = (0..n).map(|i| (0..n).map(|j| both(i, j)).sum()).collect();
        let entry = |at: usize| {
            let (i, j) = (at / n, at % n);
            f64::from(u8::from(i == j)) - 0.5 * both(i, j) / (degree[i] * degree[j]).sqrt()
        };
        let y = (0..n * classes)
            .map(|at| (at / classes, at % classes))
            .map(|(i, c)| f64::from(u8::from(i >= sources && guess(i.max(sources) - sources) == c)));
        let system = Lu::new((0..n * n).map(entry).collect(), n).unwrap();
        let f = system.solve(&y.collect::<Vec<_>>(), classes);
        let right = |row: usize| {
            let best =
                (0..classes).max_by(|&p, &q| f[row * classes + p].total_cmp(&f[row * classes + q])).unwrap();
            best == row % classes
        };
        // Ten source rows of each class, and so a third of the target expected of each.
        let back =
            |c: usize| (0..sources).filter(|&row| row % classes == c && right(row)).count() as f64 / 10.0;
        let items = |c: usize| (0..targets).filter(|&row| guess(row) == c).count() as f64;
        let weight = |c: usize| (items(c) / (targets as f64 / 3.0)).min(1.0);
        let reverse =
            (0..classes).map(|c| weight(c) * back(c)).sum::<f64>() / (0..classes).map(weight).sum::<f64>();
        let chance: f64 = (0..classes).map(|c| (items(c) / targets as f64).powi(2)).sum();
        let coherence = (equal / all - chance) / (1.0 - chance);
        assert!((quality.reverse - reverse).abs() < 1e-9, "{} {reverse}", quality.reverse);
        assert!((quality.coherence - coherence).abs() < 1e-9, "{} {coherence}", quality.coherence);
        assert!((0.3..1.0).contains(&quality.score), "{}", quality.score);
    }
}
