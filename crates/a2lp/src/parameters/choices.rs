//! The choices among parameters, and the words for them.

use super::setting::{Kind, Setting, Value};
use serde::{Deserialize, Serialize};

/// How labels come to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Method {
    /// The consensus where it takes no more than ten minutes on two cores and can use the other settings, else A²LP.
    Auto,
    /// Label propagation, once.
    Lp,
    /// Label propagation with augmented anchors: the paper's.
    A2lp,
    /// Two or three differently built graphs that vote in every round.
    Consensus,
}

/// The class mix of the target that a consensus assumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Mix {
    /// Both are tried for three rounds, and the one that fits better goes on.
    Auto,
    /// The target has the class shares of the source.
    Same,
    /// The target has its own class shares, and classes may be absent.
    Own,
}

/// How many neighbours each node has (k).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// The k most similar other nodes.
    Nearest(usize),
    /// Every other node: the full graph.
    All,
}

impl From<usize> for Neighbours {
    fn from(k: usize) -> Self {
        Neighbours::Nearest(k)
    }
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
#[non_exhaustive]
pub enum GraphMethod {
    /// The fastest search for the size at hand.
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

/// Which source rows become labelled nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SourceNodes {
    /// Every source row.
    All,
    /// One node per class, the mean of its rows: the paper's variant for large sources.
    Centres,
}

/// How the linear system is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Solver {
    /// Conjugate gradients.
    Auto,
    /// Conjugate gradients on the sparse system; α < 1 only.
    Cg,
    /// A factorisation of the n × n matrix in f64.
    Dense,
}

/// Weights of target items within their class's anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AnchorWeights {
    /// The entropy weight of eq. 8.
    Entropy,
    /// All equal.
    Uniform,
}

/// What becomes of the anchors of earlier rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AnchorMode {
    /// They stay (eq. 10).
    Add,
    /// Only the newest are in the graph.
    Replace,
}

/// Which vectors an anchor averages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AnchorSpace {
    /// The rows the graph is built from (of unit length under the cosine).
    Unit,
    /// The rows as given: eq. 9 to the letter.
    Raw,
}

/// Scale of the label matrix Y.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LabelWeight {
    /// One per labelled node.
    None,
    /// One per class, shared equally by its labelled nodes.
    ClassSize,
}

impl LabelWeight {
    /// The entry of Y of a node whose class has so many labelled nodes.
    pub(crate) fn entry(self, count: usize) -> f32 {
        match self {
            LabelWeight::None => 1.0,
            LabelWeight::ClassSize => 1.0 / count.max(1) as f32,
        }
    }
}

/// What a target item gets that no label can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unreached {
    /// No label.
    Unlabelled,
    /// The label of the most similar labelled node or anchor; still reported as unreached.
    Nearest,
}

/// What becomes of target items that match nothing in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unknown {
    /// They are not looked for.
    Off,
    /// Every item gets its reach, by which items can be ranked; labels stay.
    Rank,
    /// Items below the threshold have no label, and the status `unknown`.
    Flag,
}

/// Gives choices the words that users write for them, the same at every front end.
macro_rules! words {
    ($($choice:ident { $($word:literal => $variant:ident),* })*) => {
        $(impl $choice {
            /// The words that users write, and their values.
            pub const WORDS: &[(&str, $choice)] = &[$(($word, $choice::$variant)),*];

            /// The word for it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($choice::$variant => $word,)*
                }
            }
        }

        impl Setting for $choice {
            fn kind() -> Kind {
                Kind::Words(vec![$($word),*])
            }

            fn read(value: Value<'_>) -> Option<Self> {
                let Value::Word(given) = value else { return None };
                Self::WORDS.iter().find(|(word, _)| *word == given).map(|(_, choice)| *choice)
            }

            fn show(&self) -> String {
                self.as_str().into()
            }
        })*
    };
}

words! {
    Method { "auto" => Auto, "lp" => Lp, "a2lp" => A2lp, "consensus" => Consensus }
    Mix { "auto" => Auto, "same" => Same, "own" => Own }
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
    Unknown { "off" => Off, "rank" => Rank, "flag" => Flag }
}
