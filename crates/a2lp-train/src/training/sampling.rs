//! Batches. Every batch depends only on the seed and its number, so a run can be resumed anywhere.

use crate::draws::{Draws, Purpose};
use std::cell::RefCell;

/// All items in random order, then all in another, and so on; what does not fill a batch at the end is left out.
pub(crate) struct Shuffled {
    seed: u64,
    purpose: Purpose,
    items: usize,
    batch: usize,
    /// The order of the epoch that was asked for last.
    epoch: RefCell<(u64, Vec<usize>)>,
}

impl Shuffled {
    pub(crate) fn new(seed: u64, purpose: Purpose, items: usize, batch: usize) -> Self {
        let batch = batch.clamp(1, items.max(1));
        Shuffled { seed, purpose, items, batch, epoch: RefCell::new((u64::MAX, Vec::new())) }
    }

    pub(crate) fn batch(&self, step: u64) -> Vec<usize> {
        let in_epoch = (self.items / self.batch).max(1) as u64;
        let (epoch, at) = (step / in_epoch, (step % in_epoch) as usize);
        let mut known = self.epoch.borrow_mut();
        if known.0 != epoch {
            *known = (epoch, Draws::new(self.seed, self.purpose, epoch).permutation(self.items));
        }
        known.1[at * self.batch..(at + 1) * self.batch].to_vec()
    }
}

/// Batches with a few items of each of a few classes, the same classes in both domains.
pub(crate) struct ClassAware {
    /// Classes that have enough items in both domains.
    pub(crate) classes: Vec<usize>,
    source: Vec<Vec<usize>>,
    target: Vec<Vec<usize>>,
    in_batch: usize,
    items: usize,
}

/// Items of a batch, class after class.
pub(crate) struct ClassBatch {
    pub(crate) source: Vec<Vec<usize>>,
    pub(crate) target: Vec<Vec<usize>>,
}

impl ClassAware {
    /// `target` says which items count, and as what.
    pub(crate) fn new(
        source: &[u32],
        target: &[Option<u32>],
        classes: usize,
        least: usize,
        in_batch: usize,
        items: usize,
    ) -> Self {
        let mut by_source = vec![Vec::new(); classes];
        source.iter().enumerate().for_each(|(row, &class)| by_source[class as usize].push(row));
        let mut by_target = vec![Vec::new(); classes];
        for (row, class) in target.iter().enumerate() {
            if let Some(class) = class {
                by_target[*class as usize].push(row);
            }
        }
        let enough = |class: &usize| by_target[*class].len() >= least.max(1) && !by_source[*class].is_empty();
        let kept: Vec<usize> = (0..classes).filter(enough).collect();
        let in_batch = in_batch.min(kept.len());
        ClassAware { classes: kept, source: by_source, target: by_target, in_batch, items }
    }

    /// CAN's number of steps in a round: an epoch of the larger domain, in batches of a few classes.
    pub(crate) fn steps(&self) -> usize {
        let batches = |rows: &[usize]| rows.len() / self.items.clamp(1, rows.len().max(1));
        let all: usize = self
            .classes
            .iter()
            .map(|&class| batches(&self.source[class]).max(batches(&self.target[class])))
            .sum();
        all.div_ceil(self.in_batch.max(1))
    }

    /// The `step`-th batch of a run: classes from a random order cut into pieces, then items of each.
    pub(crate) fn batch(&self, seed: u64, step: u64) -> Option<ClassBatch> {
        if self.in_batch == 0 {
            return None;
        }
        let pieces = (self.classes.len() / self.in_batch) as u64;
        let order = Draws::new(seed, Purpose::ClassOrder, step / pieces).permutation(self.classes.len());
        let from = (step % pieces) as usize * self.in_batch;
        let mut draws = Draws::new(seed, Purpose::Step, step * 2 + 1);
        let mut batch = ClassBatch { source: Vec::new(), target: Vec::new() };
        for &at in &order[from..from + self.in_batch] {
            let class = self.classes[at];
            batch.source.push(draws.some(&self.source[class], self.items));
            batch.target.push(draws.some(&self.target[class], self.items));
        }
        Some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_holds_every_item_once() {
        let shuffled = Shuffled::new(3, Purpose::SourceOrder, 10, 5);
        let epoch = |at: u64| [shuffled.batch(2 * at), shuffled.batch(2 * at + 1)].concat();
        let (first, second) = (epoch(0), epoch(1));
        assert_ne!(first, second);
        assert_eq!(epoch(0), first, "any batch can be had again");
        let mut sorted = second;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..10).collect::<Vec<_>>());
        assert_eq!(Shuffled::new(0, Purpose::SourceOrder, 3, 64).batch(7).len(), 3);
    }

    #[test]
    fn class_aware_batches_have_the_same_classes_in_both_domains() {
        let source = [0, 0, 0, 1, 1, 2, 2, 2, 2];
        let target = [Some(0), Some(0), Some(0), Some(1), None, Some(2), Some(2), Some(2), Some(2), Some(2)];
        let aware = ClassAware::new(&source, &target, 4, 3, 2, 2);
        assert_eq!(aware.classes, [0, 2], "class 1 has one item, class 3 none");
        // max(⌊3/2⌋, ⌊3/2⌋) + max(⌊4/2⌋, ⌊5/2⌋), over two classes.
        assert_eq!(aware.steps(), 2);
        for step in 0..20 {
            let batch = aware.batch(5, step).unwrap();
            assert_eq!(batch.source.len(), 2);
            for (s, t) in batch.source.iter().zip(&batch.target) {
                assert_eq!((s.len(), t.len()), (2, 2));
                assert!(s[0] != s[1] && t[0] != t[1]);
                assert!(s.iter().all(|&row| source[row] == source[s[0]]));
                assert!(t.iter().all(|&row| target[row] == Some(source[s[0]])));
            }
        }
        assert!(ClassAware::new(&source, &[None; 10], 4, 3, 2, 2).batch(0, 0).is_none());
    }
}
