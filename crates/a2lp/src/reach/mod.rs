//! Classes that the source lacks: which target items match nothing in the source, whether that can be told at all, and which of
//! them look alike.
//!
//! The *reach* of a target item tells how much of the source points at its surroundings: 1 on average, small where the source has
//! nothing like it. No label of the target is used.

mod groups;
mod threshold;
mod votes;
mod walk;

pub use groups::UnknownGroup;

use crate::error::{Domain, Error};
use crate::features::FeatureMatrix;
use crate::labels::ClassId;
use crate::neighbours::{NeighbourLists, Wanted};
use crate::parameters::{CheckedParameters, GraphMethod, Unknown};
use crate::propagation::GoOn;
use crate::setup::Setup;
use crate::similarity::Similarity;
use serde::{Deserialize, Serialize};
use std::fmt;
use threshold::{find_threshold, spread};
use votes::Votes;
use walk::Walk;

/// A row votes for this many rows of the other domain, and a flagged item looks at this many of its own.
const VOTES: usize = 5;
/// Neighbours of a row in its own domain, among which votes are averaged.
const NEIGHBOURS: usize = 10;
/// How far a walk goes that averages votes: it stops with probability 1 − α at each step.
pub(crate) const ALPHA: f64 = 0.95;
/// The same, for the way back of the labels.
const ALPHA_BACK: f64 = 0.5;
/// Rounds after which the weights of the rows have settled.
pub(crate) const ROUNDS: usize = 3;
/// A threshold means something only if reach is as even as this over the items above it…
const MOST_SPREAD: f64 = 0.8;
/// …if this share of the source gets its own class back…
const LEAST_RETURN: f64 = 0.75;
/// …and if both domains have as many rows as this.
const LEAST_ROWS: usize = 2 * NEIGHBOURS;

/// What can be said about classes that the source lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// There is no sign of such a class.
    None,
    /// The target holds items of such classes.
    New,
    /// Items match nothing in the source, and much of the source matches nothing in the target: a new class, or a known class
    /// that moved.
    Unmatched,
    /// The domains do not allow a threshold; reach only ranks the items.
    CannotTell,
}

impl Verdict {
    /// The word used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::None => "none",
            Verdict::New => "new",
            Verdict::Unmatched => "unmatched",
            Verdict::CannotTell => "cannot-tell",
        }
    }
}

/// What the verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Items of the target; below 20 no threshold is used.
    pub items: usize,
    /// Rows of the source; below 20 no threshold is used.
    pub source_rows: usize,
    /// Did the solver reach its tolerance? If not, no threshold is used.
    pub settled: bool,
    /// ln(0.9 quantile / median) of the reach of the items above the threshold; above 0.8 it is too uneven for a threshold. `None`
    /// if the median is 0.
    pub spread: Option<f64>,
    /// Share of the source whose class survives the way to the target and back; below 0.75 no threshold is used.
    pub label_return: f64,
    /// Share of the target below the threshold.
    pub below: f64,
    /// Share of the source below its own threshold.
    pub source_below: f64,
}

impl Evidence {
    fn verdict(&self) -> Verdict {
        match () {
            () if !self.allows_threshold() => Verdict::CannotTell,
            () if self.below == 0.0 => Verdict::None,
            () if self.source_below < self.below / 2.0 => Verdict::New,
            () => Verdict::Unmatched,
        }
    }

    /// Why no threshold can be used, in words.
    fn obstacles(&self) -> Vec<String> {
        let mut obstacles = Vec::new();
        for (domain, rows) in [(Domain::Target, self.items), (Domain::Source, self.source_rows)] {
            if rows < LEAST_ROWS {
                obstacles.push(format!("the {domain} has fewer than {LEAST_ROWS} rows"));
            }
        }
        if !self.settled {
            obstacles.push("the solver did not reach its tolerance".into());
        }
        match self.spread {
            Some(spread) if spread <= MOST_SPREAD => {}
            Some(spread) => {
                obstacles.push(format!("reach is too uneven (spread {spread:.2}, at most {MOST_SPREAD})"))
            }
            None => obstacles.push("most items have no reach at all".into()),
        }
        if self.label_return < LEAST_RETURN {
            obstacles.push(format!(
                "only {:.0} % of the source gets its class back from the target (at least {:.0} %)",
                100.0 * self.label_return,
                100.0 * LEAST_RETURN
            ));
        }
        obstacles
    }

    fn allows_threshold(&self) -> bool {
        self.obstacles().is_empty()
    }
}

/// Which target items match nothing in the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// Of every target item.
    pub values: Vec<f32>,
    /// Items below it match nothing in the source, if the verdict allows a threshold.
    pub threshold: f64,
    /// What can be said.
    pub verdict: Verdict,
    /// What the verdict rests on.
    pub evidence: Evidence,
    /// Unknown items that look alike, the largest group first: candidates for new classes.
    pub groups: Vec<UnknownGroup>,
}

impl Reach {
    /// Does this item match nothing in the source? Never, if the verdict allows no threshold.
    pub fn is_unknown(&self, item: usize) -> bool {
        matches!(self.verdict, Verdict::New | Verdict::Unmatched) && self.is_below(item)
    }

    /// The number of unknown items.
    pub fn unknown_items(&self) -> usize {
        (0..self.values.len()).filter(|&item| self.is_unknown(item)).count()
    }

    fn is_below(&self, item: usize) -> bool {
        f64::from(self.values[item]) < self.threshold
    }

    /// Measures reach over neighbours in both domains, as [`search`] finds them.
    pub(crate) fn measure(
        lists: &NeighbourLists,
        source: &[ClassId],
        classes: usize,
        go_on: GoOn<'_>,
    ) -> Result<Self, Error> {
        let (sources, targets) = (0..source.len(), source.len()..lists.nodes());
        let in_source = Walk::within(lists, sources.clone())?;
        let in_target = Walk::within(lists, targets.clone())?;
        let from_source = Votes::read(lists, sources.clone(), targets.clone());
        let from_target = Votes::read(lists, targets.clone(), sources);
        let balance = class_balance(source, classes);

        let mut settled = true;
        let mut keep = |(values, converged): (Vec<f32>, bool)| {
            settled &= converged;
            values
        };
        let (mut reach, mut back) = (Vec::new(), Vec::new());
        let (mut source_weights, mut target_weights) = (vec![1f64; source.len()], vec![1f64; targets.len()]);
        for _ in 0..ROUNDS {
            let balanced: Vec<f64> = balance.iter().zip(&source_weights).map(|(b, w)| b * w).collect();
            let total = target_weights.iter().sum();
            let votes = from_source.count(&balanced).scaled_to(total);
            reach = keep(in_target.average(votes, ALPHA, go_on)?);
            let total = source_weights.iter().sum();
            let votes = from_target.count(&target_weights).scaled_to(total);
            back = keep(in_source.average(votes, ALPHA, go_on)?);
            target_weights = reach.iter().map(|&g| f64::from(g).min(1.0)).collect();
            source_weights = back.iter().map(|&g| f64::from(g).min(1.0)).collect();
        }

        let (threshold, source_threshold) = (find_threshold(&reach), find_threshold(&back));
        let returned = {
            let balanced: Vec<f64> = balance.iter().zip(&source_weights).map(|(b, w)| b * w).collect();
            let there = from_source.count_by_class(&balanced, source, classes);
            let there = keep(in_target.average(there, ALPHA, go_on)?);
            let back = from_target.count_rows(&there, &target_weights, classes);
            keep(in_source.average(back, ALPHA_BACK, go_on)?)
        };
        let below = |values: &[f32], threshold: f64| -> Vec<bool> {
            values.iter().map(|&value| f64::from(value) < threshold).collect()
        };
        let source_below = balance.iter().zip(below(&back, source_threshold));
        let evidence = Evidence {
            items: targets.len(),
            source_rows: source.len(),
            settled,
            spread: spread(&reach, threshold),
            label_return: label_return(&returned, source, classes, &source_weights),
            below: below(&reach, threshold).iter().filter(|&&below| below).count() as f64
                / targets.len() as f64,
            source_below: source_below.filter(|(_, below)| *below).map(|(b, _)| b).sum::<f64>()
                / source.len() as f64,
        };
        let verdict = evidence.verdict();
        let mut measured = Reach { values: reach, threshold, verdict, evidence, groups: Vec::new() };
        measured.groups = groups::find(lists, source.len(), &|item| measured.is_unknown(item));
        Ok(measured)
    }
}

/// In words, for a summary.
impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Evidence { items, below, source_below, .. } = self.evidence;
        let unknown = format!("{} of {items} items ({:.1} %)", self.unknown_items(), 100.0 * below);
        match self.verdict {
            Verdict::None => f.write_str("no sign of a class that the source lacks"),
            Verdict::New => write!(f, "probably of classes that the source lacks: {unknown}"),
            Verdict::Unmatched => write!(
                f,
                "matched by nothing in the source: {unknown}; matched by nothing in the target: {:.1} % of the source. So this is a class that the source lacks, or a known class that moved",
                100.0 * source_below
            ),
            Verdict::CannotTell => write!(
                f,
                "cannot tell whether the target holds classes that the source lacks, because {}; reach still ranks the items",
                self.evidence.obstacles().join(", and ")
            ),
        }
    }
}

impl CheckedParameters {
    /// Is reach measured for this many rows? Where the run must prune its search, reach takes another one as long: then it is measured
    /// only if items are to be flagged.
    pub fn measures_reach(&self, rows: usize, columns: usize) -> bool {
        let k = self.others().map_or(rows, |k| k.min(rows));
        let search = self.graph_method.resolve(rows, columns, Wanted::Nearest(k));
        let takes_long =
            self.others().is_some() && matches!(search, GraphMethod::Pruned | GraphMethod::Nndescent);
        match self.unknown {
            Unknown::Off => false,
            Unknown::Rank => !takes_long,
            Unknown::Flag => true,
        }
    }
}

/// The neighbours that reach is measured on.
pub(crate) fn wanted(first_target: usize) -> Wanted {
    Wanted::OfEach { first_target, source: NEIGHBOURS, target: NEIGHBOURS }
}

/// Finds them, among unit rows less the point half-way between the means of the domains, of unit length again.
pub(crate) fn search(
    mut rows: FeatureMatrix,
    first_target: usize,
    setup: &Setup<'_>,
) -> Result<NeighbourLists, Error> {
    rows.normalise_rows();
    let middle = middle(&rows.mean(0..first_target), &rows.mean(first_target..rows.rows()));
    rows.subtract(0..rows.rows(), &middle);
    rows.normalise_rows();
    Ok(setup.search(&rows, wanted(first_target), Similarity::Cosine)?.0)
}

/// The point half-way between two.
pub(crate) fn middle(source: &[f64], target: &[f64]) -> Vec<f64> {
    source.iter().zip(target).map(|(s, t)| 0.5 * (s + t)).collect()
}

/// Weights of the source rows that let all classes weigh alike; 1 on average.
fn class_balance(source: &[ClassId], classes: usize) -> Vec<f64> {
    let mut counts = vec![0usize; classes];
    source.iter().for_each(|&class| counts[class as usize] += 1);
    let present = counts.iter().filter(|&&count| count > 0).count() as f64;
    let weight = |&class: &ClassId| source.len() as f64 / present / counts[class as usize] as f64;
    source.iter().map(weight).collect()
}

/// The share of the source rows that get their own class back: a mean over the classes, which count as much as their rows are
/// reached.
fn label_return(scores: &[f32], source: &[ClassId], classes: usize, weights: &[f64]) -> f64 {
    let (mut right, mut all, mut reached) = (vec![0f64; classes], vec![0f64; classes], vec![0f64; classes]);
    for ((scores, &class), weight) in scores.chunks_exact(classes.max(1)).zip(source).zip(weights) {
        let class = class as usize;
        let best =
            (1..classes).fold(0, |best, other| if scores[other] > scores[best] { other } else { best });
        right[class] += f64::from(u8::from(best == class));
        all[class] += 1.0;
        reached[class] += weight;
    }
    let present = || (0..classes).filter(|&class| all[class] > 0.0);
    let total: f64 = present().map(|class| reached[class] / all[class]).sum();
    let returned: f64 =
        present().map(|class| right[class] / all[class] * (reached[class] / all[class])).sum();
    if total > 0.0 { returned / total } else { 0.0 }
}

#[cfg(test)]
mod tests;
