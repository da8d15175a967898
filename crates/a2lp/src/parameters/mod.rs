//! The parameters of a run. [`Parameters`] is the builder; [`Parameters::check`] turns it into [`CheckedParameters`], the only
//! thing a run accepts, so no parameter can be wrong once work has begun.

mod choices;
mod setting;

pub use choices::{
    AnchorMode, AnchorSpace, AnchorWeights, GraphMethod, LabelWeight, Method, Mix, Neighbours, Solver,
    SourceNodes, Unknown, Unreached,
};
pub use setting::{Group, Kind, ParameterInfo, Setting, Value};

use crate::error::Error;
use crate::similarity::Similarity;
use serde::Serialize;
use std::sync::OnceLock;

macro_rules! parameters {
    (
        $($(#[doc = $help:literal])+ $name:ident($given:ty): $type:ty = $default:expr, $python:literal, $value:literal, $group:ident;)*
        beside the settings that make a result:
        $($(#[doc = $side_help:literal])+ $side:ident($side_given:ty): $side_type:ty = $side_default:expr, $side_python:literal, $side_value:literal, $side_group:ident;)*
    ) => {
        /// The builder. Every setter takes and returns `self`; defaults are the recommended ones.
        ///
        /// ```
        /// let parameters = a2lp::Parameters::new().neighbours(20).alpha(0.5).rounds(10).check()?;
        /// # Ok::<(), a2lp::Error>(())
        /// ```
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[must_use = "nothing happens before `check` and a run"]
        pub struct Parameters {
            $(pub(crate) $name: $type,)*
            $(#[serde(skip)] pub(crate) $side: $side_type,)*
        }

        impl Default for Parameters {
            fn default() -> Self {
                Parameters { $($name: $default,)* $($side: $side_default,)* }
            }
        }

        #[allow(clippy::useless_conversion)]
        impl Parameters {
            $($(#[doc = $help])+
            pub fn $name(mut self, $name: $given) -> Self {
                self.$name = $name.into();
                self
            })*
            $($(#[doc = $side_help])+
            pub fn $side(mut self, $side: $side_given) -> Self {
                self.$side = $side.into();
                self
            })*

            /// Every parameter, as front ends know it.
            pub fn table() -> &'static [ParameterInfo] {
                static TABLE: OnceLock<Vec<ParameterInfo>> = OnceLock::new();
                TABLE.get_or_init(|| {
                    let defaults = Parameters::new();
                    vec![
                        $(info!(defaults, $name: $type, concat!($($help),+), $python, $value, $group),)*
                        $(info!(defaults, $side: $side_type, concat!($($side_help),+), $side_python, $side_value, $side_group),)*
                    ]
                })
            }
        }
    };
}

macro_rules! info {
    ($defaults:ident, $name:ident: $type:ty, $help:expr, $python:literal, $value:literal, $group:ident) => {
        ParameterInfo {
            // Made once in the life of a process.
            name: Box::leak(stringify!($name).replace('_', "-").into_boxed_str()),
            python: $python,
            value_name: $value,
            help: $help,
            group: Group::$group,
            kind: <$type as Setting>::kind(),
            default: Some($defaults.$name.show()),
            set: |parameters, value| match <$type as Setting>::read(value) {
                Some(value) => {
                    parameters.$name = value;
                    true
                }
                None => false,
            },
        }
    };
}

// One entry declares a parameter everywhere: the builder, the command line, files of options, Python and the documentation.
// The doc comment is the help text.
parameters! {
    /// Method: lp (label propagation, once), a2lp (with anchors, the paper's), consensus (two or
    /// three differently built graphs that vote in every round: two to six times as long, more reliable where the domains
    /// are far apart or the target has other classes or shares). Auto takes the consensus of three views; of two views, or
    /// a2lp, if that would take more than ten minutes on two cores; a2lp if the consensus cannot use another setting
    method(Method): Method = Method::Auto, "method", "METHOD", Common;
    /// Graphs that vote in a consensus: 2 (raw, centred) or 3 (and discriminant)
    views(usize): usize = 3, "views", "N", Everyday;
    /// Class mix of the target that a consensus assumes: same (as the source's), own (its own; classes may be absent), or auto:
    /// try both for three rounds, and go on with the one that fits the graph better
    mix(Mix): Mix = Mix::Auto, "mix", "MIX", Everyday;
    /// k, the neighbours of each node, or `all`. Raise it when items stay unreached, lower it for classes with few items
    neighbours(usize): Neighbours = Neighbours::Nearest(20), "n_neighbors", "K", Common;
    /// How far labels travel (α), between 0 and 1. Raise it when the domains are far apart and clusters are clean
    alpha(f64): f64 = 0.5, "alpha", "ALPHA", Common;
    /// Rounds of propagation with new anchors before each; 1 is plain label propagation
    rounds(usize): usize = 10, "n_rounds", "N", Everyday;
    /// How alike two vectors are. Cosine suits network features; the others use the vectors' lengths as well
    similarity(Similarity): Similarity = Similarity::Cosine, "metric", "SIMILARITY", Everyday;
    /// Search for neighbours. Exact compares every pair in full. Screened compares six bits of every number first and
    /// misses next to nothing; pruned compares only groups of rows nearby and misses about one in a hundred; nndescent is
    /// the paper's. These three report how many neighbours they missed. Auto takes exact for small data, screened or
    /// pruned for large
    graph_method(GraphMethod): GraphMethod = GraphMethod::Auto, "graph_method", "SEARCH", Everyday;
    /// Source rows that become nodes: all, or one centre per class, for a source far larger than the target
    source_nodes(SourceNodes): SourceNodes = SourceNodes::All, "source_nodes", "NODES", Everyday;
    /// Label of items that no label reaches: none, or the label of the most similar labelled node
    unreached(Unreached): Unreached = Unreached::Unlabelled, "unreached", "WHAT", Everyday;
    /// Mark items below this confidence (0 to 1) as low-confidence; they keep their label
    min_confidence(f32): f32 = 0.0, "min_confidence", "W", Common;
    /// How the linear system is solved: auto is cg. Dense needs 8·n² bytes, and takes an alpha above 1 too
    solver(Solver): Solver = Solver::Auto, "solver", "SOLVER", Papers;
    /// Relative residual at which cg stops. Raise it if a run does not converge
    tolerance(f64): f64 = 1e-6, "tol", "R", Papers;
    /// Iterations after which cg gives up
    max_iterations(usize): usize = 1000, "max_iter", "N", Papers;
    /// Weights of the items in an anchor; uniform is the paper's ablation
    anchor_weights(AnchorWeights): AnchorWeights = AnchorWeights::Entropy, "anchor_weights", "WEIGHTS", Papers;
    /// Keep the anchors of earlier rounds, or only the newest
    anchor_mode(AnchorMode): AnchorMode = AnchorMode::Add, "anchor_mode", "MODE", Papers;
    /// Average rows of unit length (the authors' code) or rows as given (the paper's eq. 9)
    anchor_space(AnchorSpace): AnchorSpace = AnchorSpace::Unit, "anchor_space", "SPACE", Papers;
    /// Count the node itself among its k neighbours, as the authors' code does
    k_includes_self(bool): bool = false, "k_includes_self", "", Papers;
    /// Let classes weigh alike however many labelled nodes they have; for a very unbalanced source
    label_weight(LabelWeight): LabelWeight = LabelWeight::None, "label_weight", "WEIGHT", Papers;
    /// End early when a round changes no label
    stop_when_stable(bool): bool = false, "stop_when_stable", "", Papers;
    /// Classes that the source lacks: rank gives every item its reach (small: the source has nothing like it) and tells
    /// whether the target seems to hold such items, unless the search must be pruned for many rows; flag also takes their labels
    /// away; off saves the time
    unknown(Unknown): Unknown = Unknown::Rank, "unknown", "WHAT", Everyday;
    /// Weight of a person's label, where a source row has 1
    known_weight(f32): f32 = 3.0, "known_weight", "W", Everyday;
    /// Seed of everything random; kept in the run record. Only pruned and nndescent use it
    seed(u64): u64 = 0, "random_state", "N", Everyday;
    beside the settings that make a result:
    /// σ² of the Gaussian similarity. Raise it when all items come out unreached; about the typical squared distance
    /// between neighbours works
    gauss_sigma2(f64): Option<f64> = None, "gauss_sigma2", "S", Everyday;
    /// Also measure the quality of the labels, which takes another graph
    quality(bool): bool = false, "quality", "", Everyday;
    /// Take the labels of plain label propagation instead if their quality score is higher by more than 0.01. Takes another
    /// run and the features a second time
    guard(bool): bool = false, "guard", "", Everyday;
    /// Worker threads; 0 = one per core. The labels do not depend on it
    threads(usize): usize = 0, "n_jobs", "N", Everyday;
}

impl Parameters {
    /// The recommended settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// The paper's method and settings.
    pub fn paper() -> Self {
        Self::default().method(Method::A2lp)
    }

    /// Joins every pair of nodes instead of the nearest.
    pub fn full_graph(mut self) -> Self {
        self.neighbours = Neighbours::All;
        self
    }

    /// Makes sure that every value is in range.
    pub fn check(self) -> Result<CheckedParameters, Error> {
        self.settle().check_ranges()
    }

    /// Settings that follow from others.
    fn settle(mut self) -> Self {
        if self.method == Method::Lp {
            self.rounds = self.rounds.min(1);
        }
        // The guard compares quality scores.
        self.quality |= self.guard;
        if let Some(sigma2) = self.gauss_sigma2.take() {
            self.similarity = self.similarity.with_sigma2(sigma2);
        }
        self
    }

    fn check_ranges(self) -> Result<CheckedParameters, Error> {
        let wrong = |name, value: String, rule| Err(Error::Parameter { name, value, rule });
        if let Neighbours::Nearest(k) = self.neighbours {
            let least = 1 + usize::from(self.k_includes_self);
            if k < least {
                return wrong("neighbours", k.to_string(), "at least 1 (2 when the node itself counts)");
            }
            if k > u32::MAX as usize {
                return wrong("neighbours", k.to_string(), "at most 4294967295; `all` gives the full graph");
            }
        }
        if !(self.alpha.is_finite() && self.alpha > 0.0) {
            return wrong("alpha", self.alpha.to_string(), "above 0; the usual range is 0.1 to 0.99");
        }
        if self.alpha >= 1.0 && self.solver != Solver::Dense {
            let rule = "1 or more is the paper's ablation, not a setting; it needs the dense solver, asked for by name";
            return wrong("alpha", self.alpha.to_string(), rule);
        }
        if self.alpha == 1.0 {
            return Err(Error::Singular(1.0));
        }
        if self.rounds == 0 {
            return wrong("rounds", "0".into(), "at least 1");
        }
        if !(self.tolerance > 0.0 && self.tolerance < 1.0) {
            return wrong("tolerance", self.tolerance.to_string(), "between 0 and 1");
        }
        if self.max_iterations == 0 {
            return wrong("max-iterations", "0".into(), "at least 1");
        }
        if !(0.0..=1.0).contains(&self.min_confidence) {
            return wrong("min-confidence", self.min_confidence.to_string(), "between 0 and 1");
        }
        if !(self.known_weight.is_finite() && self.known_weight > 0.0) {
            return wrong("known-weight", self.known_weight.to_string(), "above 0; 3 is recommended");
        }
        if let Some((name, value, rule)) = self.similarity.wrong_parameter() {
            return wrong(name, value.to_string(), rule);
        }
        if !(2..=3).contains(&self.views) {
            return wrong("views", self.views.to_string(), "2 or 3");
        }
        if self.method == Method::Consensus
            && let Some((name, value)) = self.against_consensus()
        {
            let rule = "the consensus builds its own graphs and anchors, from the cosine of all source rows";
            return wrong(name, value, rule);
        }
        Ok(CheckedParameters(self))
    }
}

impl Parameters {
    /// The first setting that a consensus cannot use, and its value.
    pub(crate) fn against_consensus(&self) -> Option<(&'static str, String)> {
        let plain = Parameters::new();
        match () {
            () if self.similarity != plain.similarity => {
                Some(("similarity", self.similarity.as_str().into()))
            }
            () if self.source_nodes != plain.source_nodes => {
                Some(("source-nodes", self.source_nodes.as_str().into()))
            }
            () if self.neighbours == Neighbours::All => Some(("neighbours", "all".into())),
            () if self.anchor_mode != plain.anchor_mode => {
                Some(("anchor-mode", self.anchor_mode.as_str().into()))
            }
            () if self.anchor_space != plain.anchor_space => {
                Some(("anchor-space", self.anchor_space.as_str().into()))
            }
            () => None,
        }
    }
}

/// Parameters that are known to be in range; made by [`Parameters::check`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedParameters(Parameters);

impl std::ops::Deref for CheckedParameters {
    type Target = Parameters;

    fn deref(&self) -> &Parameters {
        &self.0
    }
}

impl CheckedParameters {
    /// Neighbours other than the node itself; `None` for the full graph.
    pub(crate) fn others(&self) -> Option<usize> {
        match self.neighbours {
            Neighbours::Nearest(k) => Some(k - usize::from(self.k_includes_self)),
            Neighbours::All => None,
        }
    }

    /// The same with another method, which must be able to use the settings.
    pub(crate) fn with_method(&self, method: Method, views: usize) -> CheckedParameters {
        CheckedParameters(self.0.clone().method(method).views(views).settle())
    }

    /// Is the first search one among all rows of unit length? It can then serve other rankings as well.
    pub(crate) fn searches_unit_rows(&self) -> bool {
        let as_asked = self.similarity.scales_rows() && self.source_nodes == SourceNodes::All;
        self.method == Method::Consensus || as_asked && self.others().is_some()
    }

    /// Plain label propagation with the same settings, to compare labels with.
    pub(crate) fn plain_propagation(&self) -> CheckedParameters {
        CheckedParameters(self.0.clone().method(Method::Lp).unknown(Unknown::Off).settle())
    }

    /// The worker threads asked for.
    pub(crate) fn pool(&self) -> Result<rayon::ThreadPool, Error> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build();
        pool.map_err(|_| Error::Threads(self.threads))
    }

    /// The solver that `Auto` stands for.
    pub fn resolved_solver(&self) -> Solver {
        match self.solver {
            Solver::Auto => Solver::Cg,
            chosen => chosen,
        }
    }

    /// Does `work` on as many threads as a run with these parameters would.
    pub fn on_threads<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, Error> {
        Ok(self.pool()?.install(work))
    }

    /// Items below this confidence are marked as such.
    pub fn min_confidence(&self) -> f32 {
        self.0.min_confidence
    }

    /// How labels come to the target.
    pub fn method(&self) -> Method {
        self.0.method
    }

    /// What becomes of target items that match nothing in the source.
    pub fn unknown(&self) -> Unknown {
        self.0.unknown
    }

    /// Are the labels compared with plain label propagation?
    pub fn guard(&self) -> bool {
        self.0.guard
    }

    /// Most rounds that are run.
    pub fn rounds(&self) -> usize {
        self.0.rounds
    }

    /// Which source rows become nodes.
    pub fn source_nodes(&self) -> SourceNodes {
        self.source_nodes
    }

    /// How alike two vectors are.
    pub fn similarity(&self) -> Similarity {
        self.0.similarity
    }

    /// Worker threads; 0 is one per core.
    pub fn threads(&self) -> usize {
        self.0.threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_out_of_range_is_refused_by_name() {
        let wrong = [
            (Parameters::new().neighbours(0), "neighbours = 0"),
            (Parameters::new().neighbours(1).k_includes_self(true), "neighbours = 1"),
            (Parameters::new().alpha(0.0), "alpha = 0"),
            (Parameters::new().alpha(f64::NAN), "alpha = NaN"),
            (Parameters::new().alpha(1.0), "the paper's ablation"),
            (Parameters::new().alpha(3.0), "the paper's ablation"),
            (Parameters::new().alpha(2.0).solver(Solver::Cg), "needs the dense solver"),
            (Parameters::new().alpha(1.0).solver(Solver::Dense), "singular"),
            (Parameters::new().rounds(0), "rounds = 0"),
            (Parameters::new().tolerance(0.0), "tolerance = 0"),
            (Parameters::new().max_iterations(0), "max-iterations = 0"),
            (Parameters::new().min_confidence(1.5), "min-confidence = 1.5"),
            (Parameters::new().similarity(Similarity::Gaussian { sigma2: 0.0 }), "gauss-sigma2 = 0"),
        ];
        for (parameters, part) in wrong {
            let message = parameters.check().unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        assert!(Parameters::new().alpha(2.0).solver(Solver::Dense).check().is_ok());
    }

    /// Every parameter can be set from what a user writes, defaults included, and names are used once.
    #[test]
    fn every_parameter_can_be_read() {
        let mut names: Vec<&str> =
            Parameters::table().iter().flat_map(|info| [info.name, info.python]).collect();
        for info in Parameters::table() {
            let mut parameters = Parameters::new();
            let default = info.default.as_deref().unwrap();
            let value = info.parse(default).unwrap_or_else(|| panic!("{}: {default}", info.name));
            assert!(info.set(&mut parameters, value), "{}", info.name);
            assert_eq!(
                parameters.clone().check().unwrap(),
                Parameters::new().check().unwrap(),
                "{}",
                info.name
            );
            // Another value changes something.
            let other = match &info.kind {
                Kind::Flag => Value::Flag(true),
                Kind::Count | Kind::CountOr(_) => Value::Count(2),
                Kind::Number => Value::Number(0.25),
                Kind::Text => Value::Word("other"),
                Kind::Words(words) => Value::Word(words[if default == words[0] { 1 } else { 0 }]),
            };
            assert!(info.set(&mut parameters, other), "{}", info.name);
            assert_ne!(parameters, Parameters::new(), "{}", info.name);
            assert!(info.help.len() > 20 && !info.wanted().is_empty());
        }
        names.sort_unstable();
        names.dedup();
        let twice = Parameters::table().iter().filter(|info| info.name == info.python).count();
        assert_eq!(names.len(), 2 * Parameters::table().len() - twice);
        assert_eq!(
            Parameters::table().iter().find(|info| info.name == "tolerance").unwrap().default.as_deref(),
            Some("1e-6")
        );
    }
}
