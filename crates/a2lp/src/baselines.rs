//! What one would do without a graph: the answers to beat.

use crate::features::{Domains, FeatureMatrix, ROWS_PER_TASK, class_centres};
use crate::kernels::{PackedRows, ScoreTile};
use crate::labels::ClassId;
use crate::neighbours::{BestOf, Ranked, look_at_all};
use crate::similarity::Similarity;

use rayon::prelude::*;

/// The label of the most similar source row by cosine; `None` for a row similar to none.
pub fn nearest_neighbour(domains: &Domains) -> Vec<Option<ClassId>> {
    let mut features = domains.features().clone();
    features.normalise_rows();
    nearest(&features, domains.source_rows(), domains.source_labels().ids())
}

/// The class whose mean source row is most similar by cosine; `None` for a row similar to none.
pub fn nearest_centre(domains: &Domains) -> Vec<Option<ClassId>> {
    let mut features = domains.features().clone();
    let labels = domains.source_labels();
    let (centres, classes) = class_centres(&features, labels.ids(), labels.classes().len());
    features.replace_head(domains.source_rows(), &centres);
    features.normalise_rows();
    nearest(&features, centres.rows(), &classes)
}

/// The mean cosine of every target row with its `k` most similar source rows; rows that are similar to none count as 0.
pub fn source_similarity(domains: &Domains, k: usize) -> Vec<f32> {
    let mut features = domains.features().clone();
    features.normalise_rows();
    let sources = domains.source_rows();
    let queries = features.block(sources..features.rows());
    let best = look_at_all(&features, queries, k, Similarity::Cosine, |_, row| row >= sources);
    let mean = |best: BestOf| best.sorted().iter().map(|near| near.score()).sum::<f32>() / k.max(1) as f32;
    best.into_iter().map(mean).collect()
}

/// For every row from `labelled` on, the class of the nearest row before it.
fn nearest(features: &FeatureMatrix, labelled: usize, classes: &[ClassId]) -> Vec<Option<ClassId>> {
    let similarity = Similarity::Cosine;
    let mut best = vec![Ranked::NOTHING; features.rows() - labelled];
    let mut packed = PackedRows::new();
    for start in (0..labelled).step_by(ROWS_PER_TASK) {
        packed.pack(features.block(start..labelled.min(start + ROWS_PER_TASK)), features.columns());
        best.par_chunks_mut(64).enumerate().for_each_init(ScoreTile::new, |tile, (task, best)| {
            let first = labelled + task * 64;
            tile.score(similarity.chain(), features.block(first..first + best.len()), &packed);
            for (row, at, scores) in tile.segments() {
                for (node, &score) in
                    (start + at..).zip(scores).filter(|(_, score)| **score > similarity.floor())
                {
                    best[row] = best[row].max(Ranked::new(score, node as u32));
                }
            }
        });
    }
    best.into_iter().map(|best| (best != Ranked::NOTHING).then(|| classes[best.node() as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Labels;

    #[test]
    fn nearest_row_and_nearest_mean() {
        let source = FeatureMatrix::from_rows(&[[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.0, 2.0]]).unwrap();
        let target = FeatureMatrix::from_rows(&[[0.5, 0.7], [3.0, 0.1], [0.0, 0.0], [-1.0, -1.0]]).unwrap();
        let domains = Domains::new(source, Labels::new(&["a", "b", "a", "b"]), target).unwrap();
        assert_eq!(nearest_neighbour(&domains), [Some(0), Some(0), None, None]);
        // Means: a (0.8, 0.4), b (0, 1.5).
        assert_eq!(nearest_centre(&domains), [Some(0), Some(0), None, None]);
        // The two nearest of (0, 3) have cosines of 1 and 0.8.
        let target = FeatureMatrix::from_rows(&[[0.0, 3.0], [-1.0, -1.0]]).unwrap();
        let source = FeatureMatrix::from_rows(&[[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]).unwrap();
        let domains = Domains::new(source, Labels::new(&["a", "b", "a"]), target).unwrap();
        let similarity = source_similarity(&domains, 2);
        assert!((similarity[0] - 0.9).abs() < 1e-6 && similarity[1] == 0.0, "{similarity:?}");
    }
}
