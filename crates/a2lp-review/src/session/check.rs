//! The check: an audit of the labels as they are now.

use super::Session;
use crate::audit::{DELTA, Ladder, Promise, SETS};
use crate::error::ReviewError;
use crate::event::{AuditSettings, Event};
use serde::Serialize;

/// The probability that a statement about a version is false: δ/2^k for the k-th, so that all of them together keep to δ; δ for labels that
/// were declared final.
pub(crate) fn delta_of(version: u32, is_final: bool) -> f64 {
    if is_final { DELTA } else { DELTA / 2f64.powi(version as i32) }
}

/// A ladder over the items of one version.
pub(super) struct AuditedVersion {
    ladder: Ladder,
    /// The items of the ladder: those that carry a label which no person gave.
    population: Vec<usize>,
    /// Answers that the ladder has.
    answers: usize,
}

/// What the check shows.
#[derive(Clone, Debug, Serialize)]
pub struct CheckView {
    /// What it is to show.
    pub settings: AuditSettings,
    /// The version of the labels it speaks of. Every version after the first answer costs evidence.
    pub version: u32,
    /// The probability that a statement about this version is false.
    pub delta: f64,
    /// The confidence of all statements together.
    pub confidence: f64,
    /// Items that carry a label which no person gave.
    pub population: usize,
    /// Answers so far, and how many of them found a wrong label.
    pub answers: usize,
    /// Answers that found a wrong label.
    pub wrong: usize,
    /// The item to show; `None` if there is nothing left to ask.
    pub next: Option<usize>,
    /// The sets of the ladder.
    pub sets: Vec<SetView>,
    /// The set under test, from 1.
    pub testing: usize,
    /// The largest set that is signed off, from 1; 0 if none is.
    pub signed_off: usize,
    /// Has the check begun with labels that are final?
    pub is_final: bool,
}

/// One set of the ladder: the most confident items.
#[derive(Clone, Debug, Serialize)]
pub struct SetView {
    /// Items in it.
    pub items: usize,
    /// The confidence of the least confident one.
    pub least_confidence: f64,
    /// Answers about it that count.
    pub answers: usize,
    /// How many of them found a wrong label.
    pub wrong: usize,
    /// The fewest of its labels that can be right, at all times, with the confidence of the check.
    pub fewest_right: f64,
    /// The most of its labels that can be right.
    pub most_right: f64,
    /// Share of 1/δ that the stake has reached, on a logarithmic scale from 0 to 1.
    pub progress: f64,
    /// Is it signed off?
    pub signed_off: bool,
    /// So many wrong labels were found that it never will be.
    pub hopeless: bool,
}

impl Session {
    /// The event that must happen before the check can be shown: the labels changed since it was last looked at.
    pub fn needed_version(&self) -> Option<Event> {
        (!self.state.is_current()).then(|| Event::Version { number: self.state.next_version() })
    }

    /// The check as it stands. The labels must be those that were last looked at; see [`Session::needed_version`].
    pub fn check_view(&mut self) -> Result<CheckView, ReviewError> {
        self.must_be_current()?;
        let audited = self.audited();
        let ladder = &audited.ladder;
        let sets: Vec<SetView> = (1..=SETS).map(|set| audited.set_view(set, self)).collect();
        let wrong = |(item, said): &&(usize, Option<String>)| self.is_wrong(*item, said.as_deref());
        let view = CheckView {
            settings: self.state.settings,
            version: self.version(),
            delta: ladder.promise().delta,
            confidence: 1.0 - DELTA,
            population: audited.population.len(),
            answers: self.state.answers.len(),
            wrong: self.state.answers.iter().filter(wrong).count(),
            next: ladder.next().map(|at| audited.population[at]),
            sets,
            testing: ladder.testing(),
            signed_off: ladder.signed_off(),
            is_final: self.state.is_final(),
        };
        self.audited = Some(audited);
        Ok(view)
    }

    /// The version of the labels, from 1.
    pub(crate) fn version(&self) -> u32 {
        self.state.version.as_ref().map_or(1, |version| version.number)
    }

    /// What the audit is to show.
    pub fn settings(&self) -> AuditSettings {
        self.state.settings
    }

    /// The label of an item.
    pub(crate) fn label(&self, item: usize) -> Option<&str> {
        let labelling = self.labelling();
        labelling.pseudo_labels.labels()[item].map(|class| labelling.classes.name(class))
    }

    /// Does a person's answer contradict the label?
    pub(crate) fn is_wrong(&self, item: usize, said: Option<&str>) -> bool {
        let label = self.label(item);
        label.is_none() || label != said
    }

    /// The items that the audit speaks of, the most confident first, and the audit.
    pub(crate) fn audited_items(&mut self) -> Result<(Vec<usize>, Ladder), ReviewError> {
        self.must_be_current()?;
        let audited = self.audited();
        let ranked = audited.ladder.ranked().iter().map(|&at| audited.population[at]).collect();
        let ladder = audited.ladder.clone();
        self.audited = Some(audited);
        Ok((ranked, ladder))
    }

    fn must_be_current(&self) -> Result<(), ReviewError> {
        match self.needed_version() {
            Some(_) => Err(ReviewError::refused("the labels changed since they were last looked at")),
            None => Ok(()),
        }
    }

    /// Takes the last answer into the ladder, if there is one.
    pub(super) fn take_answer(&mut self) {
        if let Some(mut audited) = self.audited.take() {
            self.replay(&mut audited);
            self.audited = Some(audited);
        }
    }

    fn audited(&mut self) -> AuditedVersion {
        if let Some(audited) = self.audited.take() {
            return audited;
        }
        let labels = self.labelling().pseudo_labels.labels();
        let in_population =
            |item: &usize| labels[*item].is_some() && !self.state.corrections.contains_key(item);
        let population: Vec<usize> = (0..labels.len()).filter(in_population).collect();
        let mut place = vec![usize::MAX; labels.len()];
        population.iter().enumerate().for_each(|(at, &item)| place[item] = at);
        let draw: Vec<usize> =
            self.draw.iter().map(|&item| place[item]).filter(|&at| at != usize::MAX).collect();
        let confidence: Vec<f64> = population.iter().map(|&item| self.confidence(item)).collect();
        let AuditSettings { max_error, first_set, .. } = self.state.settings;
        let promise = Promise {
            max_error,
            delta: delta_of(self.version(), self.state.settings.final_labels),
            first_set,
        };
        let mut audited =
            AuditedVersion { ladder: Ladder::new(&confidence, &draw, promise), population, answers: 0 };
        self.replay(&mut audited);
        audited
    }

    /// Gives the ladder the answers that it lacks.
    fn replay(&self, audited: &mut AuditedVersion) {
        for (item, said) in &self.state.answers[audited.answers..] {
            if let Ok(at) = audited.population.binary_search(item) {
                audited.ladder.answer(at, self.is_wrong(*item, said.as_deref()));
            }
        }
        audited.answers = self.state.answers.len();
    }

    /// The confidence of an item as files have it, with six decimals, so that anyone can repeat the order from a file.
    pub(crate) fn confidence(&self, item: usize) -> f64 {
        (f64::from(self.labelling().pseudo_labels.confidence()[item]) * 1e6).round_ties_even() / 1e6
    }
}

impl AuditedVersion {
    fn set_view(&self, set: usize, session: &Session) -> SetView {
        let ladder = &self.ladder;
        let items = ladder.set_size(set);
        let (answers, wrong) = ladder.answers_in(set);
        let (fewest, most) = ladder.wrong_in(set);
        let share = |right: usize| if items > 0 { right as f64 / items as f64 } else { 0.0 };
        let least = items.checked_sub(1).map(|last| self.population[ladder.ranked()[last]]);
        let log = ladder.wealth(set).log();
        SetView {
            items,
            least_confidence: least.map_or(0.0, |item| session.confidence(item)),
            answers,
            wrong,
            fewest_right: share(items - most),
            most_right: share(items - fewest),
            progress: (log / -ladder.promise().delta.ln()).clamp(0.0, 1.0),
            signed_off: set <= ladder.signed_off(),
            hopeless: log == f64::NEG_INFINITY,
        }
    }
}
