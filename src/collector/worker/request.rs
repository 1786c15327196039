//! What a session, and whoever has a scope in it, asks of the collector.

#[cfg(test)]
use std::sync::mpsc::Receiver;
use std::sync::mpsc::SyncSender;

use super::Counters;
use crate::collector::recording::ScopeId;
use crate::collector::snapshot::{Hooks, Snapshot};
use heapray_report::model::Mark;

/// How a session sees allocations. The session finds that out when its collector runs already, so it comes with each request
/// whose answer tells of it.
#[derive(Debug, Clone)]
pub struct Visibility {
    /// The way.
    pub hooks: Hooks,
    /// What limits what the session sees: a sentence each.
    pub notes: Vec<String>,
}

/// A request to the collector. The answer is a consistent view up to the moment at which it was taken.
#[derive(Debug)]
pub enum Request {
    /// The sums.
    Counters(Visibility, SyncSender<Counters>),
    /// Everything; recording goes on.
    Snapshot(Visibility, SyncSender<Snapshot>),
    /// Names the present moment; `None` if there are too many marks.
    Mark(String, SyncSender<Option<Mark>>),
    /// What matters most while somebody watches: the timeline, and that many call sites with the most live bytes.
    Top(usize, Visibility, SyncSender<Snapshot>),
    /// Samples with a point each so many bytes from now on.
    Resample(u64, SyncSender<()>),
    /// Begins a scope.
    BeginScope(BeginScope),
    /// Ends a scope: whoever began it gets the answer.
    EndScope(ScopeId),
    /// Everything; the thread ends. Hooks were closed before.
    Stop(Visibility, SyncSender<Snapshot>),
    /// The thread ends, and nobody wants to know what was recorded but those who have a scope. Hooks were closed before.
    Abandon,
    /// A fault in the collector, for the test of what becomes of the service then.
    #[cfg(test)]
    Panic,
    /// A collector that gets no processor until the other end is dropped.
    #[cfg(test)]
    Stall(Receiver<()>),
}

/// A scope: a part of a session that is to be summed up by itself from now on.
#[derive(Debug)]
pub struct BeginScope {
    /// Its number.
    pub id: ScopeId,
    /// Whose allocations count, if not everybody's.
    pub thread: Option<u32>,
    /// How the session sees allocations.
    pub hooks: Hooks,
    /// Told when it has begun.
    pub begun: SyncSender<()>,
    /// Where its snapshot goes when it ends, or the session does before it.
    pub ended: SyncSender<Snapshot>,
}
