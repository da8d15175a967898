//! Observing a run: progress, a way to stop it, and each finished round.

use crate::affinity::Affinity;
use crate::labelling::Round;
use crate::labels::ClassId;
use crate::propagation::SoftLabels;
use crate::pseudo_labels::PseudoLabels;
use std::ops::ControlFlow;

/// What a run is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Finding neighbours; counts pairs of rows compared.
    Neighbours,
    /// Rounds of propagation; counts rounds.
    Rounds,
}

/// One of the labellings that a run tries. A run keeps one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum Attempt {
    /// By the method asked for.
    #[default]
    Asked,
    /// By a consensus that assumes the target's own class mix; `Asked` then assumes the source's.
    OwnMix,
    /// By plain label propagation, with which the guard compares.
    PlainPropagation,
}

/// A caller that wants to observe a run or to stop it. Every method has a default that does nothing.
///
/// An observer is shown what the run computed and can give nothing back but "stop": evaluation against the truth is an
/// observer, so it cannot influence the result.
pub trait Observer: Sync {
    /// Called between pieces of work, from any worker thread. `Break` ends the run with
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    fn progress(&self, _stage: Stage, _done: u64, _total: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Called after each round, from the thread that runs the method.
    fn round(&self, _round: &FinishedRound<'_>) {}

    /// Called at the end: the labels come from this attempt.
    fn chosen(&self, _attempt: Attempt) {}
}

/// An observer that does nothing.
impl Observer for () {}

impl<O: Observer + ?Sized> Observer for &O {
    fn progress(&self, stage: Stage, done: u64, total: u64) -> ControlFlow<()> {
        (**self).progress(stage, done, total)
    }

    fn round(&self, round: &FinishedRound<'_>) {
        (**self).round(round);
    }

    fn chosen(&self, attempt: Attempt) {
        (**self).chosen(attempt);
    }
}

/// Nothing, or what is there.
impl<O: Observer> Observer for Option<O> {
    fn progress(&self, stage: Stage, done: u64, total: u64) -> ControlFlow<()> {
        self.as_ref().map_or(ControlFlow::Continue(()), |observer| observer.progress(stage, done, total))
    }

    fn round(&self, round: &FinishedRound<'_>) {
        if let Some(observer) = self {
            observer.round(round);
        }
    }

    fn chosen(&self, attempt: Attempt) {
        if let Some(observer) = self {
            observer.chosen(attempt);
        }
    }
}

/// One after the other; either can end the run.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn progress(&self, stage: Stage, done: u64, total: u64) -> ControlFlow<()> {
        self.0.progress(stage, done, total)?;
        self.1.progress(stage, done, total)
    }

    fn round(&self, round: &FinishedRound<'_>) {
        self.0.round(round);
        self.1.round(round);
    }

    fn chosen(&self, attempt: Attempt) {
        self.0.chosen(attempt);
        self.1.chosen(attempt);
    }
}

/// One finished round.
#[derive(Clone, Copy)]
pub struct FinishedRound<'a> {
    /// The labelling that the round belongs to.
    pub attempt: Attempt,
    /// The graph of this round: labelled nodes, target nodes, anchors.
    pub affinity: &'a Affinity<'a>,
    /// Class of every labelled node (sources or centres, and anchors); `None` for target nodes.
    pub node_labels: &'a [Option<ClassId>],
    /// Index of the first target node.
    pub first_target: usize,
    /// The propagated scores F of every node.
    pub soft_labels: &'a SoftLabels,
    /// What they mean for the target.
    pub pseudo_labels: &'a PseudoLabels,
    /// The figures that also go into the trace.
    pub round: &'a Round,
}

/// Asks the observer whether to go on.
pub(crate) fn report_progress(
    observer: &dyn Observer,
    stage: Stage,
    done: u64,
    total: u64,
) -> Result<(), crate::Error> {
    match observer.progress(stage, done, total) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(crate::Error::Cancelled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Counts calls, and stops at the third.
    #[derive(Default)]
    struct Third(AtomicU64);

    impl Observer for Third {
        fn progress(&self, _: Stage, _: u64, _: u64) -> ControlFlow<()> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 | 1 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        }
    }

    #[test]
    fn either_of_two_can_end_a_run() {
        let (a, b) = (Third::default(), Third::default());
        let both = (&a, (None::<()>, Some(&b)));
        assert!(report_progress(&both, Stage::Rounds, 0, 1).is_ok());
        assert!(report_progress(&b, Stage::Rounds, 0, 1).is_ok());
        assert!(report_progress(&both, Stage::Rounds, 0, 1).is_err());
        assert_eq!((a.0.into_inner(), b.0.into_inner()), (2, 3));
    }
}
