//! Rows in groups: samples, centres, the group of every row, and how many groups a row looks at.

use super::Neighbour;
use crate::features::{FeatureMatrix, normalise};
use crate::neighbours::{
    BestOf, Centres, Groups, SAMPLE, WANTED, centre_sample as sample_for, look_at_all,
    probe_sample as sample_for_probes, usual_groups,
};
use crate::similarity::Similarity;
use rayon::prelude::*;

/// Number of groups for so many rows.
pub fn group_count(rows: usize) -> usize {
    usual_groups(rows)
}

/// Numbers of the rows on which the centres are found.
pub fn centre_sample(rows: usize, seed: u64) -> Vec<usize> {
    sample_for(rows, usual_groups(rows), seed)
}

/// Numbers of the rows on which the number of groups to look at is decided.
pub fn probe_sample(rows: usize) -> Vec<usize> {
    sample_for_probes(rows)
}

/// Numbers of the rows on which the recall is measured.
pub fn recall_sample(rows: usize) -> Vec<usize> {
    (0..SAMPLE.min(rows)).map(|at| at * rows / SAMPLE.min(rows)).collect()
}

/// Scales rows as the similarity asks.
pub fn scale_rows(rows: &mut [f32], columns: usize, similarity: Similarity) {
    if similarity.scales_rows() && columns > 0 {
        rows.par_chunks_exact_mut(columns).with_min_len(64).for_each(|row| {
            normalise(row);
        });
    }
}

/// The centres of all groups.
pub struct Grouping {
    pub(super) centres: Centres,
}

impl Grouping {
    /// Finds the centres on a sample of the rows.
    pub fn find(sample: Vec<f32>, columns: usize, similarity: Similarity, count: usize) -> Self {
        let sample = FeatureMatrix::from_parts(sample.len() / columns, columns, sample);
        Grouping { centres: Centres::find(&sample, similarity, count) }
    }

    /// Centres that were found before.
    pub fn from_vectors(vectors: Vec<f32>, columns: usize, similarity: Similarity) -> Self {
        let vectors = FeatureMatrix::from_parts(vectors.len() / columns, columns, vectors);
        Grouping { centres: Centres::new(vectors, similarity) }
    }

    /// A row per centre.
    pub fn vectors(&self) -> &[f32] {
        self.centres.vectors().values()
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.centres.count()
    }

    /// The group of every row.
    pub fn assign(&self, rows: &[f32]) -> Vec<u32> {
        let columns = self.centres.vectors().columns();
        self.centres.nearest(rows.len() / columns, |row| &rows[row * columns..][..columns], 1)
    }

    /// How many groups a row must look at. `truth` are the nearest rows of every row of `sample`, which has these numbers; `home`
    /// tells the group of a row.
    pub fn probes(
        &self,
        sample: Vec<f32>,
        numbers: &[usize],
        truth: &[Vec<Neighbour>],
        home: impl Fn(u32) -> u32,
    ) -> usize {
        let columns = self.centres.vectors().columns();
        let sample = FeatureMatrix::from_parts(sample.len() / columns, columns, sample);
        let truth: Vec<Vec<_>> = truth.iter().map(|list| list.iter().map(|n| n.0).collect()).collect();
        self.centres.probes_for((&sample, numbers), &truth, home, WANTED)
    }
}

/// The row at each position, and the first position of each group with the end, from the group of every row.
pub fn positions_by_group(groups: &[u32], count: usize) -> (Vec<u32>, Vec<usize>) {
    let Groups { order, starts } = Groups::new(groups, count);
    (order, starts)
}

/// The `k` rows nearest to each query among some rows, which are numbered from `first` on. A query with a row's number is that row.
pub fn nearest_in(
    rows: &[f32],
    columns: usize,
    first: usize,
    queries: &[f32],
    numbers: &[usize],
    k: usize,
    similarity: Similarity,
) -> Vec<Vec<Neighbour>> {
    let matrix = FeatureMatrix::from_parts(rows.len() / columns, columns, rows.to_vec());
    let itself = |query: usize, row: usize| numbers[query] == first + row;
    let best = look_at_all(&matrix, queries, k, similarity, itself);
    let renumber = |ranked: crate::neighbours::Ranked| {
        Neighbour(crate::neighbours::Ranked::new(ranked.score(), ranked.node() + first as u32))
    };
    best.into_iter().map(|best| best.sorted().into_iter().map(renumber).collect()).collect()
}

/// The best `k` of several lists.
pub fn merge_nearest(lists: impl Iterator<Item = Neighbour>, k: usize) -> Vec<Neighbour> {
    let mut best = BestOf::new(k, f32::NEG_INFINITY);
    lists.for_each(|neighbour| best.offer(neighbour.0));
    best.sorted().into_iter().map(Neighbour).collect()
}
