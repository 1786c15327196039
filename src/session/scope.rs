//! A scope: a part of the program that is summed up by itself, in the session that runs, or in one that runs for its time.
//!
//! ```text
//!            a session runs:  ask its collector
//!   begin ─▶                                            ─▶ ActiveScope ─▶ end ─▶ Snapshot
//!            none runs:       start one, or join the one
//!                             that other scopes have       the last of its scopes stops that one
//! ```
//!
//! A session that ends before its scopes sends each of them what it has of it.

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

/// The session that records, whoever holds it.
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

#[derive(Debug, Clone)]
struct Running {
    requests: SyncSender<Request>,
    hooks: Hooks,
}

/// The session that runs for scopes alone, and how many of them it has.
static OWN: Mutex<Option<(Session, usize)>> = Mutex::new(None);

static LAST: AtomicU64 = AtomicU64::new(0);

/// Times that a scope tries to find a session or to start one, where others start and stop them meanwhile.
const TRIES: usize = 5;

fn running() -> MutexGuard<'static, Option<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn own() -> MutexGuard<'static, Option<(Session, usize)>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A session records.
pub(super) fn opened(requests: &SyncSender<Request>, hooks: Hooks) {
    let requests = requests.clone();
    *running() = Some(Running { requests, hooks });
}

/// It does no more.
pub(super) fn closed() {
    running().take();
}

/// A scope that has begun and not ended. Dropping it ends it without an answer.
#[derive(Debug)]
pub struct ActiveScope {
    id: ScopeId,
    requests: SyncSender<Request>,
    snapshot: Receiver<Snapshot>,
    /// It counts among those of [`OWN`].
    own: bool,
}

impl ActiveScope {
    /// Begins a scope that counts what all threads allocate, or only the calling one.
    ///
    /// # Errors
    /// Those of [`Session::start`], where no session records.
    pub fn begin(this_thread_only: bool) -> Result<ActiveScope, StartError> {
        if control::is_forked_child() {
            return Err(StartError::ForkedChild);
        }
        let _busy = Busy::enter();
        let thread = this_thread_only.then(|| with_local(thread::number));
        let mut last = StartError::AlreadyRecording;
        for _ in 0..TRIES {
            // Held to the end of the round: the last scope of an own session must not stop it in between.
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
                    // It is ending just now, or has failed: one of ours is of no use to anybody then.
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

    /// Ends the scope: what was seen of it.
    ///
    /// # Errors
    /// The collector is gone.
    pub fn end(self) -> Result<Snapshot, SessionError> {
        if control::is_forked_child() {
            return Err(SessionError);
        }
        let _busy = Busy::enter();
        // Where the session has ended, the answer is there.
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
        // Many at once may have to wait for each other: a scope that is not ended is fed to the session's end.
        let _ended = self.requests.send(Request::EndScope(self.id));
        if !self.own {
            return;
        }
        let mut own = own();
        if let Some((_, scopes)) = &mut *own {
            *scopes = scopes.saturating_sub(1);
            if *scopes == 0 {
                // Nobody needs its last view.
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
