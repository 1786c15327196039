//! Outputs that clients have asked for, and the order in which they are made: one at a time, each once however many clients
//! wait for it, and only while somebody waits.
//!
//! ```text
//! enqueue ──▶ waiting ──▶ take_next ──▶ running ──▶ complete: all who wait get it
//!    │                                     │ interrupted: back to the front
//!    └─ no room: refused                   └ nobody waits any more: dropped
//! ```
//!
//! A session's own report (`stop`, `shutdown`) is urgent: it goes first. While it waits, and while the queue is held (by the
//! thread that ends a session, and by the flight recorder), no other output is begun and the running one is interrupted: two
//! outputs made at once would need twice the memory.
//!
//! The queue does not know its clients: behind a proxy they all have one address. It knows what they ask for. The present
//! session's usual outputs are few, so each always has a place. All other outputs share [`OTHERS`] places, those of one
//! report [`OF_ONE`] of them. The two kinds take turns. So one client can fill the places of unusual outputs, but keeps nobody
//! from the report, the flame graph and the statistics.

use std::collections::VecDeque;

use super::{Made, Origin, OutputSpec};
use crate::profiler::Error;
use crate::profiler::lock::{Lock, LockGuard, Rank};
use crate::profiler::store::OutputKey;
use crate::profiler::waiter::Waiter;

/// Outputs that may wait, besides the usual ones of the present session.
const OTHERS: usize = 16;
/// Of them, those that are made from one report.
const OF_ONE: usize = 8;
/// Outputs of any kind that may wait. Usual ones of sessions that have ended meanwhile count as well.
const ALL: usize = 64;
/// Clients that may wait for one output.
const WAITERS: usize = 1024;

/// Outputs that wait to be made, and the one that is being made.
pub(crate) struct Queue {
    inner: Lock<Inner>,
}

#[derive(Default)]
struct Inner {
    waiting: VecDeque<Entry>,
    running: Option<Entry>,
    /// How many holders want only urgent outputs to be made.
    holds: usize,
    /// The service is about to end.
    is_ending: bool,
    /// A thread takes entries out, or is about to.
    is_served: bool,
    /// The entry that was taken out last was a usual one.
    was_usual: bool,
}

struct Entry {
    spec: OutputSpec,
    waiters: Vec<Waiter<Made>>,
    is_urgent: bool,
    /// Was told, while being made, that nobody wants it.
    is_interrupted: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl Queue {
    pub(super) fn new() -> Queue {
        Queue {
            // Nothing that holds it panics half way.
            inner: Lock::new(Rank::Queue, Inner::default()),
        }
    }

    fn lock(&self) -> LockGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Adds a waiter; one for whom there is no room is given an error. If it returns true, the caller must have
    /// [`take_next`](Queue::take_next) called on the thread that makes outputs.
    #[must_use]
    pub(super) fn enqueue(&self, spec: OutputSpec, waiter: Waiter<Made>, is_urgent: bool) -> bool {
        let mut inner = self.lock();
        match inner.enqueue(spec, waiter, is_urgent) {
            Ok(()) => inner.must_be_served(),
            Err((waiter, error)) => {
                drop(inner);
                waiter.give(Err(error));
                false
            }
        }
    }

    /// Returns what to make now. The caller then [completes](Queue::complete) it and asks again, until this is `None`.
    pub(super) fn take_next(&self) -> Option<OutputSpec> {
        let mut inner = self.lock();
        let next = inner.take();
        inner.is_served = next.is_some();
        let spec = next.as_ref().map(|entry| entry.spec);
        inner.running = next;
        spec
    }

    /// Returns whether to go on with what is being made, also after it was completed.
    pub(super) fn is_wanted(&self) -> bool {
        let inner = &mut *self.lock();
        let goes_first = inner.waiting.iter().any(|entry| entry.is_urgent);
        let is_free = inner.holds == 0 && !inner.is_ending && !goes_first;
        let Some(running) = &mut inner.running else {
            return is_free;
        };
        if running.is_urgent {
            return true;
        }
        let is_awaited = running.waiters.iter().any(|waiter| !waiter.is_gone());
        let others_wait = || inner.waiting.iter().any(Entry::is_awaited);
        // An output that nobody waits for is found by the next client that asks, unless it shows a moment of a running session.
        let goes_on = is_awaited || (!running.spec.is_snapshot() && !others_wait());
        let wanted = is_free && goes_on;
        running.is_interrupted |= !wanted;
        wanted
    }

    /// Gives the result to all who wait. An output that was interrupted, and failed because of it, waits again if somebody
    /// waits for it. Returns whether the output has come to an end.
    pub(super) fn complete(&self, made: &Made) -> bool {
        let mut inner = self.lock();
        let Some(mut entry) = inner.running.take() else {
            return true;
        };
        let mut made = made.clone();
        if entry.is_interrupted && made.is_err() {
            entry.is_interrupted = false;
            if !entry.is_awaited() {
                return false;
            }
            if !inner.is_ending || entry.is_urgent {
                inner.waiting.push_front(entry);
                return false;
            }
            made = Err(Error::Ending);
        }
        drop(inner);
        entry.give(&made);
        true
    }

    /// Lets only urgent outputs be made, until there were as many [releases](Queue::release).
    pub(super) fn hold(&self) {
        self.lock().holds += 1;
    }

    /// Ends a [hold](Queue::hold). If it returns true, the caller must have [`take_next`](Queue::take_next) called.
    #[must_use]
    pub(super) fn release(&self) -> bool {
        let mut inner = self.lock();
        inner.holds = inner.holds.saturating_sub(1);
        inner.must_be_served()
    }

    /// Refuses all outputs that are not urgent from now on, waiting ones as well: the service ends. Returns how many outputs
    /// that somebody waited for are not made.
    pub(super) fn end(&self) -> usize {
        let mut inner = self.lock();
        inner.is_ending = true;
        let running = usize::from(inner.running.as_ref().is_some_and(|entry| !entry.is_urgent));
        let (urgent, left_out): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut inner.waiting)
            .into_iter()
            .partition(|entry| entry.is_urgent);
        inner.waiting = urgent;
        drop(inner);
        let awaited = left_out.iter().filter(|entry| entry.is_awaited()).count();
        for entry in left_out {
            entry.give(&Err(Error::Ending));
        }
        running + awaited
    }

    /// Returns whether the service is about to end.
    pub(super) fn is_ending(&self) -> bool {
        self.lock().is_ending
    }

    /// Accepts outputs again: the service has not ended after all.
    pub(super) fn go_on(&self) {
        self.lock().is_ending = false;
    }
}

impl Inner {
    fn enqueue(
        &mut self,
        spec: OutputSpec,
        waiter: Waiter<Made>,
        is_urgent: bool,
    ) -> Result<(), (Waiter<Made>, Error)> {
        let mut all = self.running.iter_mut().chain(&mut self.waiting);
        if let Some(same) = all.find(|entry| entry.spec == spec) {
            if same.waiters.len() >= WAITERS {
                same.waiters.retain(|waiter| !waiter.is_gone());
            }
            if same.waiters.len() >= WAITERS && !is_urgent {
                return Err((waiter, Error::TooManyOutputs));
            }
            same.is_urgent |= is_urgent;
            same.waiters.push(waiter);
            return Ok(());
        }
        if !is_urgent {
            if self.is_ending {
                return Err((waiter, Error::Ending));
            }
            self.drop_abandoned();
            if !self.has_room(spec) {
                return Err((waiter, Error::TooManyOutputs));
            }
        }
        self.waiting.push_back(Entry {
            spec,
            waiters: vec![waiter],
            is_urgent,
            is_interrupted: false,
        });
        Ok(())
    }

    fn has_room(&self, spec: OutputSpec) -> bool {
        let others = || self.waiting.iter().filter(|entry| !entry.spec.is_usual());
        let of_one = others().filter(|entry| entry.spec.origin == spec.origin);
        let is_free = spec.is_usual() || (others().count() < OTHERS && of_one.count() < OF_ONE);
        self.waiting.len() < ALL && is_free
    }

    fn drop_abandoned(&mut self) {
        self.waiting.retain(Entry::is_awaited);
    }

    fn take(&mut self) -> Option<Entry> {
        self.drop_abandoned();
        let mut waiting = self.waiting.iter();
        let urgent = waiting.position(|entry| entry.is_urgent);
        if urgent.is_none() && (self.holds > 0 || self.is_ending) {
            return None;
        }
        let turn = |entry: &Entry| entry.spec.is_usual() != self.was_usual;
        let at = urgent.or_else(|| self.waiting.iter().position(turn));
        let entry = self.waiting.remove(at.unwrap_or(0))?;
        self.was_usual = entry.spec.is_usual();
        Some(entry)
    }

    fn must_be_served(&mut self) -> bool {
        let must = !self.is_served && !self.waiting.is_empty();
        self.is_served |= must;
        must
    }
}

impl Entry {
    fn is_awaited(&self) -> bool {
        self.is_urgent || self.waiters.iter().any(|waiter| !waiter.is_gone())
    }

    fn give(self, made: &Made) {
        for waiter in self.waiters {
            waiter.give(made.clone());
        }
    }
}

impl OutputSpec {
    /// Returns the number of the session that it is of, if it shows that while it is recording.
    pub(super) fn running(&self) -> Option<u64> {
        match self.origin {
            Origin::Session {
                number,
                recording: true,
            } => Some(number),
            #[cfg(feature = "http")]
            Origin::Process { running } => Some(running),
            _ => None,
        }
    }

    /// Returns whether it shows a session that is recording. Such an output is for those who wait for it alone.
    pub(super) fn is_snapshot(&self) -> bool {
        self.running().is_some()
    }

    /// Returns whether it is one of the present session's outputs, made without options.
    fn is_usual(&self) -> bool {
        matches!(self.origin, Origin::Session { .. }) && self.key == OutputKey::new(self.key.kind())
    }
}

#[cfg(test)]
mod tests;
