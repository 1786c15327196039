//! Room in a thread's ring, and the wait for it: what a thread whose ring is full knows of the collector.
//!
//! The collector makes room in all rings, oldest events first. So a full ring gets room as soon as the collector has read the
//! older events of the other threads, and that takes as long as the processor lets it. A thread that waits gives its
//! processor to the collector. A thread that went on and lost its events would take it away.
//!
//! A collector that waits for a lock is another matter, and must not hold up the service.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::thread::ThreadState;
use super::{clock, control};

/// Longest time that a thread waits for room in its ring since the collector has made room in any ring. After that, events
/// are lost, and the lost events are counted and reported.
pub const LONGEST_WAIT_MS: u64 = 200;

/// Longest such time while the collector needs nothing but a processor.
const LONGEST_WAIT_AT_WORK_MS: u64 = 2_000;

/// Longest sleep while waiting: the collector wakes the thread as soon as there is room.
const SLEEP_NS: u64 = 10_000_000;

/// What the collector and the threads that wait for it say of themselves, away from the words that each hook reads.
#[repr(align(128))]
struct Collector {
    /// Counter that goes up when it makes room in a ring.
    made: AtomicU32,
    /// Set while it needs nothing but a processor.
    at_work: AtomicBool,
    /// Number of threads that wait for it.
    awaited_by: AtomicU32,
}

static COLLECTOR: Collector = Collector {
    made: AtomicU32::new(0),
    at_work: AtomicBool::new(false),
    awaited_by: AtomicU32::new(0),
};

/// Makes room for one event in the ring of the calling thread, which owns `state` and is busy. Returns false if the event is
/// lost; the loss is counted.
#[inline]
pub(super) fn make(state: &'static ThreadState) -> bool {
    // SAFETY: the calling thread owns the ring.
    let has_room = unsafe { state.ring.reserve() };
    has_room || wait(state)
}

#[cold]
fn wait(state: &'static ThreadState) -> bool {
    // SAFETY: the calling thread owns `state` and is busy.
    let gave_up_at = unsafe { &mut (*state.private.get()).gave_up_at };
    // SAFETY: the calling thread owns the ring.
    let position = unsafe { state.ring.position() };
    // If nothing was published since, there was no room.
    if *gave_up_at != position {
        COLLECTOR.awaited_by.fetch_add(1, Ordering::Relaxed);
        let waited = wait_patiently(state);
        COLLECTOR.awaited_by.fetch_sub(1, Ordering::Relaxed);
        match waited {
            Waited::Room => return true,
            Waited::SessionEnded => return false,
            Waited::TooLong => *gave_up_at = position,
        }
    }
    control::count_lost(&state.lost);
    false
}

/// End of a wait.
enum Waited {
    Room,
    /// The event is of no session any more.
    SessionEnded,
    TooLong,
}

fn wait_patiently(state: &'static ThreadState) -> Waited {
    let mut patience = Patience::begin();
    while patience.lasts() {
        // SAFETY: the calling thread owns the ring.
        if unsafe { state.ring.wait(SLEEP_NS, control::wake_collector) } {
            return Waited::Room;
        }
        if control::session() == 0 {
            return Waited::SessionEnded;
        }
    }
    Waited::TooLong
}

/// Time that a thread still waits.
struct Patience {
    since_ms: u64,
    made: u32,
}

impl Patience {
    fn begin() -> Patience {
        Patience {
            since_ms: clock::milliseconds(),
            made: COLLECTOR.made.load(Ordering::Relaxed),
        }
    }

    fn lasts(&mut self) -> bool {
        if self.made != COLLECTOR.made.load(Ordering::Relaxed) {
            *self = Patience::begin();
        }
        let longest = if COLLECTOR.at_work.load(Ordering::Relaxed) {
            LONGEST_WAIT_AT_WORK_MS
        } else {
            LONGEST_WAIT_MS
        };
        clock::milliseconds() - self.since_ms < longest
    }
}

/// Returns whether a thread waits for room.
pub fn is_awaited() -> bool {
    COLLECTOR.awaited_by.load(Ordering::Relaxed) > 0
}

/// Notes that the collector has made room in a ring.
pub fn note_made() {
    let made = COLLECTOR.made.load(Ordering::Relaxed);
    COLLECTOR
        .made
        .store(made.wrapping_add(1), Ordering::Relaxed);
}

/// Does work of the collector that takes nothing but a processor. It may wait for something else for less than
/// [`LONGEST_WAIT_MS`].
pub fn at_work<R>(work: impl FnOnce() -> R) -> R {
    let before = COLLECTOR.at_work.swap(true, Ordering::Relaxed);
    let _at_work = AtWork { before };
    work()
}

/// Whether the collector was at work before, to be told when this is dropped.
struct AtWork {
    before: bool,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        COLLECTOR.at_work.store(self.before, Ordering::Relaxed);
    }
}
