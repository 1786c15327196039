//! Scopes that are open while a session records: their beginnings, and the snapshot that each gets at its end.

use std::sync::mpsc::SyncSender;
use std::time::{Instant, SystemTime};

use super::{BeginScope, Visibility, Worker};
use crate::capture::sampling::{self, Metered};
use crate::capture::{clock, control, memory, record, room, unwind};
use crate::collector::clock::Clock;
use crate::collector::recording::ScopeId;
use crate::collector::snapshot::{Hooks, Snapshot};
use crate::os::memory as process_memory;

/// Open scope, besides its tables.
#[derive(Debug)]
pub(super) struct OpenScope {
    pub(super) id: ScopeId,
    started: SystemTime,
    start_stamp: u64,
    metered_before: Metered,
    stacks_before: unwind::StackCounts,
    lost_before: u64,
    of_one_thread: bool,
    hooks: Hooks,
    ended: SyncSender<Snapshot>,
}

impl Worker {
    pub(super) fn begin_scope(&mut self, begin: BeginScope) {
        let start_stamp = clock::stamp();
        self.recording
            .begin_scope(begin.id, begin.thread, start_stamp);
        self.scopes.push(OpenScope {
            id: begin.id,
            started: SystemTime::now(),
            start_stamp,
            metered_before: sampling::metered(),
            stacks_before: unwind::counts(),
            lost_before: record::lost(),
            of_one_thread: begin.thread.is_some(),
            hooks: begin.hooks,
            ended: begin.ended,
        });
        self.read_memory(Instant::now());
        let _gone = begin.begun.try_send(());
    }

    /// Sends the snapshot of a scope to the client that began the scope. `early` is the reason why it ends before its time.
    pub(super) fn end_scope(&mut self, id: ScopeId, early: Option<&str>) {
        let Some(at) = self.scopes.iter().position(|scope| scope.id == id) else {
            return;
        };
        let scope = self.scopes.swap_remove(at);
        self.read_memory(Instant::now());
        let own_mapped = memory::own_bytes() as u64;
        let process_memory = process_memory::read(own_mapped, self.own_bytes() - own_mapped);
        let Some((tables, export)) = room::at_work(|| self.recording.end_scope(id)) else {
            return;
        };
        let stacks = unwind::counts();
        let lost = self.lost_events();
        let lost_now = record::lost() - scope.lost_before + self.unfinished;
        let visibility = Visibility {
            hooks: scope.hooks,
            notes: Vec::new(),
        };
        let mut snapshot = self
            .complete(export, process_memory, visibility, false)
            .snapshot;
        snapshot.started = scope.started;
        snapshot.sampling = self.sampled(&tables, scope.metered_before);
        snapshot.lost_events = lost_now;
        // Of the losses before the scope, only the first has a known time.
        let since = (lost == lost_now).then(control::first_lost).flatten();
        let ticks_per_ms = self.clock.ticks_per_ms;
        let start_stamp = scope.start_stamp;
        let clock = Clock {
            start_stamp,
            ticks_per_ms,
        };
        snapshot.lost_since_ms =
            (lost_now > 0).then(|| since.map_or(0, |stamp| clock.at_ms(stamp)));
        snapshot.stacks_cut = stacks.cut - scope.stacks_before.cut;
        snapshot.stacks_incomplete = stacks.incomplete - scope.stacks_before.incomplete;
        snapshot.log_given_up = Some("a part of a session has sums only".to_owned());
        let what = if scope.of_one_thread {
            "what one thread allocated in"
        } else {
            "what all threads allocated in"
        };
        snapshot
            .notes
            .push(format!("this is {what} a part of the program"));
        let early = early.map(|why| format!("the part ended early: {why}"));
        snapshot.notes.extend(early);
        let _gone = scope.ended.try_send(snapshot);
    }
}
