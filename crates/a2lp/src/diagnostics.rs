//! What looks wrong about a result, with numbers and advice. Nothing here knows the truth.

use crate::anchors::Anchor;
use crate::labelling::Labelling;
use crate::neighbours::GraphReport;
use crate::pseudo_labels::Status;
use crate::quality::LOW;
use crate::reach::Reach;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something the user should look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Warning {
    /// Items no label can reach.
    Unreached {
        /// How many.
        items: usize,
        /// Of how many.
        of: usize,
    },
    /// Items whose scores are within the solver's error.
    Weak {
        /// How many.
        items: usize,
        /// Of how many.
        of: usize,
    },
    /// Source classes that no target item got.
    EmptyClasses {
        /// Their names.
        classes: Vec<String>,
    },
    /// Many classes of the source are probably absent from the target.
    AbsentClasses {
        /// Their names.
        classes: Vec<String>,
        /// Classes of the source.
        of: usize,
    },
    /// One class takes nearly all of the target.
    Dominant {
        /// Its name.
        class: String,
        /// Its share of the target.
        share: f64,
        /// Its share of the source.
        source_share: f64,
    },
    /// Plain label propagation gives nearly all items one class, and the consensus does not.
    Scattered {
        /// Its name.
        class: String,
        /// Its share of the target by plain label propagation.
        share: f64,
        /// Its share of the target in the end.
        final_share: f64,
    },
    /// Anchors made of very few items, where the source would let one expect many.
    ThinAnchors {
        /// Their classes.
        classes: Vec<String>,
    },
    /// The anchors overturned plain label propagation on many items.
    Overturned {
        /// How many.
        items: usize,
        /// Of how many.
        of: usize,
    },
    /// The solver did not reach its tolerance.
    NotConverged {
        /// The first round in which that happened.
        round: usize,
        /// Iterations spent.
        iterations: usize,
        /// Relative residual reached.
        residual: f64,
    },
    /// The search missed many neighbours.
    MissedNeighbours {
        /// Share that was found, on a sample of rows.
        recall: f64,
    },
    /// The labels look inconsistent, whatever they are.
    LowQuality {
        /// Their score.
        score: f64,
    },
    /// Items that match nothing in the source, and have a label nevertheless.
    UnknownItems {
        /// How many.
        items: usize,
        /// Of how many.
        of: usize,
    },
    /// Labels were still changing in the last round.
    Unsettled {
        /// How many changed.
        items: usize,
        /// Of how many.
        of: usize,
    },
}

/// Share of the source's classes that may be absent without remark.
const ABSENT: f64 = 0.25;
/// A class with at least this share of the target is suspicious…
const DOMINANT: f64 = 0.8;
/// …when it is at least this many times its share of the source.
const DOMINANT_RATIO: f64 = 1.5;
/// An anchor of fewer items is remarked on…
const THIN: usize = 3;
/// …when the class would have at least this many, were the target made up like the source.
const EXPECTED: f64 = 10.0;
/// Share of labels the anchors may overturn without remark.
const OVERTURNED: f64 = 0.25;
/// Share of the neighbours below which a search is remarked on.
const LOW_RECALL: f64 = 0.95;
/// Share of labels that may change in the last round without remark.
const UNSETTLED: f64 = 0.02;

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |items: &usize, of: &usize| 100.0 * *items as f64 / (*of).max(1) as f64;
        match self {
            Warning::Unreached { items, of } => write!(
                f,
                "{items} of {of} target items ({:.1} %) have no path to any label and stay unlabelled; more neighbours may join them",
                percent(items, of)
            ),
            Warning::Weak { items, of } => write!(
                f,
                "{items} of {of} target items ({:.1} %) are so far from any label that their scores are within the solver's error; more neighbours or a larger alpha may help",
                percent(items, of)
            ),
            Warning::EmptyClasses { classes } => {
                let noun = if classes.len() == 1 { "source class" } else { "source classes" };
                write!(f, "{} {noun} got no target item: {}", classes.len(), some_of(classes))
            }
            Warning::AbsentClasses { classes, of } => write!(
                f,
                "{} of the {of} source classes are probably absent from the target: {}; check that this is so",
                classes.len(),
                some_of(classes)
            ),
            Warning::ThinAnchors { classes } => write!(
                f,
                "the anchors of {} of the classes were made of fewer than {THIN} items: {}; what they say of their class is little",
                classes.len(),
                some_of(classes)
            ),
            Warning::Dominant { class, share, source_share } => write!(
                f,
                "class '{class}' takes {:.0} % of the target, but is {:.0} % of the source; the domains may be too far apart for these features",
                100.0 * share,
                100.0 * source_share
            ),
            Warning::Scattered { class, share, final_share } => write!(
                f,
                "plain label propagation gave class '{class}' to {:.0} % of the target, the consensus gave it to {:.0} %; if the target holds that class alone, the consensus cannot see it, so compare with lp",
                100.0 * share,
                100.0 * final_share
            ),
            Warning::Overturned { items, of } => write!(
                f,
                "the anchors overturned plain label propagation on {items} of {of} items ({:.1} %); compare with one round",
                percent(items, of)
            ),
            Warning::NotConverged { round, iterations, residual } => write!(
                f,
                "round {round}: the solver stopped after {iterations} iterations at a relative residual of {residual:.1e}; allow a larger tolerance or use the dense solver"
            ),
            Warning::MissedNeighbours { recall } => write!(
                f,
                "the search found only {:.1} % of the nearest neighbours on a sample of rows; the exact search finds all",
                100.0 * recall
            ),
            Warning::LowQuality { score } => write!(
                f,
                "the labels' quality score is {score:.3}, below {LOW}: many of them are probably wrong; check some by hand, and try another method or other features"
            ),
            Warning::UnknownItems { items, of } => write!(
                f,
                "{items} of {of} target items ({:.1} %) match nothing in the source, so their labels are probably wrong; look at those with the smallest reach",
                percent(items, of)
            ),
            Warning::Unsettled { items, of } => write!(
                f,
                "{items} of {of} labels ({:.1} %) still changed in the last round; more rounds may settle them",
                percent(items, of)
            ),
        }
    }
}

/// The first few names.
fn some_of(classes: &[String]) -> String {
    let names = classes.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
    match classes.len().saturating_sub(8) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

/// A warning when too few neighbours were found.
pub(crate) fn missed_neighbours(report: &GraphReport) -> Option<Warning> {
    (report.recall < LOW_RECALL).then_some(Warning::MissedNeighbours { recall: report.recall })
}

impl Labelling {
    /// Centring takes the class away that all items share, so a consensus may spread a target of one class over several.
    fn scattered(&self) -> Option<Warning> {
        let of = self.pseudo_labels.len();
        let share = |count: usize| count as f64 / of.max(1) as f64;
        let last = self.pseudo_labels.class_counts();
        let shares =
            self.propagated_counts.iter().zip(&last).map(|(&first, &last)| (share(first), share(last)));
        let (class, (share, final_share)) = shares
            .enumerate()
            .find(|(_, (first, last))| *first >= DOMINANT && *first >= DOMINANT_RATIO * last)?;
        let is_vote = of > 1 && !self.views.is_empty();
        is_vote.then(|| Warning::Scattered { class: self.classes.names()[class].clone(), share, final_share })
    }

    /// Everything about this result that the user should look at, most serious first.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let of = self.pseudo_labels.len();
        if let Some(round) = self.rounds.iter().find(|r| !r.solve.converged) {
            warnings.push(Warning::NotConverged {
                round: round.round,
                iterations: round.solve.iterations,
                residual: round.solve.residual,
            });
        }
        warnings.extend(self.graph.as_ref().and_then(missed_neighbours));
        let unreached = self.pseudo_labels.count(Status::Unreached);
        if unreached > 0 {
            warnings.push(Warning::Unreached { items: unreached, of });
        }
        let weak = self.pseudo_labels.count(Status::Weak);
        if weak > 0 {
            warnings.push(Warning::Weak { items: weak, of });
        }
        let counts = self.pseudo_labels.class_counts();
        let empty: Vec<String> = (0..counts.len())
            .filter(|&c| self.source_counts[c] > 0 && counts[c] == 0)
            .map(|c| self.classes.names()[c].clone())
            .collect();
        let absent: Vec<String> =
            self.absent_classes().into_iter().map(|class| self.classes.name(class).to_string()).collect();
        let classes = self.source_counts.iter().filter(|&&count| count > 0).count();
        // When nothing is reached that is the whole story.
        if unreached < of {
            if absent.len() > 1 && absent.len() as f64 >= ABSENT * classes as f64 {
                warnings.push(Warning::AbsentClasses { classes: absent, of: classes });
            } else if !empty.is_empty() {
                warnings.push(Warning::EmptyClasses { classes: empty });
            }
        }
        let source: usize = self.source_counts.iter().sum();
        for (class, &count) in counts.iter().enumerate() {
            let share = count as f64 / of.max(1) as f64;
            let source_share = self.source_counts[class] as f64 / source.max(1) as f64;
            if of > 1 && share >= DOMINANT && share >= DOMINANT_RATIO * source_share {
                let class = self.classes.names()[class].clone();
                warnings.push(Warning::Dominant { class, share, source_share });
            }
        }
        warnings.extend(self.scattered());
        let newest = self.anchors.iter().map(|anchor| anchor.round).max();
        let thin = |anchor: &&Anchor| {
            let share = self.source_counts[anchor.class as usize] as f64 / source.max(1) as f64;
            Some(anchor.round) == newest && anchor.items < THIN && share * of as f64 >= EXPECTED
        };
        let thin = self.anchors.iter().filter(thin).map(|anchor| self.classes.name(anchor.class).to_string());
        let thin: Vec<String> = thin.collect();
        if !thin.is_empty() {
            warnings.push(Warning::ThinAnchors { classes: thin });
        }
        if let Some(quality) = self.quality.filter(|quality| quality.score < LOW) {
            warnings.push(Warning::LowQuality { score: quality.score });
        }
        let unknown = self.reach.as_ref().map_or(0, Reach::unknown_items);
        if unknown > 0 && self.nearest_labels.is_none() {
            warnings.push(Warning::UnknownItems { items: unknown, of });
        }
        if let (Some(first), Some(last)) = (self.labels_by_round.first(), self.labels_by_round.last()) {
            let items = first.iter().zip(last).filter(|(a, b)| a != b).count();
            if items as f64 > OVERTURNED * of as f64 {
                warnings.push(Warning::Overturned { items, of });
            }
        }
        if let Some(last) = self.rounds.last()
            && last.changed as f64 > UNSETTLED * of as f64
        {
            warnings.push(Warning::Unsettled { items: last.changed, of });
        }
        warnings
    }
}
