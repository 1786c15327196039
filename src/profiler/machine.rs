//! The state machine: which session runs, and what the last one left. `Lifecycle` moves it; all others read it.

use std::sync::{Arc, Condvar};

use super::lock::{Lock, LockGuard, Rank};
use super::{Error, Mark, State, Status};
#[cfg(feature = "http")]
use crate::collector::routes::{SumsByRoute, by_route};
use crate::collector::snapshot::Snapshot;
use crate::collector::worker::Taken;
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
    /// Sessions so far, those in the background too.
    sessions: u64,
    /// The session that somebody has asked for last, which may still run: 0 before the first.
    number: u64,
    /// The last view of that session, if it has ended.
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
///
/// With `MEMRAY_PROFILER_CONTINUOUS`, `Background` takes the place of `Stopped`: a session runs that nobody has asked for. A
/// start ends it without a report. Another one begins when the report of the session that was asked for is written.
#[derive(Debug, Default)]
enum Phase {
    #[default]
    Stopped,
    Background {
        number: u64,
        session: Session,
    },
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
    /// Returns a view of session `number`.
    pub(super) fn new(number: u64, snapshot: Snapshot) -> View {
        View {
            session: number,
            snapshot: Arc::new(snapshot),
            cause: None,
        }
    }

    /// Returns a view of a session of another process.
    pub(crate) fn of(snapshot: Snapshot) -> View {
        View {
            session: 0,
            snapshot: Arc::new(snapshot),
            cause: None,
        }
    }
}

impl Inner {
    /// Returns the session that runs, in the background or not, and its number.
    fn running(&self) -> Option<(u64, &Session)> {
        match &self.phase {
            Phase::Background { number, session } => Some((*number, session)),
            Phase::Recording(session) => Some((self.number, session)),
            _ => None,
        }
    }

    /// Returns the session that runs, if outputs are of it: one that somebody has asked for, or else the one in the
    /// background as long as no other has left anything.
    fn shown(&self) -> Option<(u64, &Session)> {
        let is_shown = matches!(self.phase, Phase::Recording(_)) || self.last.is_none();
        self.running().filter(|_| is_shown)
    }
}

fn take_snapshot(session: &Session) -> Result<Taken, Error> {
    session.take_snapshot().map_err(Error::Session)
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

    /// Returns the number of the session that outputs are of (0 before the first), and whether it runs.
    pub(crate) fn session(&self) -> (u64, bool) {
        let inner = self.lock();
        let shown = inner.shown().map(|(number, _)| (number, true));
        shown.unwrap_or((inner.number, false))
    }

    /// Returns the number of the session that runs, also in the background.
    pub(crate) fn running(&self) -> Option<u64> {
        self.lock().running().map(|(number, _)| number)
    }

    /// Returns how the running session that somebody has asked for samples: bytes between two samples on average, 0 if it
    /// records every allocation. `None` if no such session runs.
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
        inner.sessions += 1;
        inner.number = inner.sessions;
        inner.last = None;
        inner.trouble = None;
        let number = inner.number;
        drop(inner);
        self.ended.notify_all();
        number
    }

    /// Enters a new session that runs in the background. What the last one has left stays.
    pub(crate) fn begin_in_background(&self, session: Session) {
        let mut inner = self.lock();
        inner.sessions += 1;
        let number = inner.sessions;
        inner.phase = Phase::Background { number, session };
        drop(inner);
        self.ended.notify_all();
    }

    /// Takes the session in the background out in order to end it. Then something must [`begin`](Self::begin), or the machine
    /// be [`stopped`](Self::stopped).
    pub(crate) fn end_background(&self) -> Option<(u64, Session)> {
        let mut inner = self.lock();
        match std::mem::take(&mut inner.phase) {
            Phase::Background { number, session } => {
                inner.phase = Phase::Ending;
                Some((number, session))
            }
            other => {
                inner.phase = other;
                None
            }
        }
    }

    /// Takes the session in the background out like [`end`](Self::end): from now on it is one that somebody has asked for.
    pub(crate) fn end_background_for_report(&self) -> Option<(u64, Session)> {
        let (number, session) = self.end_background()?;
        let mut inner = self.lock();
        inner.number = number;
        inner.last = None;
        Some((number, session))
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
        let inner = self.lock();
        let counters = inner.running().map(|(_, session)| session.counters());
        counters.is_some_and(|counters| counters.is_ok_and(|counters| counters.ended.is_some()))
    }

    /// Notes that the last session ended for this reason, and not because somebody stopped it.
    pub(crate) fn note_end(&self, reason: &str) {
        self.lock().trouble = Some(format!("recording ended: {reason}"));
    }

    /// Forgets what session `number` has left, if it is the last one and has ended. Returns whether it did.
    pub(crate) fn forget(&self, number: u64) -> bool {
        let mut inner = self.lock();
        let over = inner.number == number
            && matches!(inner.phase, Phase::Stopped | Phase::Background { .. });
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
        self.ended.notify_all();
    }

    pub(crate) fn note_trouble(&self, error: &Error) {
        self.lock().trouble = Some(error_chain(error).to_string());
    }

    /// Returns a consistent view of the session that outputs are of: up to now if it runs, or else of its end. Blocks while
    /// a session ends.
    pub(crate) fn view(&self) -> Result<View, Error> {
        self.view_preferring(None)
    }

    /// Does what [`view`](Self::view) does, but of session `number` if that runs in the background.
    pub(crate) fn view_preferring(&self, number: Option<u64>) -> Result<View, Error> {
        let inner = self.lock();
        let inner = inner.wait_while(&self.ended, |inner| matches!(inner.phase, Phase::Ending));
        let running = inner.running();
        let wanted = running.filter(|(running, _)| Some(*running) == number);
        if let Some((number, session)) = wanted.or_else(|| inner.shown()) {
            let taken = take_snapshot(session)?;
            // Others need not wait for the event log's disk.
            drop(inner);
            return Ok(View::new(number, taken.wait()));
        }
        let seen = inner.last.clone().ok_or(Error::NoReport)?;
        Ok(View {
            session: inner.number,
            snapshot: seen.snapshot,
            cause: seen.cause,
        })
    }

    /// Returns a view of the session that runs, also in the background, without its event log; `None` if none runs.
    pub(crate) fn running_view(&self) -> Option<View> {
        let inner = self.lock();
        let (number, session) = inner.running()?;
        let taken = take_snapshot(session).ok()?;
        Some(View::new(number, taken.without_log()))
    }

    /// Names the present moment.
    pub(crate) fn mark(&self, name: &str) -> Result<Mark, Error> {
        let length = name.chars().take(MARK_NAME + 1).count();
        if length == 0 || length > MARK_NAME || name.chars().any(char::is_control) {
            return Err(Error::InvalidMarkName);
        }
        let inner = self.lock();
        let (_, session) = inner.running().ok_or(Error::NotRecording)?;
        let mark = session.mark(name);
        let mark = mark.map_err(Error::Session)?;
        mark.map(Mark::of).ok_or(Error::TooManyMarks)
    }

    /// Returns the timeline, and the `sites` call sites of the running session with the most live bytes, with the `ages` of
    /// their blocks if asked. `None` if no session runs.
    #[cfg(feature = "http")]
    pub(crate) fn top(&self, sites: usize, ages: bool) -> Option<Snapshot> {
        let inner = self.lock();
        let (_, session) = inner.running()?;
        session.top(sites, ages).ok()
    }

    /// Returns the number of the running session, and what each of its routes has allocated and holds.
    #[cfg(feature = "http")]
    pub(crate) fn sums_by_route(&self) -> Option<(u64, SumsByRoute)> {
        let inner = self.lock();
        let (number, session) = inner.running()?;
        Some((number, by_route(session.sums_by_context().ok()?)))
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
            Phase::Background { .. } => State::Background,
            Phase::Recording(_) => State::Recording,
            Phase::Ending | Phase::Writing => State::Stopping,
        });
        match (inner.running(), &inner.last) {
            (Some((_, session)), _) => match session.counters() {
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
