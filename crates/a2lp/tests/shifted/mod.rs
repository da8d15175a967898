//! Small problems with a domain shift, for tests.

use a2lp::{Domains, FeatureMatrix, Labels};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Rows of two domains: `classes` clusters, the target's moved by the same step.
pub(crate) struct Shifted {
    pub(crate) source: Vec<Vec<f32>>,
    pub(crate) source_labels: Vec<String>,
    pub(crate) target: Vec<Vec<f32>>,
    pub(crate) truth: Vec<String>,
}

impl Shifted {
    pub(crate) fn new(classes: usize, per_class: usize, columns: usize, signed: bool, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let low = if signed { -1.0f32 } else { 0.0 };
        let mut draw =
            |scale: f32| -> Vec<f32> { (0..columns).map(|_| scale * rng.random_range(low..1.0)).collect() };
        let centres: Vec<Vec<f32>> = (0..classes).map(|_| draw(1.0)).collect();
        let step = draw(0.3);
        let mut make = |shift: f32| {
            let mut rows = Vec::new();
            let mut labels = Vec::new();
            for item in 0..classes * per_class {
                let class = item % classes;
                let noise = draw(0.5);
                rows.push((0..columns).map(|c| centres[class][c] + shift * step[c] + noise[c]).collect());
                labels.push(format!("class {class}"));
            }
            (rows, labels)
        };
        let (source, source_labels) = make(0.0);
        let (target, truth) = make(1.0);
        Shifted { source, source_labels, target, truth }
    }

    pub(crate) fn domains(&self) -> Domains {
        Domains::new(
            FeatureMatrix::from_rows(&self.source).unwrap(),
            Labels::new(&self.source_labels),
            FeatureMatrix::from_rows(&self.target).unwrap(),
        )
        .unwrap()
    }
}
