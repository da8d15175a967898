//! A finished run that takes corrections: what a person says of target items goes in, changed labels come out at once.
//!
//! The graphs and anchors of the last round stay as they are. A corrected item becomes a labelled node, so only the columns of F
//! change whose classes gained or lost such nodes. F is linear in them:
//!
//! F_c = F_c of the run + (I − αS)⁻¹ w·(items corrected to c)
//!
//! The second part is solved from nothing for each set of corrections, so labels depend on the corrections alone and not on their
//! order, and taking a correction back restores every bit. It is rounded to steps of [`STEP`] of a probability, so that a correction
//! costs as much as the items it concerns, and items far away stay as they are to the bit.

mod doubt;
#[cfg(test)]
mod tests;
mod view;
mod vote;

use crate::affinity::{Affinity, symmetrise};
use crate::error::Error;
use crate::hypothesis::Hypothesis;
use crate::known::KnownLabels;
use crate::labelling::{Labelling, Opinion};
use crate::labels::{ClassId, Classes};
use crate::parameters::{CheckedParameters, Unreached};
use crate::propagation::{Limits, SoftLabels, Solve};
use crate::pseudo_labels::{PseudoLabels, Status};
use crate::smoothing::Smoother;
use crate::views::Nodes;
use rayon::prelude::*;
use std::sync::Arc;
use view::{Column, LiveView};
use vote::{Poll, Vote};

/// Changes of a probability come in steps of this size.
const STEP: f32 = 1e-4;
/// Items that one task reads.
const ITEMS_PER_TASK: usize = 256;
/// Neighbours of an item within the target, where the doubt about items is summed up.
const NEIGHBOURS: usize = 10;

/// A labelling that a person corrects. Made by [`Run::live`](crate::Run::live).
///
/// ```
/// use a2lp::{Domains, FeatureMatrix, KnownLabels, Labels, Parameters, Run};
///
/// let source = FeatureMatrix::from_rows(&[[1.0, 0.1], [0.1, 1.0]])?;
/// let target = FeatureMatrix::from_rows(&[[0.9, 0.3], [0.8, 0.2], [0.3, 0.7]])?;
/// let domains = Domains::new(source, Labels::new(&["mug", "bike"]), target)?;
/// let mut live = Run::new(domains, &Parameters::paper().neighbours(2).check()?).live()?;
///
/// let bike = live.labelling().classes.find("bike").unwrap();
/// live.set_known(KnownLabels::from_iter([(0, bike)]))?;
/// assert_eq!(live.labelling().pseudo_labels.labels()[0], Some(bike));
/// # Ok::<(), a2lp::Error>(())
/// ```
pub struct LiveLabels {
    /// The labels as they are now.
    labelling: Labelling,
    views: Vec<LiveView>,
    reading: Reading,
    /// What the run itself was told.
    known_to_run: KnownLabels,
    /// Labels of items that no path reached, from the most similar node.
    filled: Vec<Option<ClassId>>,
    /// Classes that had a labelled node in the run, and those that have one now.
    candidates_of_run: Vec<bool>,
    candidates: Vec<bool>,
    parameters: CheckedParameters,
    pool: Arc<rayon::ThreadPool>,
}

/// How labels are read from the views.
enum Reading {
    /// From the only view. The target's own graph is kept beside it.
    Single { neighbours: Affinity<'static> },
    /// By the vote of a consensus.
    Vote(Box<Vote>),
}

/// What is left of the rounds of a run that is to be corrected.
pub(crate) struct LiveParts {
    pub(crate) candidates: Vec<bool>,
    pub(crate) shares: Vec<f64>,
    pub(crate) hypothesis: Option<&'static Hypothesis>,
    pub(crate) smoother: Option<Smoother>,
    pub(crate) views: Vec<(Nodes, SoftLabels)>,
}

/// What a correction did.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Items whose label differs from before, in order.
    pub items: Vec<usize>,
    /// How the solves went: the worst of them, iterations added up.
    pub solve: Solve,
}

impl LiveLabels {
    pub(crate) fn new(
        labelling: Labelling,
        parts: LiveParts,
        parameters: &CheckedParameters,
    ) -> Result<Self, Error> {
        let LiveParts { candidates, shares, hypothesis, smoother, views } = parts;
        let (first, _) = &views[0];
        let lists = first.lists().ok_or_else(view::needs_nearest)?;
        // A consensus has the target's own graph in its smoother.
        let neighbours = match smoother {
            Some(_) => None,
            None => Some(symmetrise(&lists.within(first.targets(), NEIGHBOURS), first.similarity)?),
        };
        let views: Vec<LiveView> = views
            .into_iter()
            .map(|(nodes, soft)| LiveView::new(nodes, soft, candidates.len(), parameters))
            .collect::<Result<_, _>>()?;
        let reading = match (hypothesis, smoother, neighbours) {
            (Some(hypothesis), Some(smoother), _) => {
                let known = &labelling.known;
                let vote = Vote::new(&views, hypothesis, smoother, &shares, &candidates, known, parameters)?;
                Reading::Vote(Box::new(vote))
            }
            (_, _, Some(neighbours)) => Reading::Single { neighbours },
            _ => return Err(view::needs_nearest()),
        };
        Ok(LiveLabels {
            known_to_run: labelling.known.clone(),
            filled: match parameters.unreached {
                Unreached::Nearest => labelling.pseudo_labels.labels().to_vec(),
                _ => Vec::new(),
            },
            labelling,
            views,
            reading,
            candidates_of_run: candidates.clone(),
            candidates,
            parameters: parameters.clone(),
            pool: Arc::new(parameters.pool()?),
        })
    }

    /// The labels as they are now. Figures of rounds, quality and reach are those of the run.
    pub fn labelling(&self) -> &Labelling {
        &self.labelling
    }

    /// Names a class that there was none of. Returns the class of that name if there is one already.
    pub fn add_class(&mut self, name: &str) -> Result<ClassId, Error> {
        let classes = &self.labelling.classes;
        if let Some(class) = classes.find(name) {
            return Ok(class);
        }
        let mut names = classes.names().to_vec();
        names.push(name.to_string());
        self.labelling.classes = Classes::new(names)?;
        let count = self.labelling.classes.len();
        self.labelling.pseudo_labels.widen(count);
        self.labelling.source_counts.push(0);
        self.candidates.push(false);
        self.candidates_of_run.push(false);
        self.views.iter_mut().for_each(|view| view.widen(count));
        if let Reading::Vote(vote) = &mut self.reading {
            vote.widen(count);
        }
        Ok(count as ClassId - 1)
    }

    /// Puts these corrections in place of those before.
    pub fn set_known(&mut self, known: KnownLabels) -> Result<Change, Error> {
        known.check(self.labelling.pseudo_labels.len(), &self.labelling.classes)?;
        let pool = self.pool.clone();
        pool.install(|| self.apply(known))
    }

    /// The graph of the target's own neighbours.
    fn neighbours(&self) -> &Affinity<'static> {
        match &self.reading {
            Reading::Single { neighbours } => neighbours,
            Reading::Vote(vote) => vote.neighbours(),
        }
    }

    fn apply(&mut self, known: KnownLabels) -> Result<Change, Error> {
        let items = self.labelling.pseudo_labels.len();
        let before = self.labelling.pseudo_labels.labels().to_vec();
        let mut touched = vec![false; items];
        let mut classes: Vec<ClassId> = Vec::new();
        for item in differing(&self.labelling.known, &known) {
            touched[item] = true;
            classes.extend(self.labelling.known.get(item));
            classes.extend(known.get(item));
        }
        classes.sort_unstable();
        classes.dedup();
        let columns: Vec<Column> =
            classes.iter().map(|&class| Column::new(class, &self.known_to_run, &known)).collect();

        let mut candidates = self.candidates_of_run.clone();
        known.iter().for_each(|(_, class)| candidates[class as usize] = true);
        if candidates != self.candidates {
            touched.fill(true);
        }
        self.candidates = candidates;
        self.labelling.known = known;

        let limits = Limits::from(&self.parameters);
        let mut solves = Vec::new();
        for view in &mut self.views {
            solves.push(view.solve(&columns, self.parameters.alpha, limits, &mut touched)?);
            view.reach(&self.labelling.known, &mut touched);
        }
        let touched = match &mut self.reading {
            Reading::Single { .. } => listed(&touched),
            Reading::Vote(vote) => {
                let (views, candidates) = (&self.views, &self.candidates);
                let polls = in_parts(&listed(&touched), |items| vote.poll(views, items, candidates));
                note_opinions(&mut self.labelling.views, &polls);
                vote.note(&polls, &self.labelling.known);
                solves.push(vote.smooth(candidates, limits, &mut touched)?);
                listed(&touched)
            }
        };
        let parts = in_parts(&touched, |items| match &self.reading {
            Reading::Single { .. } => self.views[0].read(items, &self.candidates),
            Reading::Vote(vote) => vote.blended(items, &self.candidates),
        });
        self.put(parts);
        let changed = |&item: &usize| before[item] != self.labelling.pseudo_labels.labels()[item];
        Ok(Change { items: (0..items).filter(changed).collect(), solve: Solve::together(&solves) })
    }

    /// Writes the labels of some items, and what follows from a person's word, the least confidence and the reach.
    fn put(&mut self, parts: Vec<(Vec<usize>, PseudoLabels)>) {
        for (items, part) in parts {
            self.labelling.pseudo_labels.scatter(&items, &part);
            for &item in &items {
                let labelling = &mut self.labelling;
                if let Some(class) = labelling.known.get(item) {
                    labelling.pseudo_labels.clamp(item, class);
                }
                labelling.pseudo_labels.mark_low(item, self.parameters.min_confidence);
                if let Some(&Some(class)) = self.filled.get(item)
                    && labelling.pseudo_labels.status()[item] == Status::Unreached
                {
                    labelling.pseudo_labels.fill(item, class);
                }
                if labelling.nearest_labels.is_some() {
                    let taken = labelling.is_unknown(item).then(|| labelling.pseudo_labels.take_label(item));
                    if let Some(nearest) = &mut labelling.nearest_labels {
                        nearest[item] = taken.flatten();
                    }
                }
            }
        }
    }
}

/// What each view says of its own, before the vote.
fn note_opinions(opinions: &mut [Opinion], polls: &[(Vec<usize>, Poll)]) {
    for (items, poll) in polls {
        for (opinion, ballot) in opinions.iter_mut().zip(&poll.ballots) {
            if let Some(last) = opinion.labels_by_round.last_mut() {
                items.iter().zip(ballot.labels()).for_each(|(&item, &label)| last[item] = label);
            }
        }
    }
}

/// Rounds to a multiple of `step`, if there is a step.
fn rounded(value: f32, step: f32) -> f32 {
    if step > 0.0 { (value / step).round() * step } else { value }
}

/// Items of which something else is known.
fn differing(before: &KnownLabels, after: &KnownLabels) -> Vec<usize> {
    let mut items: Vec<usize> = before.iter().chain(after.iter()).map(|(item, _)| item).collect();
    items.retain(|&item| before.get(item) != after.get(item));
    items.sort_unstable();
    items.dedup();
    items
}

fn listed(touched: &[bool]) -> Vec<usize> {
    (0..touched.len()).filter(|&item| touched[item]).collect()
}

/// Does `work` for some items at a time.
fn in_parts<T: Send>(items: &[usize], work: impl Fn(&[usize]) -> T + Sync) -> Vec<(Vec<usize>, T)> {
    items.par_chunks(ITEMS_PER_TASK).map(|items| (items.to_vec(), work(items))).collect()
}
