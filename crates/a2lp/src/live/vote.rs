//! The vote of the views of a consensus, counted again for some items at a time.
//!
//! The class sizes are corrected by the factors of the run's last round, and so are not solved for again. The smoothed votes are
//! linear in the votes, so only what changed is smoothed.

use super::view::LiveView;
use crate::affinity::Affinity;
use crate::error::Error;
use crate::hypothesis::Hypothesis;
use crate::known::KnownLabels;
use crate::parameters::CheckedParameters;
use crate::propagation::{Limits, Solve, smooth};
use crate::pseudo_labels::PseudoLabels;
use crate::smoothing::{STRENGTH, Smoother};
use rayon::prelude::*;

/// Classes whose votes changed by less than this share of the most changed one are not smoothed again.
const NEGLIGIBLE: f64 = 1e-3;

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
    /// Items whose votes may differ from the run's.
    moved: Vec<bool>,
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
            moved: vec![false; items.len()],
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

    /// What each view says of some items.
    pub(super) fn ballots(
        &self,
        views: &[LiveView],
        items: &[usize],
        candidates: &[bool],
    ) -> Vec<PseudoLabels> {
        let mut ballots: Vec<PseudoLabels> = views.iter().map(|view| view.read(items, candidates)).collect();
        for (ballot, factors) in ballots.iter_mut().zip(&self.factors) {
            ballot.scale_classes(factors, candidates);
        }
        ballots
    }

    /// Counts the ballots of some items.
    pub(super) fn count(
        &mut self,
        parts: &[(Vec<usize>, Vec<PseudoLabels>)],
        known: &KnownLabels,
        candidates: &[bool],
    ) {
        for (items, ballots) in parts {
            self.now.scatter(items, &PseudoLabels::vote(ballots, candidates));
            for &item in items {
                self.moved[item] = true;
                if let Some(class) = known.get(item) {
                    self.now.clamp(item, class);
                }
            }
        }
    }

    /// Smooths what differs from the votes of the run. Marks the items whose smoothed votes changed.
    pub(super) fn smooth(
        &mut self,
        candidates: &[bool],
        limits: Limits,
        touched: &mut [bool],
    ) -> Result<Solve, Error> {
        let classes = candidates.len();
        let moved: Vec<usize> = (0..self.moved.len()).filter(|&item| self.moved[item]).collect();
        let k = candidates.iter().filter(|&&candidate| candidate).count();
        let changes: Vec<Vec<f32>> = moved
            .par_iter()
            .map(|&item| {
                let before = &self.weighted_in_run[item * classes..][..classes];
                self.now.weighted(item, k).zip(before).map(|(now, before)| now - before).collect()
            })
            .collect();
        let mut squares = vec![0f64; classes];
        for change in &changes {
            squares.iter_mut().zip(change).for_each(|(sum, &value)| *sum += f64::from(value).powi(2));
        }
        let largest = squares.iter().copied().fold(0.0, f64::max);
        let matters = |&class: &usize| squares[class] > NEGLIGIBLE * NEGLIGIBLE * largest;
        let columns: Vec<usize> = (0..classes).filter(matters).collect();
        let width = columns.len();
        let mut values = vec![0f32; touched.len() * width];
        for (&item, change) in moved.iter().zip(&changes) {
            for (at, &class) in columns.iter().enumerate() {
                values[item * width + at] = change[class];
            }
        }
        let solve = match width {
            0 => Solve::KNOWN,
            _ => smooth(self.smoother.graph(), width, STRENGTH, limits, &|| Ok(()), &mut values)?,
        };
        // What is below the solver's error cannot be told from 0.
        let errors: Vec<f32> = columns
            .iter()
            .map(|&class| (limits.tolerance * squares[class].sqrt() / (1.0 - STRENGTH)) as f32)
            .collect();
        let rows = self.smoothed.par_chunks_mut(classes).zip(self.smoothed_in_run.par_chunks(classes));
        rows.zip(touched.par_iter_mut()).enumerate().for_each(|(item, ((now, in_run), touched))| {
            let mut at = 0;
            for class in 0..classes {
                let mut new = in_run[class];
                if columns.get(at) == Some(&class) {
                    let value = values[item * width + at];
                    new += if value.abs() > errors[at] { value } else { 0.0 };
                    at += 1;
                }
                *touched |= now[class] != new;
                now[class] = new;
            }
        });
        Ok(solve)
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
