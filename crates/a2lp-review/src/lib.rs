//! Labels that a2lp gave, checked, corrected and signed off by a person.
//!
//! ```text
//! events ─► Session ─► labels, what to look at, the state of the audit
//!    │          ▲
//!    └► Journal ┘   on the disk before they count
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | [`audit`] | how many labels are wrong, with statements that hold whenever one stops |
//! | [`Seed`] | the order in which an audit draws items |
//! | [`Event`], [`Journal`] | what a person did, and the file that keeps it |
//! | [`Session`] | corrections in, changed labels out; undo; versions of the labels and their audit; exports |
//! | [`Certificate`], [`verify`] | what an audit showed, and showing it again |
//! | [`Review`] | a session with its journal |
//! | [`Server`] | the page, over HTTP on this machine |

#![warn(clippy::unwrap_used)]

pub mod audit;
mod certificate;
mod draw;
mod error;
mod event;
mod export;
mod journal;
mod look;
mod review;
mod server;
mod session;
mod thumbnails;

pub use certificate::{Certificate, CertifiedAnswer, fingerprint, verify};
pub use draw::Seed;
pub use error::ReviewError;
pub use event::{AuditSettings, Event};
pub use journal::{Header, Journal, Past};
pub use look::{Looks, Pictures, find_pictures};
pub use review::Review;
pub use server::{Server, Serving};
pub use session::{CheckView, Effect, FinishedRun, FullRun, Group, ItemView, Origin, Session, SetView, Task};
