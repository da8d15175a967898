//! Votes of the rows of one domain for their nearest rows of the other.

use super::VOTES;
use crate::labels::ClassId;
use crate::neighbours::NeighbourLists;
use std::ops::Range;

/// For every voter the rows it votes for.
pub(super) struct Votes {
    /// Row after row.
    lists: Vec<Vec<u32>>,
    candidates: usize,
}

/// Sums of votes: `columns` numbers for every row.
pub(super) struct Counted {
    pub(super) values: Vec<f64>,
    pub(super) columns: usize,
}

impl Counted {
    /// The same in proportion, with this sum.
    pub(super) fn scaled_to(mut self, sum: f64) -> Self {
        let total: f64 = self.values.iter().sum();
        if total > 0.0 {
            self.values.iter_mut().for_each(|value| *value *= sum / total);
        }
        self
    }
}

impl Votes {
    /// The votes of `voters` for `candidates`, from neighbours in both domains.
    pub(super) fn read(lists: &NeighbourLists, voters: Range<usize>, candidates: Range<usize>) -> Self {
        let of = |voter: usize| {
            let others = lists.of(voter).iter().map(|ranked| ranked.node() as usize);
            let others = others.filter(|other| candidates.contains(other)).take(VOTES);
            others.map(|other| (other - candidates.start) as u32).collect()
        };
        Votes { lists: voters.map(of).collect(), candidates: candidates.len() }
    }

    /// The weights of the voters, added up for every candidate.
    pub(super) fn count(&self, weights: &[f64]) -> Counted {
        self.add_up(1, |voter, sums| sums[0] += weights[voter])
    }

    /// The same, in a column of its own for every class of voters.
    pub(super) fn count_by_class(&self, weights: &[f64], voters: &[ClassId], classes: usize) -> Counted {
        self.add_up(classes, |voter, sums| sums[voters[voter] as usize] += weights[voter])
    }

    /// The voters' rows of scores, scaled to sum 1 and weighted, added up for every candidate.
    pub(super) fn count_rows(&self, scores: &[f32], weights: &[f64], classes: usize) -> Counted {
        self.add_up(classes, |voter, sums| {
            let row = &scores[voter * classes..][..classes];
            let sum = row.iter().map(|&score| f64::from(score)).sum::<f64>().max(1e-12);
            sums.iter_mut().zip(row).for_each(|(at, &score)| *at += weights[voter] * f64::from(score) / sum);
        })
    }

    fn add_up(&self, columns: usize, add: impl Fn(usize, &mut [f64])) -> Counted {
        let mut values = vec![0f64; self.candidates * columns];
        for (voter, candidates) in self.lists.iter().enumerate() {
            for &candidate in candidates {
                add(voter, &mut values[candidate as usize * columns..][..columns]);
            }
        }
        Counted { values, columns }
    }
}
