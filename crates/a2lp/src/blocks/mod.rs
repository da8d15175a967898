//! The steps of a run on one block of rows, for runs whose rows are not in one memory: plain buffers in, plain buffers out. A run
//! in memory is made of the same loops, so the results are the same to the bit.
//!
//! Rows have a *number* (source rows, then target rows) and a *position* (ordered by group, so that neighbours stand close). Lists
//! name neighbours by number; edges and matrices by position. Anchors have the numbers and positions after the last row.

/// Rows handled as one piece of parallel work; sums over rows are made for each.
pub const CHUNK: usize = crate::features::ROWS_PER_TASK;

/// Rows whose part of a sum that anchors need is made on its own. Blocks begin at multiples of it.
pub const SEGMENT: usize = crate::features::SEGMENT;

mod anchors;
mod edges;
mod grouping;
mod labels;
mod lists;
mod search;
mod settings;
mod sweep;

pub use anchors::{AnchorBlock, AnchorSums, ClassSum, anchor_sums, make_anchors, weigh_items};
pub use edges::{Edge, Matrix, NO_RANK, SentEdge, add_up, inverse_root, join_edges, sent_edges};
pub use grouping::{
    Grouping, centre_sample, group_count, merge_nearest, nearest_in, positions_by_group, probe_sample,
    recall_sample, scale_rows,
};
pub use labels::{
    LabelEntries, any_unsettled, label_record_bytes, label_records, labels_from_records, mark_low_confidence,
    read_labels,
};
pub use lists::{BlockLists, Neighbour};
pub use search::{BlockSearch, RowStore, SixBits};
pub use settings::Settings;
pub use sweep::{
    Sums, advance, anchor_entries, between_anchors, descend, descend_anchors, multiply, subtract, to_anchors,
};
