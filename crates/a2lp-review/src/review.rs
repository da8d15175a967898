//! A session with its journal: an event is checked, written to the disk, and then happens.

use crate::error::ReviewError;
use crate::event::Event;
use crate::journal::Journal;
use crate::session::{CheckView, Effect, FinishedRun, Session};

/// A session that keeps what happens.
pub struct Review {
    session: Session,
    /// Where events go; `None` keeps them in memory only.
    journal: Option<Journal>,
}

impl Review {
    /// A session, and the journal that its events came from.
    pub fn new(session: Session, journal: Option<Journal>) -> Self {
        Review { session, journal }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The session, for what needs to work things out. Events go through [`Review::act`].
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Lets an event happen. It is on the disk when this returns.
    pub fn act(&mut self, event: &Event) -> Result<Effect, ReviewError> {
        self.session.check(event)?;
        self.note(event)?;
        self.session.apply(event)
    }

    /// Puts a finished full run in place.
    pub fn replace(&mut self, finished: FinishedRun) -> Result<Effect, ReviewError> {
        self.session.check(&finished.event())?;
        self.note(&finished.event())?;
        self.session.replace(finished)
    }

    /// Looks at the check. If labels changed since the last look, a new version of them begins.
    pub fn look(&mut self) -> Result<CheckView, ReviewError> {
        if let Some(version) = self.session.needed_version() {
            self.act(&version)?;
        }
        self.session.check_view()
    }

    fn note(&mut self, event: &Event) -> Result<(), ReviewError> {
        self.journal.as_mut().map_or(Ok(()), |journal| journal.append(event))
    }
}
