//! What a run leaves behind to be looked at: a map of the items, the ones to check first, and the graph in figures.
//!
//! Bounded in size however large the run was, so that it can be kept beside every labels file.

use a2lp::Status;
use serde::{Deserialize, Serialize};

/// Most points on a map.
pub const MAX_POINTS: usize = 20_000;
/// Most items in the list of the least certain.
pub const MAX_ITEMS: usize = 500;
/// Most rounds a map is kept of.
pub const MAX_FRAMES: usize = 12;
/// Stands for "no class" in packed labels.
pub const NO_CLASS: u16 = u16::MAX;

/// All that can be looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The classes of the source, then those that only the truth has.
    pub classes: Vec<String>,
    /// Source items of each class.
    pub source_counts: Vec<usize>,
    /// Target items predicted as each class.
    pub target_counts: Vec<usize>,
    /// Mean confidence of the items predicted as each class.
    pub class_confidence: Vec<f64>,
    /// Items whose label differs between the first round and the last.
    pub overturned: usize,
    /// Items by confidence, in equal steps from 0 to 1.
    pub confidence: Vec<ConfidenceBin>,
    /// Only with truth.
    pub truth: Option<TruthTrace>,
    /// The graph before any anchor; `None` for a full graph.
    pub graph: Option<GraphShape>,
    /// How the groups of nodes are connected, in the first round and in the last.
    pub affinity: Vec<AffinityPicture>,
    /// Items in two dimensions.
    pub map: Map,
    /// The least certain items, the worst first.
    pub least_certain: Vec<Item>,
    /// How much of the source points at the items, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<ReachTrace>,
}

impl Trace {
    /// Tells what is wrong with a trace that no run can have left.
    pub fn check(&self) -> Result<(), &'static str> {
        let (classes, map) = (self.classes.len(), &self.map);
        let known = self.source_counts.len();
        let points = map.x.len();
        if known > classes || self.target_counts.len() != known || self.class_confidence.len() != known {
            return Err("counts of classes that are not listed");
        }
        let targets = points.checked_sub(map.source_points).ok_or("more source points than points")?;
        let named = |labels: &[u16]| labels.iter().all(|&c| c == NO_CLASS || usize::from(c) < classes);
        let fits = |length: usize| length == 0 || length == targets;
        if map.y.len() != points || map.rows.len() != points || map.source_labels.len() != map.source_points {
            return Err("a map whose points are incomplete");
        }
        let frames = map.frames.iter().all(|frame| {
            frame.labels.len() == targets && frame.confidence.len() == targets && named(&frame.labels)
        });
        if !frames || !fits(map.truth.len()) || !fits(map.ids.len()) {
            return Err("a map whose rounds are incomplete");
        }
        let anchors = map.anchors.iter().all(|anchor| usize::from(anchor.class) < known);
        if !named(&map.source_labels) || !named(&map.truth) || !anchors {
            return Err("a map with classes that are not listed");
        }
        let of_truth = self.truth.as_ref().is_none_or(|truth| {
            let pair = |&(of, to, _): &(u16, u16, usize)| named(&[of, to]) && of != NO_CLASS;
            truth.counts.len() == classes && truth.confusion.iter().all(pair)
        });
        if !of_truth || self.confidence.is_empty() {
            return Err("figures about classes that are not listed");
        }
        let painted = |p: &AffinityPicture| {
            p.source_height.checked_add(p.anchor_height).and_then(|h| h.checked_mul(p.width))
                == Some(p.pixels.len())
        };
        if !self.affinity.iter().all(painted) {
            return Err("an affinity picture of the wrong size");
        }
        if self.reach.as_ref().is_some_and(|reach| reach.bins.iter().any(|bin| bin.new > bin.items)) {
            return Err("more items of new classes than items");
        }
        Ok(())
    }
}

/// Items with a confidence in some range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConfidenceBin {
    /// How many.
    pub items: usize,
    /// How many of them are labelled correctly; 0 without truth.
    pub correct: usize,
}

/// The reach of the items, and groups of unknown ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReachTrace {
    /// Items by reach, in equal steps of its logarithm from [`LEAST_REACH`] to [`MOST_REACH`]; the first and the last bin also
    /// hold what lies beyond.
    pub bins: Vec<ReachBin>,
    /// Groups of unknown items that look alike, the largest first, at most [`MAX_GROUPS`].
    pub groups: Vec<GroupTrace>,
}

/// The least reach on the chart.
pub const LEAST_REACH: f64 = 0.01;
/// The largest reach on the chart.
pub const MOST_REACH: f64 = 10.0;
/// Most groups of unknown items.
pub const MAX_GROUPS: usize = 12;
/// Most items of a group.
pub const MAX_GROUP_ITEMS: usize = 8;

/// Items with a reach in some range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReachBin {
    /// How many.
    pub items: usize,
    /// How many of them are of classes that the source lacks; 0 without truth.
    pub new: usize,
}

/// Unknown items that look alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupTrace {
    /// How many.
    pub items: usize,
    /// The most central of them.
    pub central: Vec<Item>,
}

/// What can be said only if the truth is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TruthTrace {
    /// Target items that truly are of each class.
    pub counts: Vec<usize>,
    /// Items by tenths of the probability of their label.
    pub calibration: Vec<CalibrationBin>,
    /// (true class, predicted class or `NO_CLASS`, items), where there are any.
    pub confusion: Vec<(u16, u16, usize)>,
    /// (share of items kept, the surest first; share of them labelled correctly).
    pub coverage: Vec<(f64, f64)>,
}

/// Items whose label has a probability in some range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CalibrationBin {
    /// How many.
    pub items: usize,
    /// Mean probability of their labels.
    pub probability: f64,
    /// Share labelled correctly.
    pub correct: f64,
}

/// The neighbour graph in figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphShape {
    /// Nodes.
    pub nodes: usize,
    /// Pairs of nodes that are joined.
    pub edges: usize,
    /// Parts that are not joined to each other.
    pub components: usize,
    /// Nodes of the largest part.
    pub largest: usize,
    /// Target nodes with a path to a label.
    pub reached_targets: usize,
    /// Target nodes.
    pub targets: usize,
    /// Target nodes joined directly to a labelled node.
    pub touching: usize,
    /// Median number of neighbours.
    pub median_degree: usize,
    /// Neighbours of the most joined node.
    pub largest_degree: usize,
    /// (from, to inclusive, nodes with that many neighbours).
    pub degrees: Vec<(usize, usize, usize)>,
}

/// The block of A between labelled nodes (rows) and target nodes (columns), both by class, as a coarse picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AffinityPicture {
    /// The round, from 1.
    pub round: usize,
    /// Pixels across.
    pub width: usize,
    /// Pixels down: source nodes first…
    pub source_height: usize,
    /// …then anchors.
    pub anchor_height: usize,
    /// Columns are ordered by true class rather than by predicted class.
    pub by_truth: bool,
    /// 0 to 255: the square root of the weight in each pixel, 255 being the most among the source nodes, and the most
    /// among the anchors.
    #[serde(with = "packed")]
    pub pixels: Vec<u8>,
}

/// Items in two dimensions: source points first, then target points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Map {
    /// How the two dimensions came about.
    pub kind: MapKind,
    /// Share of the variance along each axis, for principal components.
    pub explained: Option<[f64; 2]>,
    /// Source items there are.
    pub source_items: usize,
    /// Target items there are.
    pub target_items: usize,
    /// Source points drawn.
    pub source_points: usize,
    /// 0 to 65535 across the map.
    #[serde(with = "packed")]
    pub x: Vec<u16>,
    /// 0 to 65535 up the map, on the same scale as `x`.
    #[serde(with = "packed")]
    pub y: Vec<u16>,
    /// Row of each point in its domain.
    #[serde(with = "packed")]
    pub rows: Vec<u32>,
    /// Classes of the source points.
    #[serde(with = "packed")]
    pub source_labels: Vec<u16>,
    /// The target points after some rounds; the last is the end of the run.
    pub frames: Vec<Frame>,
    /// True classes of the target points.
    #[serde(with = "packed")]
    pub truth: Vec<u16>,
    /// Ids of the target points; empty when there are none or they are too long to keep.
    pub ids: Vec<String>,
    /// Anchors.
    pub anchors: Vec<AnchorPoint>,
}

/// How a map was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MapKind {
    /// The two directions along which the items differ most.
    Pca,
    /// Neighbours stay neighbours; distances mean little.
    Tsne,
}

/// The target points of a map after one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// The round, from 1.
    pub round: usize,
    /// Class of each point, or [`NO_CLASS`].
    #[serde(with = "packed")]
    pub labels: Vec<u16>,
    /// Confidence of each point, 0 to 255.
    #[serde(with = "packed")]
    pub confidence: Vec<u8>,
}

/// An anchor on a map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnchorPoint {
    /// Its class.
    pub class: u16,
    /// The round it first took part in.
    pub round: usize,
    /// Items it was made of.
    pub items: usize,
    /// As for points, but it may lie a little outside the map.
    pub x: i32,
    /// See `x`.
    pub y: i32,
}

/// An item, its label and how certain it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Its row in the target.
    pub row: usize,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Its class.
    pub label: Option<String>,
    /// The probability of that class.
    pub probability: f32,
    /// The next best class.
    pub second: Option<String>,
    /// Its probability.
    pub second_probability: f32,
    /// Confidence.
    pub confidence: f32,
    /// What can be said of it.
    pub status: Status,
    /// What each view of a consensus calls it, where they do not agree.
    #[serde(default)]
    pub views: Option<String>,
    /// How much of the source points at it, if that was measured.
    #[serde(default)]
    pub reach: Option<f32>,
    /// The class it looks most like, if its label was taken away.
    #[serde(default)]
    pub nearest: Option<String>,
    /// Its true class, if known.
    pub truth: Option<String>,
    /// A small PNG or JPEG in base64, if there is a picture of it.
    pub thumbnail: Option<String>,
}

/// Numbers as base64 of their little-endian bytes: small in a file, quick to read in a browser.
mod packed {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) trait Bytes: Sized {
        const SIZE: usize;
        fn put(&self, out: &mut Vec<u8>);
        fn take(bytes: &[u8]) -> Self;
    }

    macro_rules! bytes {
        ($($number:ty),*) => { $(impl Bytes for $number {
            const SIZE: usize = size_of::<$number>();
            fn put(&self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }
            fn take(bytes: &[u8]) -> Self {
                let mut number = [0; size_of::<$number>()];
                number.copy_from_slice(bytes);
                <$number>::from_le_bytes(number)
            }
        })* };
    }
    bytes!(u8, u16, u32);

    pub(super) fn serialize<T: Bytes, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(values.len() * T::SIZE);
        values.iter().for_each(|value| value.put(&mut bytes));
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, T: Bytes, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        let bytes = STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)?;
        if bytes.len() % T::SIZE != 0 {
            return Err(D::Error::custom("packed numbers end in the middle of one"));
        }
        Ok(bytes.chunks_exact(T::SIZE).map(T::take).collect())
    }
}
