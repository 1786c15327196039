//! The state machine: which session runs, and what the last one left. `Lifecycle` moves it; all others read it.

use std::sync::{Arc, Condvar};

use super::lock::{Lock, LockGuard, Rank};
use super::{Error, Mark, State, Status};
use crate::collector::snapshot::Snapshot;
use crate::flight_recorder::Reason;
use crate::session::Session;
use heapray_report::error_chain;

/// One lock, held for moments only: the longest thing done under it is taking a snapshot.
#[derive(Debug)]
pub(super) struct Machine {
    inner: Lock<Inner>,
    /// Notified when a session that was being stopped has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    phase: Phase,
    /// The session that runs, or else the last one: 1 for the first.
    number: u64,
    /// The last view of the session that has ended.
    last: Option<Seen>,
    trouble: Option<String>,
}

/// A view of a session, and why it has ended if nobody stopped it.
#[derive(Debug, Clone)]
struct Seen {
    snapshot: Arc<Snapshot>,
    cause: Option<Reason>,
}

/// Characters that a mark's name may have.
const MARK_NAME: usize = 200;

/// Where an enabled profiler stands. Only the control thread moves it, so no two moves can race.
///
/// ```text
/// no Machine             Stopped ──── start ───▶ Recording
/// at all where it           ▲                       │ stop
/// is not enabled            │                       ▼
///                        Writing ◀─ last view ── Ending
///                  report on disk, or a
///                  clear error
/// ```
///
/// A start where it is recording, and a stop where it is not, move nothing. `Ending` and `Writing` are shown as
/// [`State::Stopping`]. A forked child never looks in here (`Core::check_process`).
#[derive(Debug, Default)]
enum Phase {
    #[default]
    Stopped,
    Recording(Session),
    /// The session is ending: its last snapshot is not there yet.
    Ending,
    /// It has ended; the report is being written.
    Writing,
}

/// A view of a session that outputs can be made from.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) session: u64,
    pub(crate) snapshot: Arc<Snapshot>,
    /// Why it has ended, if nobody stopped it.
    pub(super) cause: Option<Reason>,
}

impl View {
    /// Returns a view of a session of another process.
    pub(crate) fn of(snapshot: Snapshot) -> View {
        View {
            session: 0,
            snapshot: Arc::new(snapshot),
            cause: None,
        }
    }
}

impl Machine {
    pub(super) fn new() -> Machine {
        Machine {
            // Every change is a single assignment, so a panic leaves nothing half done.
            inner: Lock::new(Rank::Machine, Inner::default()),
            ended: Condvar::new(),
        }
    }

    fn lock(&self) -> LockGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Returns the number of the session that runs or ran last (0 before the first), and whether it runs.
    pub(crate) fn session(&self) -> (u64, bool) {
        let inner = self.lock();
        (inner.number, matches!(inner.phase, Phase::Recording(_)))
    }

    /// Returns how the running session samples: bytes between two samples on average, 0 if it records every allocation.
    /// `None` if no session runs.
    pub(crate) fn sample(&self) -> Option<u64> {
        match &self.lock().phase {
            Phase::Recording(session) => Some(session.sample()),
            _ => None,
        }
    }

    /// Changes the rate of the running session, which must be sampling.
    pub(crate) fn resample(&self, mean: u64) -> Result<(), Error> {
        let mut inner = self.lock();
        let Phase::Recording(session) = &mut inner.phase else {
            return Err(Error::NotRecording);
        };
        session.resample(mean).map_err(Error::Session)
    }

    /// Enters a new session that runs. Returns its number.
    pub(crate) fn begin(&self, session: Session) -> u64 {
        let mut inner = self.lock();
        inner.phase = Phase::Recording(session);
        inner.number += 1;
        inner.last = None;
        inner.trouble = None;
        inner.number
    }

    /// Takes the running session out in order to end it.
    pub(crate) fn end(&self) -> Option<Session> {
        let mut inner = self.lock();
        match std::mem::take(&mut inner.phase) {
            Phase::Recording(session) => {
                inner.phase = Phase::Ending;
                Some(session)
            }
            other => {
                inner.phase = other;
                None
            }
        }
    }

    /// Takes the running session out if its collector has failed.
    pub(crate) fn end_lost(&self) -> Option<Session> {
        let mut inner = self.lock();
        match std::mem::take(&mut inner.phase) {
            Phase::Recording(session) if session.counters().is_err() => {
                inner.phase = Phase::Ending;
                Some(session)
            }
            other => {
                inner.phase = other;
                None
            }
        }
    }

    /// Returns whether the running session has stopped recording by itself.
    pub(crate) fn has_ended_early(&self) -> bool {
        match &self.lock().phase {
            Phase::Recording(session) => session
                .counters()
                .is_ok_and(|counters| counters.ended.is_some()),
            _ => false,
        }
    }

    /// Notes that the last session ended for this reason, and not because somebody stopped it.
    pub(crate) fn note_end(&self, reason: &str) {
        self.lock().trouble = Some(format!("recording ended: {reason}"));
    }

    /// Forgets what session `number` has left, if it is the last one and has ended. Returns whether it did.
    pub(crate) fn forget(&self, number: u64) -> bool {
        let mut inner = self.lock();
        let over = inner.number == number && matches!(inner.phase, Phase::Stopped);
        if over {
            inner.last = None;
        }
        over
    }

    /// Notes that the session has ended, with this last view of it if there is one. `cause`: why, if nobody stopped it.
    pub(crate) fn ended(&self, last: Option<Snapshot>, cause: Option<Reason>) {
        let mut inner = self.lock();
        inner.phase = Phase::Writing;
        inner.last = last.map(|snapshot| Seen {
            snapshot: Arc::new(snapshot),
            cause,
        });
        drop(inner);
        self.ended.notify_all();
    }

    /// Notes that the report is written, or failed.
    pub(crate) fn stopped(&self) {
        self.lock().phase = Phase::Stopped;
    }

    pub(crate) fn note_trouble(&self, error: &Error) {
        self.lock().trouble = Some(error_chain(error).to_string());
    }

    /// Returns a consistent view: of the running session up to now, or of the finished one. Blocks while a session ends.
    pub(crate) fn view(&self) -> Result<View, Error> {
        let inner = self.lock();
        let inner = inner.wait_while(&self.ended, |inner| matches!(inner.phase, Phase::Ending));
        let seen = match &inner.phase {
            Phase::Recording(session) => Seen {
                snapshot: Arc::new(session.snapshot().map_err(Error::Session)?),
                cause: None,
            },
            _ => inner.last.clone().ok_or(Error::NoReport)?,
        };
        Ok(View {
            session: inner.number,
            snapshot: seen.snapshot,
            cause: seen.cause,
        })
    }

    /// Names the present moment.
    pub(crate) fn mark(&self, name: &str) -> Result<Mark, Error> {
        let length = name.chars().take(MARK_NAME + 1).count();
        if length == 0 || length > MARK_NAME || name.chars().any(char::is_control) {
            return Err(Error::InvalidMarkName);
        }
        let inner = self.lock();
        let Phase::Recording(session) = &inner.phase else {
            return Err(Error::NotRecording);
        };
        let mark = session.mark(name);
        let mark = mark.map_err(Error::Session)?;
        mark.map(Mark::of).ok_or(Error::TooManyMarks)
    }

    /// Returns the timeline, and the `sites` call sites of the running session with the most live bytes, with the `ages` of
    /// their blocks if asked. `None` if no session runs.
    #[cfg(feature = "http")]
    pub(crate) fn top(&self, sites: usize, ages: bool) -> Option<Snapshot> {
        match &self.lock().phase {
            Phase::Recording(session) => session.top(sites, ages).ok(),
            _ => None,
        }
    }

    /// Returns the last view of the finished session.
    #[cfg(feature = "http")]
    pub(crate) fn last(&self) -> Option<Arc<Snapshot>> {
        let last = &self.lock().last;
        last.as_ref().map(|last| Arc::clone(&last.snapshot))
    }

    /// Returns the status, all but what is on disk.
    pub(crate) fn status(&self) -> Status {
        let inner = self.lock();
        let mut status = Status::bare(match inner.phase {
            Phase::Stopped => State::Stopped,
            Phase::Recording(_) => State::Recording,
            Phase::Ending | Phase::Writing => State::Stopping,
        });
        match (&inner.phase, &inner.last) {
            (Phase::Recording(session), _) => match session.counters() {
                Ok(counters) => status.count(counters),
                Err(error) => status.trouble = Some(error.to_string()),
            },
            (_, Some(last)) => status.sum_up(&last.snapshot),
            (_, None) => {}
        }
        if inner.trouble.is_some() {
            status.trouble.clone_from(&inner.trouble);
        }
        status
    }
}
