//! Reach by its definition: dense matrices, their closed form, and plain loops.

use super::*;
use crate::linear_algebra::Lu;
use crate::parameters::Parameters;
use crate::{Domains, FeatureMatrix, Labels};
use rand::{RngExt, SeedableRng};

const CLASSES: usize = 3;

/// Rows about the axes, farther off with more noise. The classes of the source are the first axes; the target has one class more. `missing`: a class that the
/// target lacks.
fn domains(sources: usize, targets: usize, noise: f32, missing: Option<usize>) -> Domains {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let mut features = FeatureMatrix::default();
    let mut row = |axis: usize| {
        let value = |column| rng.random_range(-noise..noise) + if column == axis { 2.0 } else { 0.3 };
        features.append_row(&(0..8).map(value).collect::<Vec<_>>());
    };
    (0..sources).for_each(|at| row(at % CLASSES));
    (0..targets).for_each(|at| match at % (CLASSES + 1) {
        class if Some(class) == missing => row(CLASSES),
        class => row(class),
    });
    let labels: Vec<String> = (0..sources).map(|at| (at % CLASSES).to_string()).collect();
    Domains::stacked(features, sources, Labels::new(&labels)).unwrap()
}

fn measure(domains: &Domains) -> Reach {
    let parameters = Parameters::new().check().unwrap();
    let setup = Setup { parameters: &parameters, observer: &() };
    let lists = search(domains.features().clone(), domains.source_rows(), &setup).unwrap();
    Reach::measure(&lists, domains.source_labels().ids(), CLASSES, &|| Ok(())).unwrap()
}

type Rows = Vec<Vec<f64>>;

fn unit(rows: &mut Rows) {
    for row in rows {
        let length = row.iter().map(|v| v * v).sum::<f64>().sqrt();
        row.iter_mut().for_each(|v| *v /= length);
    }
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The nearest `k` of `others` to each of `rows`; with the same rows on both sides, none is its own neighbour.
fn nearest(rows: &Rows, others: &Rows, k: usize, same: bool) -> Vec<Vec<usize>> {
    let of = |(at, row): (usize, &Vec<f64>)| {
        let mut order: Vec<usize> = (0..others.len()).filter(|&other| !(same && other == at)).collect();
        order.sort_by(|&p, &q| cosine(row, &others[q]).total_cmp(&cosine(row, &others[p])));
        order.truncate(k);
        order
    };
    rows.iter().enumerate().map(of).collect()
}

/// (1 − α)(I − αD⁻¹A)⁻¹h
fn walk(rows: &Rows, h: &[f64], alpha: f64) -> Vec<f64> {
    let n = rows.len();
    let mut a = vec![0f64; n * n];
    for (i, near) in nearest(rows, rows, 10, true).into_iter().enumerate() {
        for j in near {
            let weight = cosine(&rows[i], &rows[j]).max(0.0);
            a[i * n + j] += weight;
            a[j * n + i] += weight;
        }
    }
    let degree = |i: usize| (0..n).map(|j| a[i * n + j]).sum::<f64>();
    let degrees: Vec<f64> = (0..n).map(degree).collect();
    let entry = |at: usize| {
        let (i, j) = (at / n, at % n);
        f64::from(u8::from(i == j)) - alpha * a[at] / degrees[i]
    };
    let solved = Lu::new((0..n * n).map(entry).collect(), n).unwrap().solve(h, 1);
    solved.into_iter().map(|value| (1.0 - alpha) * value).collect()
}

#[test]
fn reach_is_that_of_the_closed_form() {
    let domains = domains(45, 60, 1.2, None);
    let sources = domains.source_rows();
    let mut all: Rows = (0..domains.features().rows())
        .map(|row| domains.features().row(row).iter().map(|&v| f64::from(v)).collect())
        .collect();
    unit(&mut all);
    let mean = |rows: &[Vec<f64>], c: usize| rows.iter().map(|row| row[c]).sum::<f64>() / rows.len() as f64;
    let middle: Vec<f64> =
        (0..8).map(|c| 0.5 * (mean(&all[..sources], c) + mean(&all[sources..], c))).collect();
    all.iter_mut().for_each(|row| row.iter_mut().zip(&middle).for_each(|(v, m)| *v -= m));
    unit(&mut all);
    let target: Rows = all.split_off(sources);
    let source = all;

    let (from_source, from_target) =
        (nearest(&source, &target, 5, false), nearest(&target, &source, 5, false));
    let count = |votes: &[Vec<usize>], weights: &[f64], of: usize| {
        let mut sums = vec![0f64; of];
        votes.iter().zip(weights).for_each(|(votes, w)| votes.iter().for_each(|&to| sums[to] += w));
        sums
    };
    // The classes of the source are of one size.
    let (mut ws, mut wt) = (vec![1f64; source.len()], vec![1f64; target.len()]);
    let scaled = |h: Vec<f64>, weights: &[f64]| -> Vec<f64> {
        let factor = weights.iter().sum::<f64>() / h.iter().sum::<f64>();
        h.into_iter().map(|value| value * factor).collect()
    };
    let mut g = Vec::new();
    for _ in 0..3 {
        g = walk(&target, &scaled(count(&from_source, &ws, target.len()), &wt), 0.95);
        let gs = walk(&source, &scaled(count(&from_target, &wt, source.len()), &ws), 0.95);
        wt = g.iter().map(|g| g.min(1.0)).collect();
        ws = gs.iter().map(|g| g.min(1.0)).collect();
    }
    let reach = measure(&domains);
    for (ours, theirs) in reach.values.iter().zip(&g) {
        assert!((f64::from(*ours) - theirs).abs() < 1e-5 * theirs, "{ours} beside {theirs}");
    }

    // Source rows of class c, to the target and back.
    let there: Vec<Vec<f64>> = (0..CLASSES)
        .map(|class| {
            let of_class = |at: usize| if at % CLASSES == class { ws[at] } else { 0.0 };
            let weights: Vec<f64> = (0..source.len()).map(of_class).collect();
            walk(&target, &count(&from_source, &weights, target.len()), 0.95)
        })
        .collect();
    let back: Vec<Vec<f64>> = (0..CLASSES)
        .map(|class| {
            let share = |at: usize| there[class][at] / there.iter().map(|of| of[at]).sum::<f64>();
            let weights: Vec<f64> = (0..target.len()).map(|at| share(at) * wt[at]).collect();
            walk(&source, &count(&from_target, &weights, source.len()), 0.5)
        })
        .collect();
    let right = |at: usize| (0..CLASSES).all(|class| back[class][at] <= back[at % CLASSES][at]);
    let of_class = |class: usize| (0..source.len()).filter(move |at| at % CLASSES == class);
    let weight: Vec<f64> = (0..CLASSES).map(|class| of_class(class).map(|at| ws[at]).sum::<f64>()).collect();
    let returned: f64 = (0..CLASSES)
        .map(|class| weight[class] * of_class(class).filter(|&at| right(at)).count() as f64 / 15.0)
        .sum();
    assert!((reach.evidence.label_return - returned / weight.iter().sum::<f64>()).abs() < 1e-6);
}

#[test]
fn a_class_that_the_source_lacks_is_flagged_and_grouped() {
    let reach = measure(&domains(90, 120, 0.4, None));
    assert_eq!(reach.verdict, Verdict::New, "{:?}", reach.evidence);
    let is_new = |item: usize| item % (CLASSES + 1) == CLASSES;
    let wrong = (0..120).filter(|&item| reach.is_unknown(item) != is_new(item)).count();
    assert!(wrong <= 2, "{wrong} of 120");
    let grouped: usize = reach.groups.iter().map(|group| group.items.len()).sum();
    assert!(grouped >= 20 && reach.groups[0].items.iter().all(|&item| is_new(item)), "{:?}", reach.groups);
    assert!(reach.groups.is_sorted_by(|a, b| a.items.len() >= b.items.len()));
    assert!(reach.to_string().contains("probably of classes that the source lacks"), "{reach}");
}

#[test]
fn a_new_class_in_the_place_of_a_known_one_may_have_moved() {
    // Class 0 of the source has no counterpart, and neither has the new class of the target.
    let reach = measure(&domains(90, 120, 0.4, Some(0)));
    assert_eq!(reach.verdict, Verdict::Unmatched, "{:?}", reach.evidence);
    assert!(reach.unknown_items() > 40 && reach.evidence.source_below > 0.2, "{:?}", reach.evidence);
}

#[test]
fn ranking_alone_is_no_reason_for_a_slow_search() {
    let measures =
        |unknown, rows| Parameters::new().unknown(unknown).check().unwrap().measures_reach(rows, 128);
    assert!(measures(Unknown::Rank, 8_000) && !measures(Unknown::Rank, 1_000_000));
    assert!(measures(Unknown::Flag, 1_000_000) && !measures(Unknown::Off, 8_000));
}

#[test]
fn the_verdict_follows_from_the_evidence() {
    let sure = Evidence {
        items: 100,
        source_rows: 100,
        settled: true,
        spread: Some(0.3),
        label_return: 0.9,
        below: 0.2,
        source_below: 0.05,
    };
    assert_eq!(sure.verdict(), Verdict::New);
    assert_eq!(Evidence { source_below: 0.1, ..sure }.verdict(), Verdict::Unmatched);
    assert_eq!(Evidence { below: 0.0, ..sure }.verdict(), Verdict::None);
    assert_eq!(Evidence { spread: Some(0.81), ..sure }.verdict(), Verdict::CannotTell);
    assert_eq!(Evidence { spread: None, ..sure }.verdict(), Verdict::CannotTell);
    assert_eq!(Evidence { label_return: 0.74, ..sure }.verdict(), Verdict::CannotTell);
    assert_eq!(Evidence { settled: false, ..sure }.verdict(), Verdict::CannotTell);
    assert_eq!(Evidence { items: 19, ..sure }.verdict(), Verdict::CannotTell);
    assert_eq!(Evidence { source_rows: 19, ..sure }.verdict(), Verdict::CannotTell);
}
