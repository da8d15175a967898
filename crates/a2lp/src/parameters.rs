//! What can be chosen about a run. [`Parameters`] is the builder; [`Parameters::check`] turns it into
//! [`CheckedParameters`], the only thing a run accepts, so nothing can be wrong once work has begun.

use crate::error::Error;
use crate::similarity::Similarity;
use serde::{Deserialize, Serialize};

/// How labels come to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Label propagation, once.
    Lp,
    /// Label propagation with augmented anchors: the paper's.
    A2lp,
    /// Two or three differently built graphs that vote in every round.
    Consensus,
}

impl Method {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }
}

/// How many neighbours each node has (k).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// The k most similar other nodes.
    Nearest(usize),
    /// Every other node: the full graph.
    All,
}

/// A number, or the word `all`.
impl Serialize for Neighbours {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Neighbours::Nearest(k) => serializer.serialize_u64(*k as u64),
            Neighbours::All => serializer.serialize_str("all"),
        }
    }
}

/// How neighbours are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GraphMethod {
    /// What is fastest for the size at hand without missing a neighbour.
    Auto,
    /// Every pair in full.
    Exact,
    /// Six-bit rows propose, full scores choose; misses next to nothing, and says how much.
    Screened,
    /// Rows are grouped and look only at the groups near them; for many rows. Says how much it missed.
    Pruned,
    /// NN-Descent, the search the paper names. Says how much it missed.
    Nndescent,
}

impl GraphMethod {
    /// The word used in options and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            GraphMethod::Auto => "auto",
            GraphMethod::Exact => "exact",
            GraphMethod::Screened => "screened",
            GraphMethod::Pruned => "pruned",
            GraphMethod::Nndescent => "nndescent",
        }
    }
}

/// Gives choices the words that users write for them, the same at every front end.
macro_rules! words {
    ($($choice:ident { $($word:literal => $variant:ident),* })*) => {
        $(impl $choice {
            /// What users write, and what it stands for.
            pub const WORDS: &[(&str, $choice)] = &[$(($word, $choice::$variant)),*];
        })*
    };
}

words! {
    Method { "lp" => Lp, "a2lp" => A2lp, "consensus" => Consensus }
    GraphMethod {
        "auto" => Auto, "exact" => Exact, "screened" => Screened, "pruned" => Pruned, "nndescent" => Nndescent
    }
    SourceNodes { "all" => All, "centres" => Centres }
    Solver { "auto" => Auto, "cg" => Cg, "dense" => Dense }
    AnchorWeights { "entropy" => Entropy, "uniform" => Uniform }
    AnchorMode { "add" => Add, "replace" => Replace }
    AnchorSpace { "unit" => Unit, "raw" => Raw }
    LabelWeight { "none" => None, "class-size" => ClassSize }
    Unreached { "unlabelled" => Unlabelled, "nearest" => Nearest }
}

/// Which source rows become labelled nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceNodes {
    /// Every source row.
    All,
    /// One node per class, the mean of its rows: the paper's variant for large sources.
    Centres,
}

/// How the linear system is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Solver {
    /// Conjugate gradients for α < 1, dense for α > 1.
    Auto,
    /// Conjugate gradients on the sparse system; α < 1 only.
    Cg,
    /// A factorisation of the n × n matrix in f64.
    Dense,
}

/// Weights of target items within their class's anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AnchorWeights {
    /// The entropy weight of eq. 8.
    Entropy,
    /// All equal.
    Uniform,
}

/// What becomes of the anchors of earlier rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AnchorMode {
    /// They stay (eq. 10).
    Add,
    /// Only the newest are in the graph.
    Replace,
}

/// Which vectors an anchor averages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AnchorSpace {
    /// The rows the graph is built from (of unit length under the cosine).
    Unit,
    /// The rows as given: eq. 9 to the letter.
    Raw,
}

/// Scale of the label matrix Y.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabelWeight {
    /// One per labelled node.
    None,
    /// One per class, shared equally by its labelled nodes.
    ClassSize,
}

/// What a target item gets that no label can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unreached {
    /// No label.
    Unlabelled,
    /// The label of the most similar labelled node or anchor; still reported as unreached.
    Nearest,
}

/// The builder. Every setter takes and returns `self`; defaults are the recommended ones.
///
/// ```
/// let parameters = a2lp::Parameters::new().neighbours(20).alpha(0.5).rounds(10).check()?;
/// # Ok::<(), a2lp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameters {
    pub(crate) method: Method,
    pub(crate) views: usize,
    pub(crate) neighbours: Neighbours,
    pub(crate) alpha: f64,
    pub(crate) rounds: usize,
    pub(crate) similarity: Similarity,
    pub(crate) graph_method: GraphMethod,
    pub(crate) source_nodes: SourceNodes,
    pub(crate) unreached: Unreached,
    pub(crate) min_confidence: f32,
    pub(crate) solver: Solver,
    pub(crate) tolerance: f64,
    pub(crate) max_iterations: usize,
    pub(crate) anchor_weights: AnchorWeights,
    pub(crate) anchor_mode: AnchorMode,
    pub(crate) anchor_space: AnchorSpace,
    pub(crate) k_includes_self: bool,
    pub(crate) label_weight: LabelWeight,
    pub(crate) stop_when_stable: bool,
    pub(crate) seed: u64,
    /// Only looked at, so it is no part of the settings that make a result.
    #[serde(skip)]
    pub(crate) quality: bool,
    /// Same answer for any number, so it is no part of the settings that make a result.
    #[serde(skip)]
    pub(crate) threads: usize,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            method: Method::A2lp,
            views: 3,
            neighbours: Neighbours::Nearest(20),
            alpha: 0.5,
            rounds: 10,
            similarity: Similarity::Cosine,
            graph_method: GraphMethod::Auto,
            source_nodes: SourceNodes::All,
            unreached: Unreached::Unlabelled,
            min_confidence: 0.0,
            solver: Solver::Auto,
            tolerance: 1e-6,
            max_iterations: 1000,
            anchor_weights: AnchorWeights::Entropy,
            anchor_mode: AnchorMode::Add,
            anchor_space: AnchorSpace::Unit,
            k_includes_self: false,
            label_weight: LabelWeight::None,
            stop_when_stable: false,
            seed: 0,
            quality: false,
            threads: 0,
        }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        $($(#[$doc])*
        pub fn $name(mut self, $name: $type) -> Self {
            self.$name = $name;
            self
        })*
    };
}

impl Parameters {
    /// The recommended settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// k, the neighbours of each node (20).
    pub fn neighbours(mut self, k: usize) -> Self {
        self.neighbours = Neighbours::Nearest(k);
        self
    }

    /// Joins every pair of nodes instead of the nearest.
    pub fn full_graph(mut self) -> Self {
        self.neighbours = Neighbours::All;
        self
    }

    setters! {
        /// How labels come to the target (A²LP); plain label propagation has one round, whatever `rounds` says.
        method: Method,
        /// Graphs that vote in a consensus, 2 or 3 (3).
        views: usize,
        /// Also measure the [`Quality`](crate::Quality) of the labels, which takes another graph (no).
        quality: bool,
        /// α, how far labels travel (0.5); between 0 and 1, or above 1 with the dense solver.
        alpha: f64,
        /// N, propagations with N − 1 sets of anchors between them (10); 1 is plain label propagation.
        rounds: usize,
        /// How alike two vectors are (cosine).
        similarity: Similarity,
        /// How neighbours are searched for (auto).
        graph_method: GraphMethod,
        /// Which source rows become nodes (all).
        source_nodes: SourceNodes,
        /// What unreached items get (no label).
        unreached: Unreached,
        /// Items below this confidence are marked [`Status::LowConfidence`](crate::Status::LowConfidence) (0).
        min_confidence: f32,
        /// How the system is solved (auto).
        solver: Solver,
        /// Relative residual at which conjugate gradients stop (1e-6).
        tolerance: f64,
        /// Iterations after which conjugate gradients give up (1000).
        max_iterations: usize,
        /// Weights inside an anchor (entropy).
        anchor_weights: AnchorWeights,
        /// Whether earlier anchors stay (add).
        anchor_mode: AnchorMode,
        /// Which vectors an anchor averages (unit).
        anchor_space: AnchorSpace,
        /// Counts the node itself as one of the k, as the authors' code does (no).
        k_includes_self: bool,
        /// Scale of the label matrix (none).
        label_weight: LabelWeight,
        /// Ends early when a round changes no label (no).
        stop_when_stable: bool,
        /// Seed of searches that have something random in them (0).
        seed: u64,
        /// Worker threads; 0 = one per core. The answer does not depend on it.
        threads: usize,
    }

    /// Makes sure that every value is in range.
    pub fn check(mut self) -> Result<CheckedParameters, Error> {
        if self.method == Method::Lp {
            self.rounds = self.rounds.min(1);
        }
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
        if self.alpha == 1.0 {
            return Err(Error::Singular(1.0));
        }
        if self.alpha > 1.0 && self.solver == Solver::Cg {
            return wrong(
                "alpha",
                self.alpha.to_string(),
                "conjugate gradients need alpha < 1; use the dense solver",
            );
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
        if let Some((name, value, rule)) = self.similarity.wrong_parameter() {
            return wrong(name, value.to_string(), rule);
        }
        if !(2..=3).contains(&self.views) {
            return wrong("views", self.views.to_string(), "2 or 3");
        }
        if self.method == Method::Consensus {
            let plain = Parameters::new();
            let rule = "the consensus builds its own graphs and anchors, from the cosine of all source rows";
            if self.similarity != plain.similarity {
                return wrong("similarity", self.similarity.as_str().into(), rule);
            }
            if self.source_nodes != plain.source_nodes {
                return wrong("source-nodes", "centres".into(), rule);
            }
            if self.neighbours == Neighbours::All {
                return wrong("neighbours", "all".into(), rule);
            }
            if self.anchor_mode != plain.anchor_mode {
                return wrong("anchor-mode", "replace".into(), rule);
            }
            if self.anchor_space != plain.anchor_space {
                return wrong("anchor-space", "raw".into(), rule);
            }
        }
        Ok(CheckedParameters(self))
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

    /// The worker threads asked for.
    pub(crate) fn pool(&self) -> Result<rayon::ThreadPool, Error> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build();
        pool.map_err(|_| Error::Threads(self.threads))
    }

    /// The solver that `Auto` stands for.
    pub fn resolved_solver(&self) -> Solver {
        match self.solver {
            Solver::Auto if self.alpha < 1.0 => Solver::Cg,
            Solver::Auto => Solver::Dense,
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
            (Parameters::new().alpha(1.0), "singular"),
            (Parameters::new().alpha(2.0).solver(Solver::Cg), "use the dense solver"),
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
        assert_eq!(Parameters::new().alpha(2.0).check().unwrap().resolved_solver(), Solver::Dense);
    }
}
