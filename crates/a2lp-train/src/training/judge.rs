//! The labels that the features give before any training, and whether other labels are better. The truth has no say: labels are compared
//! by their quality score over two graphs, of the features as they were and as they are, because each favours its own.

use super::labelling::{Matrix, RoundView, domains};
use super::settings::{Labeller, TrainSettings};
use crate::error::TrainError;
use a2lp::{Observer, PseudoLabels, Quality};

/// The features that a network started from, and their labels.
pub(super) struct Untrained {
    source: Matrix,
    target: Matrix,
    labels: PseudoLabels,
}

/// Quality scores of labels that a network learned to give, and of those that the features give without training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Of the trained network's labels.
    pub trained: f64,
    /// Of the labels without training.
    pub untrained: f64,
}

impl Verdict {
    /// Are the labels without training better?
    pub fn prefers_untrained(&self) -> bool {
        self.untrained > self.trained
    }
}

impl Untrained {
    /// Labels the features of a view as `a2lp label` does by default, whatever the rounds learn from.
    pub(super) fn new(
        view: &RoundView<'_>,
        settings: &TrainSettings,
        observer: &dyn Observer,
    ) -> Result<Self, TrainError> {
        let settings = settings.clone().labeller(Labeller::Auto);
        let labels = view.by_graph(&settings, observer)?;
        Ok(Untrained { source: view.source.clone(), target: view.target.clone(), labels })
    }

    pub(super) fn labels(&self) -> &PseudoLabels {
        &self.labels
    }

    /// Compares labels with those without training. `view` has the features as they are now.
    pub(super) fn judge(
        &self,
        labels: &PseudoLabels,
        view: &RoundView<'_>,
        observer: &dyn Observer,
    ) -> Result<Verdict, TrainError> {
        let mut verdict = Verdict { trained: 0.0, untrained: 0.0 };
        for [source, target] in [[&self.source, &self.target], [view.source, view.target]] {
            let domains = domains(source, view.labels, target, view.classes)?;
            let scores = Quality::of_each(&domains, &[labels, &self.labels], observer)?;
            verdict.trained += scores[0].score / 2.0;
            verdict.untrained += scores[1].score / 2.0;
        }
        Ok(verdict)
    }
}
