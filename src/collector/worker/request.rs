//! The requests of a session and its scopes to the collector.

use std::collections::BTreeMap;
#[cfg(test)]
use std::sync::mpsc::Receiver;
use std::sync::mpsc::SyncSender;

use super::Counters;
use crate::capture::thread::Busy;
use crate::collector::log::PendingLog;
use crate::collector::recording::ScopeId;
use crate::collector::snapshot::{ContextSums, Hooks, Snapshot};
use heapray_report::model::Mark;

/// Way in which a session sees allocations. The session finds it out after its collector has started, so it comes with each
/// request whose answer contains it.
#[derive(Debug, Clone)]
pub struct Visibility {
    /// The hooks.
    pub hooks: Hooks,
    /// Limits on what the session records: a sentence each.
    pub notes: Vec<String>,
}

/// Request to the collector. The answer is a consistent view up to the moment at which the request was taken.
#[derive(Debug)]
pub enum Request {
    /// The sums.
    Counters(Visibility, SyncSender<Counters>),
    /// Everything. Recording goes on.
    Snapshot(Visibility, SyncSender<Taken>),
    /// Names the present moment; `None` if there are too many marks.
    Mark(String, SyncSender<Option<Mark>>),
    /// The most important data for a live page: the timeline, and that many call sites with the most live bytes.
    Top {
        sites: usize,
        ages: bool,
        visibility: Visibility,
        answer: SyncSender<Snapshot>,
    },
    /// What each context has allocated and holds.
    Contexts(SyncSender<BTreeMap<u32, ContextSums>>),
    /// Change of the rate: samples with a point every so many bytes from now on.
    Resample(u64, SyncSender<()>),
    /// Begin of a scope.
    BeginScope(BeginScope),
    /// End of a scope. The client that began it gets the answer.
    EndScope(ScopeId),
    /// Everything, after which the thread ends. Hooks were closed before.
    Stop(Visibility, SyncSender<Taken>),
    /// End of the thread. Only clients with a scope get an answer. Hooks were closed before.
    Abandon,
    /// A fault in the collector, to test what happens to the service then.
    #[cfg(test)]
    Panic,
    /// A wait until the other end is dropped, like that of a collector that waits for a lock.
    #[cfg(test)]
    Stall(Receiver<()>),
    /// The same of the thread that writes the event log, as if its disk did not answer.
    #[cfg(test)]
    StallLog(Receiver<()>),
    /// A wait of the collector, as work that takes nothing but a processor.
    #[cfg(test)]
    Work(Receiver<()>),
}

/// A snapshot whose event log may not be in its file yet.
#[derive(Debug)]
pub struct Taken {
    pub(super) snapshot: Snapshot,
    pub(super) log: Option<PendingLog>,
}

impl Taken {
    /// Returns the snapshot without its event log.
    #[must_use]
    pub fn without_log(self) -> Snapshot {
        self.snapshot
    }

    /// Waits for the event log. If it is given up meanwhile, the snapshot says so.
    #[must_use]
    pub fn wait(self) -> Snapshot {
        let _busy = Busy::enter();
        let mut snapshot = self.snapshot;
        match self.log.map(PendingLog::wait) {
            Some(Ok(log)) => snapshot.log = Some(log),
            Some(Err(reason)) => snapshot.log_given_up = Some(reason),
            None => {}
        }
        snapshot
    }
}

/// Scope: a part of a session that is summed up separately from now on.
#[derive(Debug)]
pub struct BeginScope {
    /// Number of the scope.
    pub id: ScopeId,
    /// The thread whose allocations count, or `None` for all threads.
    pub thread: Option<u32>,
    /// Way in which the session sees allocations.
    pub hooks: Hooks,
    /// Receives a message when the scope has begun.
    pub begun: SyncSender<()>,
    /// Receives the snapshot when the scope ends, or when the session ends before it.
    pub ended: SyncSender<Snapshot>,
}
