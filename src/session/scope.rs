//! Capture scopes: parts of the program with sums of their own. A scope uses the running session, or a session that runs
//! only for scopes.
//!
//! ```text
//!            a session runs:  send its collector a request
//!   begin ─▶                                                ─▶ ActiveScope ─▶ end ─▶ Snapshot
//!            none runs:       start a session for scopes
//!                                                              the last scope stops the session for scopes
//! ```
//!
//! A session that ends before its scopes sends each scope a snapshot of what it recorded until then.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Observer, Session, SessionError, SessionOptions, StartError};
use crate::capture::control;
use crate::capture::thread::{self, Busy, with_local};
use crate::collector::recording::ScopeId;
use crate::collector::snapshot::{Hooks, Snapshot};
use crate::collector::worker::{BeginScope, Request};
use crate::config::overhead_share;
use crate::flight_recorder;

/// The recording session, of the profiler or for scopes.
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

#[derive(Debug, Clone)]
struct Running {
    requests: SyncSender<Request>,
    hooks: Hooks,
}

/// The session that runs only for scopes, and the number of its scopes.
static OWN: Mutex<Option<(Session, usize)>> = Mutex::new(None);

static LAST: AtomicU64 = AtomicU64::new(0);

/// The number of attempts to find or start a session while other threads start and stop sessions.
const TRIES: usize = 5;

fn running() -> MutexGuard<'static, Option<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn own() -> MutexGuard<'static, Option<(Session, usize)>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that a session records.
pub(super) fn opened(requests: &SyncSender<Request>, hooks: Hooks) {
    let requests = requests.clone();
    *running() = Some(Running { requests, hooks });
}

/// Notes that the session does not record any more.
pub(super) fn closed() {
    running().take();
}

/// A scope that has begun and not ended. Dropping it ends the scope without a snapshot.
#[derive(Debug)]
pub struct ActiveScope {
    id: ScopeId,
    requests: SyncSender<Request>,
    snapshot: Receiver<Snapshot>,
    /// Whether it counts as a scope of [`OWN`].
    own: bool,
}

impl ActiveScope {
    /// Begins a scope that counts the allocations of all threads, or only of the calling thread.
    ///
    /// # Errors
    /// Those of [`Session::start`], if no session records.
    pub fn begin(this_thread_only: bool) -> Result<ActiveScope, StartError> {
        if control::is_forked_child() {
            return Err(StartError::ForkedChild);
        }
        let _busy = Busy::enter();
        let thread = this_thread_only.then(|| with_local(thread::number));
        let mut last = StartError::AlreadyRecording;
        for _ in 0..TRIES {
            // Locked to the end of the attempt: the last scope of the session for scopes must not stop it meanwhile.
            let mut own = own();
            let running = running().clone();
            match running {
                Some(running) => {
                    if let Ok(mut scope) = ask(running, thread) {
                        if let Some((_, scopes)) = &mut *own {
                            *scopes += 1;
                            scope.own = true;
                        }
                        return Ok(scope);
                    }
                    // The session is ending, or has failed. If it is the one for scopes, it is of no use any more.
                    drop(own.take());
                    drop(own);
                    std::thread::yield_now();
                }
                None => match start() {
                    Ok(session) => {
                        *own = Some((session, 0));
                    }
                    Err(StartError::AlreadyRecording) => {
                        drop(own);
                        std::thread::sleep(std::time::Duration::from_millis(5));
                    }
                    Err(error) => {
                        last = error;
                        break;
                    }
                },
            }
        }
        let mut own = own();
        if own.as_ref().is_some_and(|(_, scopes)| *scopes == 0) {
            drop(own.take());
        }
        Err(last)
    }

    /// Ends the scope, and returns a snapshot of it.
    ///
    /// # Errors
    /// The collector does not run.
    pub fn end(self) -> Result<Snapshot, SessionError> {
        if control::is_forked_child() {
            return Err(SessionError);
        }
        let _busy = Busy::enter();
        // Sending fails if the session has ended. Then the snapshot was sent already.
        let _ended = self.requests.send(Request::EndScope(self.id));
        control::wake_collector();
        self.snapshot.recv().map_err(|_| SessionError)
    }
}

impl Drop for ActiveScope {
    fn drop(&mut self) {
        if control::is_forked_child() {
            return;
        }
        let _busy = Busy::enter();
        // Sending may wait if many scopes end at once. A scope that is not ended gets events until the session ends.
        let _ended = self.requests.send(Request::EndScope(self.id));
        if !self.own {
            return;
        }
        let mut own = own();
        if let Some((_, scopes)) = &mut *own {
            *scopes = scopes.saturating_sub(1);
            if *scopes == 0 {
                // The last snapshot is not needed.
                drop(own.take());
            }
        }
    }
}

fn start() -> Result<Session, StartError> {
    let options = SessionOptions {
        spool_dir: PathBuf::new(),
        log_limit: 0,
        overhead_limit: overhead_share(flight_recorder::memory_of_process()),
        sample: 0,
    };
    Session::open(&options, Observer::nobody(), false)
}

fn ask(running: Running, thread: Option<u32>) -> Result<ActiveScope, SessionError> {
    let Running { requests, hooks } = running;
    let id = ScopeId(LAST.fetch_add(1, Ordering::Relaxed) + 1);
    let (begun, has_begun) = sync_channel(1);
    let (ended, snapshot) = sync_channel(1);
    let begin = BeginScope {
        id,
        thread,
        hooks,
        begun,
        ended,
    };
    requests
        .send(Request::BeginScope(begin))
        .map_err(|_| SessionError)?;
    control::wake_collector();
    has_begun.recv().map_err(|_| SessionError)?;
    Ok(ActiveScope {
        id,
        requests,
        snapshot,
        own: false,
    })
}
