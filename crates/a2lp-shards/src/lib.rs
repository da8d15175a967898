//! a2lp on rows that do not fit into one memory: from disk, or on many machines.
//!
//! ```text
//! Job ─► Driver ─► Engine ─► Worker (tasks, then steps) ─► Storage
//! ```
//!
//! A [`Driver`] leads a run. An [`Engine`] has [`Worker`]s and brings messages to them: [`LocalEngine`] within this process, others
//! over a network. Workers read the input part by part ([`Parts`]), leave the result of every stage in a [`Storage`], and during the
//! rounds exchange the rows that their neighbours need. Any engine and any number of workers give the labels of a run in memory with
//! the pruned search, because all are made of `a2lp::blocks`.

#![warn(clippy::unwrap_used)]

mod driver;
mod engine;
mod error;
mod job;
pub mod memory;
mod panel;
mod parts;
mod plan;
mod shelf;
mod solve;
mod state;
mod storage;
mod tasks;
mod worker;

pub use driver::{Driver, Outcome, Round, Stage, Watch};
pub use engine::{Engine, LocalEngine};
pub use error::ShardError;
pub use job::{Input, Job};
pub use parts::{LocalParts, PartLabels, Parts, Sink, labels_names};
pub use plan::{Machines, Plan};
pub use storage::{Folder, Storage};
pub use worker::Worker;
