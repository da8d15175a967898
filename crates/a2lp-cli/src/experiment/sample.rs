//! Samples of rows: a number of each class, the same for the same seed.

use super::Study;
use super::manifest::Domain;
use anyhow::bail;
use std::collections::BTreeMap;

/// Source and target of a pair, whole or with `--per-class` rows of each class.
pub(super) fn pair(
    study: &Study<'_>,
    source: &str,
    target: &str,
    seed: u64,
) -> anyhow::Result<(Domain, Domain)> {
    let (source_data, target_data) = (study.manifest.load(source)?, study.manifest.load(target)?);
    match study.args.per_class {
        None => Ok((source_data, target_data)),
        Some(count) => {
            let (drawn, _) = draw(&source_data, count, seed, source);
            let (other, _) = draw(&target_data, count, seed, target);
            Ok((source_data.rows(&drawn)?, target_data.rows(&other)?))
        }
    }
}

/// A domain cut into labelled and unlabelled rows: `--per-class` of each, else one half of each class.
pub(super) fn split(study: &Study<'_>, name: &str, seed: u64) -> anyhow::Result<(Domain, Domain)> {
    let data = study.manifest.load(name)?;
    let (labelled, rest) = match study.args.per_class {
        Some(count) => draw(&data, count, seed, name),
        None => halves(&data, seed),
    };
    let rest = match study.args.per_class {
        None => rest,
        Some(count) => {
            let others = data.rows(&rest)?;
            draw(&others, count, seed, name).0.into_iter().map(|at| rest[at]).collect()
        }
    };
    if labelled.is_empty() || rest.is_empty() {
        bail!("domain '{name}' has too few rows to be split into labelled and unlabelled ones");
    }
    Ok((data.rows(&labelled)?, data.rows(&rest)?))
}

/// Rows of each class, in an order that the seed decides.
fn shuffled(data: &Domain, seed: u64) -> BTreeMap<&str, Vec<usize>> {
    let mut classes: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (row, label) in data.labels.iter().enumerate() {
        classes.entry(label).or_default().push(row);
    }
    for rows in classes.values_mut() {
        rows.sort_by_key(|&row| mix(seed, row as u64));
    }
    classes
}

/// Up to `count` rows of each class, and all others; both ascending. Tells which classes have fewer.
fn draw(data: &Domain, count: usize, seed: u64, name: &str) -> (Vec<usize>, Vec<usize>) {
    let (mut drawn, mut rest, mut short) = (Vec::new(), Vec::new(), Vec::new());
    for (class, rows) in shuffled(data, seed) {
        if rows.len() < count {
            short.push(format!("{class} ({})", rows.len()));
        }
        drawn.extend(rows.iter().take(count));
        rest.extend(rows.iter().skip(count));
    }
    if !short.is_empty() {
        eprintln!("note: {name} has fewer than {count} rows of {}; all of them are taken", short.join(", "));
    }
    drawn.sort_unstable();
    rest.sort_unstable();
    (drawn, rest)
}

/// Half of the rows of each class, and the other half.
fn halves(data: &Domain, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for rows in shuffled(data, seed).values() {
        let (a, b) = rows.split_at(rows.len().div_ceil(2));
        first.extend_from_slice(a);
        second.extend_from_slice(b);
    }
    first.sort_unstable();
    second.sort_unstable();
    (first, second)
}

/// A number that looks random and depends on nothing but its arguments (SplitMix64).
pub(super) fn mix(seed: u64, value: u64) -> u64 {
    let mut z =
        seed.wrapping_mul(0xD6E8_FEB8_6659_FD93).wrapping_add(value).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2lp::FeatureMatrix;

    #[test]
    fn draws_are_balanced_disjoint_and_repeatable() {
        let labels: Vec<String> = (0..50).map(|row| if row < 40 { "a" } else { "b" }.into()).collect();
        let data = Domain { features: FeatureMatrix::new(50, 1, vec![0.0; 50]).unwrap(), labels };
        let (drawn, rest) = draw(&data, 15, 3, "test");
        assert_eq!((drawn.len(), rest.len()), (25, 25));
        assert_eq!(drawn.iter().filter(|&&row| row < 40).count(), 15);
        let mut all = [drawn.clone(), rest].concat();
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
        assert_eq!(draw(&data, 15, 3, "test").0, drawn);
        assert_ne!(draw(&data, 15, 4, "test").0, drawn);
        let (first, second) = halves(&data, 0);
        assert_eq!((first.len(), second.len()), (25, 25));
    }
}
