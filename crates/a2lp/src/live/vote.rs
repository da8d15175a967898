//! The vote of the views of a consensus, counted again for some items at a time.
//!
//! The class sizes are corrected by the factors of the run's last round, and so are not solved for again. The smoothed votes are
//! linear in the votes, so only what changed is smoothed, and only in classes where something changed.

use super::view::LiveView;
use super::{STEP, rounded};
use crate::affinity::Affinity;
use crate::error::Error;
use crate::hypothesis::Hypothesis;
use crate::known::KnownLabels;
use crate::parameters::CheckedParameters;
use crate::propagation::{Limits, Solve, smooth};
use crate::pseudo_labels::PseudoLabels;
use crate::smoothing::{STRENGTH, Smoother};
use rayon::prelude::*;

/// Changes of a vote come in steps of this size before they are smoothed.
const VOTE_STEP: f32 = 1e-3;
/// Relative residual at which their smoothing stops; finer than the steps.
const VOTE_TOLERANCE: f64 = 1e-4;

pub(super) struct Vote {
    hypothesis: &'static Hypothesis,
    smoother: Smoother,
    /// For every view, the factors that correct class sizes.
    factors: Vec<Vec<f64>>,
    /// The votes of the run, weighted by their confidence, and as they are now.
    weighted_in_run: Vec<f32>,
    now: PseudoLabels,
    /// The smoothed votes of the run, and as they are now.
    smoothed_in_run: Vec<f32>,
    smoothed: Vec<f32>,
    /// For every item, the classes whose weighted vote differs from the run's, and by how much.
    differences: Vec<Vec<(usize, f32)>>,
}

/// What the views say of some items, each for itself and together.
pub(super) struct Poll {
    pub(super) ballots: Vec<PseudoLabels>,
    vote: PseudoLabels,
}

impl Vote {
    pub(super) fn new(
        views: &[LiveView],
        hypothesis: &'static Hypothesis,
        smoother: Smoother,
        shares: &[f64],
        candidates: &[bool],
        known: &KnownLabels,
        parameters: &CheckedParameters,
    ) -> Result<Self, Error> {
        let items: Vec<usize> = (0..views[0].items()).collect();
        let mut ballots: Vec<PseudoLabels> = views.iter().map(|view| view.read(&items, candidates)).collect();
        let mut factors = Vec::new();
        if hypothesis.prior_strength > 0.0 {
            for ballot in &mut ballots {
                factors.push(ballot.class_size_factors(shares, hypothesis.prior_strength, candidates));
                ballot.scale_classes(&factors[factors.len() - 1], candidates);
            }
        }
        let mut now = PseudoLabels::vote(&ballots, candidates);
        known.iter().for_each(|(item, class)| now.clamp(item, class));
        let weighted_in_run = now.weighted_probabilities(candidates);
        let (smoothed, _) = smoother.smoothed(&now, candidates, parameters, &|| Ok(()))?;
        Ok(Vote {
            hypothesis,
            smoother,
            factors,
            weighted_in_run,
            now,
            smoothed_in_run: smoothed.clone(),
            smoothed,
            differences: vec![Vec::new(); items.len()],
        })
    }

    /// The target's own graph.
    pub(super) fn neighbours(&self) -> &Affinity<'static> {
        self.smoother.graph()
    }

    /// Makes room for another class, whose size is not corrected.
    pub(super) fn widen(&mut self, classes: usize) {
        let before = self.now.classes();
        self.factors.iter_mut().for_each(|factors| factors.resize(classes, 1.0));
        self.now.widen(classes);
        for values in [&mut self.weighted_in_run, &mut self.smoothed_in_run, &mut self.smoothed] {
            *values = crate::propagation::widened(values, before, classes);
        }
    }

    /// What each view says of some items, and their vote.
    pub(super) fn poll(&self, views: &[LiveView], items: &[usize], candidates: &[bool]) -> Poll {
        let mut ballots: Vec<PseudoLabels> = views.iter().map(|view| view.read(items, candidates)).collect();
        for (ballot, factors) in ballots.iter_mut().zip(&self.factors) {
            ballot.scale_classes(factors, candidates);
        }
        Poll { vote: PseudoLabels::vote(&ballots, candidates), ballots }
    }

    /// Notes the votes of some items; a person's word stands above them.
    pub(super) fn note(&mut self, polls: &[(Vec<usize>, Poll)], known: &KnownLabels) {
        for (items, poll) in polls {
            self.now.scatter(items, &poll.vote);
            for &item in items {
                if let Some(class) = known.get(item) {
                    self.now.clamp(item, class);
                }
            }
        }
    }

    /// Smooths what differs from the votes of the run, in classes where that changed. Marks the items whose smoothed votes changed.
    pub(super) fn smooth(
        &mut self,
        candidates: &[bool],
        limits: Limits,
        touched: &mut [bool],
    ) -> Result<Solve, Error> {
        let columns = self.changed_classes(candidates, touched);
        let width = columns.len();
        if width == 0 {
            return Ok(Solve::KNOWN);
        }
        let mut place = vec![None; candidates.len()];
        columns.iter().enumerate().for_each(|(at, &class)| place[class] = Some(at));
        let mut values = vec![0f32; touched.len() * width];
        for (item, differences) in self.differences.iter().enumerate() {
            for &(class, difference) in differences {
                if let Some(at) = place[class] {
                    values[item * width + at] = difference;
                }
            }
        }
        let limits = Limits { tolerance: limits.tolerance.max(VOTE_TOLERANCE), ..limits };
        let solve = smooth(self.smoother.graph(), width, STRENGTH, limits, &|| Ok(()), &mut values)?;
        let classes = candidates.len();
        let rows = self.smoothed.par_chunks_mut(classes).zip(self.smoothed_in_run.par_chunks(classes));
        rows.zip(values.par_chunks(width)).zip(touched.par_iter_mut()).for_each(
            |(((now, in_run), values), touched)| {
                let step = STEP * in_run.iter().sum::<f32>();
                for (&class, &value) in columns.iter().zip(values) {
                    let new = in_run[class] + rounded(value, step);
                    *touched |= now[class] != new;
                    now[class] = new;
                }
            },
        );
        Ok(solve)
    }

    /// Finds what differs from the votes of the run for the touched items, and the classes where it is not what it was before.
    fn changed_classes(&mut self, candidates: &[bool], touched: &[bool]) -> Vec<usize> {
        let (classes, now, in_run) = (candidates.len(), &self.now, &self.weighted_in_run);
        let k = candidates.iter().filter(|&&candidate| candidate).count();
        let differences = |item: usize| -> Vec<(usize, f32)> {
            let in_run = &in_run[item * classes..][..classes];
            let differences = now.weighted(item, k).zip(in_run);
            let differences = differences.map(|(now, in_run)| rounded(now - in_run, VOTE_STEP));
            differences.enumerate().filter(|(_, difference)| *difference != 0.0).collect()
        };
        let changed: Vec<Vec<usize>> = self
            .differences
            .par_iter_mut()
            .zip(touched)
            .enumerate()
            .filter(|(_, (_, touched))| **touched)
            .map(|(item, (before, _))| {
                let after = differences(item);
                let is_new = |entry: &&(usize, f32)| !before.contains(entry);
                let is_gone = |entry: &&(usize, f32)| !after.contains(entry);
                let changed = after.iter().filter(is_new).chain(before.iter().filter(is_gone));
                let changed = changed.map(|&(class, _)| class).collect();
                *before = after;
                changed
            })
            .collect();
        let mut is_changed = vec![false; classes];
        changed.into_iter().flatten().for_each(|class| is_changed[class] = true);
        (0..classes).filter(|&class| is_changed[class]).collect()
    }

    /// The smoothed votes on some items.
    pub(super) fn blended(&self, items: &[usize], candidates: &[bool]) -> PseudoLabels {
        let mut labels = self.now.gathered(items);
        let classes = candidates.len();
        let scores: Vec<f32> =
            items.iter().flat_map(|item| &self.smoothed[item * classes..][..classes]).copied().collect();
        labels.blend(&scores, self.hypothesis.smoothing, candidates);
        labels
    }

    /// The present votes smoothed as a whole, for tests.
    #[cfg(test)]
    pub(super) fn smooth_anew(&self, candidates: &[bool], parameters: &CheckedParameters) -> PseudoLabels {
        let mut labels = self.now.clone();
        let share = self.hypothesis.smoothing;
        self.smoother
            .smooth(&mut labels, share, candidates, parameters, &|| Ok(()))
            .expect("nothing stops it");
        labels
    }
}
