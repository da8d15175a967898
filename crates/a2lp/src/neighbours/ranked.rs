//! A neighbour and its score in one integer, so that ranking is comparing integers.

use crate::kernels::{Hit, ScoreTile};

/// Score and index of a neighbour. Greater = nearer; of equal scores the lower index is nearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ranked(u64);

impl Ranked {
    /// Farther than any neighbour.
    pub(crate) const NOTHING: Ranked = Ranked(0);

    pub(crate) fn new(score: f32, node: u32) -> Self {
        Ranked(u64::from(ordered(score)) << 32 | u64::from(!node))
    }

    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Ranked(bits)
    }

    pub(crate) fn node(self) -> u32 {
        !(self.0 as u32)
    }

    pub(crate) fn score(self) -> f32 {
        let key = (self.0 >> 32) as u32;
        f32::from_bits(if key >> 31 == 1 { key ^ 0x8000_0000 } else { !key })
    }
}

/// Bits of a float, rearranged so that their order as an integer is the order of the floats.
fn ordered(score: f32) -> u32 {
    let bits = score.to_bits();
    if bits >> 31 == 0 { bits | 0x8000_0000 } else { !bits }
}

/// Collects candidates and keeps the best `k`.
///
/// Candidates pile up to 2k, then a selection halves them: a few nanoseconds each, whatever k.
#[derive(Clone, Debug)]
pub(crate) struct BestOf {
    k: usize,
    kept: Vec<Ranked>,
    /// Scores below this cannot enter any more.
    threshold: f32,
}

impl BestOf {
    pub(crate) fn new(k: usize, floor: f32) -> Self {
        BestOf { k, kept: Vec::new(), threshold: floor }
    }

    /// Scores below this are not worth offering.
    #[inline]
    pub(crate) fn threshold(&self) -> f32 {
        self.threshold
    }

    /// Offers a node if its score can still enter.
    #[inline]
    pub(crate) fn consider(&mut self, score: f32, node: u32) {
        if score >= self.threshold {
            self.offer(Ranked::new(score, node));
        }
    }

    #[inline]
    pub(crate) fn offer(&mut self, candidate: Ranked) {
        if self.kept.len() == self.kept.capacity() {
            self.grow();
        }
        self.kept.push(candidate);
        if self.kept.len() >= 2 * self.k {
            self.prune();
        }
    }

    /// Makes room for twice as many, but not for more than there will ever be: every row has one of these.
    #[cold]
    fn grow(&mut self) {
        let length = self.kept.len();
        self.kept.reserve_exact(length.max(4).min((2 * self.k).saturating_sub(length)).max(1));
    }

    /// Takes in what another collected.
    pub(crate) fn absorb(&mut self, other: BestOf) {
        for candidate in other.kept {
            self.consider(candidate.score(), candidate.node());
        }
    }

    /// The candidates so far; some of them may not stay.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = u32> {
        self.kept.iter().map(|candidate| candidate.node())
    }

    /// Were there so few candidates that all of them are kept?
    pub(crate) fn is_short(&self) -> bool {
        self.kept.len() < self.k
    }

    fn prune(&mut self) {
        if self.kept.len() > self.k && self.k > 0 {
            self.kept.select_nth_unstable_by(self.k - 1, |a, b| b.cmp(a));
            self.threshold = self.threshold.max(self.kept[self.k - 1].score());
        }
        self.kept.truncate(self.k);
    }

    /// The best k, nearest first.
    pub(crate) fn sorted(mut self) -> Vec<Ranked> {
        self.prune();
        self.kept.sort_unstable_by(|a, b| b.cmp(a));
        self.kept.shrink_to_fit();
        self.kept
    }
}

/// Offers the scores of a tile to the lists of its rows, as neighbours with the numbers of the packed rows. Few scores reach a
/// threshold, and vectors find those that do.
pub(crate) fn offer_to_rows(tile: &ScoreTile, sign: f32, best: &mut [BestOf], hits: &mut Vec<Hit>) {
    let nobody = vec![f32::INFINITY; tile.packed_rows()];
    let mut thresholds = Vec::with_capacity(best.len());
    for panel in 0..tile.panels() {
        thresholds.clear();
        thresholds.extend(best.iter().map(BestOf::threshold));
        hits.clear();
        tile.add_hits(panel, sign, &thresholds, &nobody, hits);
        hits.iter().for_each(|hit| best[hit.row as usize].consider(hit.score, hit.packed_row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_by_score_then_by_lower_index() {
        let scores = [-2.5f32, -0.0, 0.0, 1e-30, 0.5, 0.500_000_06, 3.0];
        for pair in scores.windows(2) {
            assert!(Ranked::new(pair[0], 0) < Ranked::new(pair[1], 9));
        }
        assert!(Ranked::new(0.5, 3) > Ranked::new(0.5, 4));
        let r = Ranked::new(-0.25, 17);
        assert_eq!((r.score(), r.node()), (-0.25, 17));
        assert!(Ranked::new(f32::MIN, u32::MAX) > Ranked::NOTHING);
    }

    #[test]
    fn best_of_equals_sorting_everything() {
        let all: Vec<Ranked> = (0..500u32).map(|i| Ranked::new((i * 7919 % 83) as f32, i)).collect();
        for k in [1, 2, 20, 499, 500, 600] {
            let mut best = BestOf::new(k, f32::NEG_INFINITY);
            all.iter().for_each(|&r| best.offer(r));
            let mut want = all.clone();
            want.sort_by(|a, b| b.cmp(a));
            want.truncate(k);
            assert_eq!(best.sorted(), want);
        }
    }
}
