//! What `auto` means: the method of a run, from the size of the data and the other settings. Nothing of the machine decides,
//! so the same data get the same labels everywhere.

use crate::parameters::{CheckedParameters, Method};
use crate::plan::Shape;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most seconds that `auto` may plan for…
const MOST_SECS: f64 = 600.0;
/// …on this many cores, whatever the machine has.
const CORES: usize = 2;

/// The method that a run uses, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodChoice {
    /// The method; never `Auto`.
    pub method: Method,
    /// The views of a consensus; 1 for the other methods.
    pub views: usize,
    /// Why it was taken.
    pub reason: MethodReason,
}

/// Why a run uses its method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MethodReason {
    /// It was asked for.
    Asked,
    /// `auto` takes it if nothing speaks against it.
    Best,
    /// The next better one would take more than ten minutes on two cores.
    Time,
    /// The consensus cannot use this setting.
    Setting(String),
}

impl MethodChoice {
    /// The method of these parameters, because the user asked for it.
    pub(crate) fn asked(parameters: &CheckedParameters) -> Self {
        let method = parameters.method;
        let views = if method == Method::Consensus { parameters.views } else { 1 };
        MethodChoice { method, views, reason: MethodReason::Asked }
    }
}

/// For the first line of a summary.
impl fmt::Display for MethodChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = MOST_SECS / 60.0;
        match self.method {
            Method::Consensus => write!(f, "consensus of {} views", self.views)?,
            method => f.write_str(method.as_str())?,
        }
        match &self.reason {
            MethodReason::Asked => Ok(()),
            MethodReason::Best => f.write_str(" (auto)"),
            MethodReason::Time => {
                let better = if self.views > 1 { "three views" } else { "the consensus" };
                write!(f, " (auto: {better} would take more than {minutes} minutes on {CORES} cores)")
            }
            MethodReason::Setting(setting) => write!(f, " (auto: the consensus cannot use {setting})"),
        }
    }
}

impl CheckedParameters {
    /// The same with the method that `auto` stands for on data of this shape, and why. `graph_is_given`: the run gets its
    /// neighbours from the caller.
    pub fn resolve(&self, shape: Shape, graph_is_given: bool) -> (CheckedParameters, MethodChoice) {
        let chosen = |parameters: CheckedParameters, reason| {
            let choice = MethodChoice { reason, ..MethodChoice::asked(&parameters) };
            (parameters, choice)
        };
        if self.method != Method::Auto {
            return chosen(self.clone(), MethodReason::Asked);
        }
        let setting = match self.against_consensus() {
            _ if graph_is_given => Some("a given graph".to_string()),
            // Whoever asks for one round wants plain label propagation.
            _ if self.rounds == 1 => Some("a single round".to_string()),
            setting => setting.map(|(name, value)| format!("{name} {value}")),
        };
        if let Some(setting) = setting {
            return chosen(self.with_method(Method::A2lp, self.views), MethodReason::Setting(setting));
        }
        for views in (2..=self.views).rev() {
            let consensus = self.with_method(Method::Consensus, views);
            if consensus.plan_on(shape, CORES).secs() <= MOST_SECS {
                let reason = if views == self.views { MethodReason::Best } else { MethodReason::Time };
                return chosen(consensus, reason);
            }
        }
        chosen(self.with_method(Method::A2lp, self.views), MethodReason::Time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{Parameters, SourceNodes};
    use crate::similarity::Similarity;

    fn resolved(parameters: Parameters, rows: usize, columns: usize) -> MethodChoice {
        let shape = Shape { source_rows: rows / 2, target_rows: rows - rows / 2, columns, classes: 12 };
        parameters.check().unwrap().resolve(shape, false).1
    }

    #[test]
    fn auto_takes_fewer_views_for_more_rows_and_never_more_again() {
        let views = |rows| resolved(Parameters::new(), rows, 512).views;
        let all: Vec<usize> = (8..26).map(|power| views(1 << power)).collect();
        assert!(
            all.is_sorted_by(|a, b| a >= b) && all.first() == Some(&3) && all.last() == Some(&1),
            "{all:?}"
        );
        let small = resolved(Parameters::new(), 8_000, 512);
        assert_eq!(small.to_string(), "consensus of 3 views (auto)");
        // The machine has no say.
        for rows in [1 << 18, 1 << 20, 1 << 21] {
            assert_eq!(
                resolved(Parameters::new().threads(1), rows, 512),
                resolved(Parameters::new().threads(64), rows, 512)
            );
        }
    }

    #[test]
    fn auto_leaves_other_settings_as_they_are() {
        let gaussian = resolved(Parameters::new().similarity(Similarity::Gaussian { sigma2: 1.0 }), 100, 5);
        assert_eq!(gaussian.to_string(), "a2lp (auto: the consensus cannot use similarity gaussian)");
        let centres = resolved(Parameters::new().source_nodes(SourceNodes::Centres), 100, 5);
        assert_eq!(centres.to_string(), "a2lp (auto: the consensus cannot use source-nodes centres)");
        let single = resolved(Parameters::new().rounds(1), 100, 5);
        assert_eq!(single.to_string(), "a2lp (auto: the consensus cannot use a single round)");
        assert_eq!(resolved(Parameters::new().views(2), 100, 5).to_string(), "consensus of 2 views (auto)");
        assert_eq!(resolved(Parameters::paper(), 100, 5).to_string(), "a2lp");
    }
}
