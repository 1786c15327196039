//! The words that hooks read and sessions write.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::clock;
use super::shared::{self, shared};

shared! {
    /// Number of the session that records; 0 while none does. A hook reads this word before anything else.
    static SESSION: shared::AtomicU32 = shared::AtomicU32::new(0);
}

/// Counter that goes up when the collector should look at the rings. The collector sleeps on it.
static WAKE: AtomicU32 = AtomicU32::new(0);

/// Set while the collector sleeps, or is about to: a thread that needs it must wake it.
static ASLEEP: AtomicBool = AtomicBool::new(false);

shared! {
    /// Events lost by threads that had no memory for a state.
    pub static LOST_WITHOUT_STATE: shared::AtomicU64 = shared::AtomicU64::new(0);
}

shared! {
    /// Time stamp of the session's first lost event; 0 while none is lost.
    static FIRST_LOST: shared::AtomicU64 = shared::AtomicU64::new(0);
}

/// Set in a forked child of a process that recorded.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Returns the session that records, or 0.
#[inline(always)]
pub fn session() -> u32 {
    SESSION.load(Ordering::Relaxed)
}

/// Lets hooks record from now on, for session `number`.
pub fn open_session(number: u32) {
    FIRST_LOST.store(0, Ordering::SeqCst);
    SESSION.store(number, Ordering::SeqCst);
}

/// Stops hooks from recording.
pub fn close_session() {
    SESSION.store(0, Ordering::SeqCst);
}

/// Counts a lost event in `counter`. Its time comes first, so that a reader of the count finds it.
#[cold]
pub(super) fn count_lost(counter: &shared::AtomicU64) {
    let _ = FIRST_LOST.compare_exchange(0, clock::stamp(), Ordering::Release, Ordering::Relaxed);
    counter.fetch_add(1, Ordering::Release);
}

/// Returns the time stamp of the session's first lost event, if it lost one.
pub fn first_lost() -> Option<u64> {
    Some(FIRST_LOST.load(Ordering::Acquire)).filter(|&stamp| stamp != 0)
}

/// Returns how often the collector was called, for [`sleep_until_called`]. Read it before looking at the rings.
pub fn calls() -> u32 {
    WAKE.load(Ordering::SeqCst)
}

/// Lets the collector sleep until [`wake_collector`] is called, or has been called since `calls` was read, or `longest`
/// nanoseconds have passed.
pub fn sleep_until_called(calls: u32, longest: u64) {
    ASLEEP.store(true, Ordering::SeqCst);
    super::arch::futex_wait(&WAKE, calls, longest);
    ASLEEP.store(false, Ordering::SeqCst);
}

/// Wakes the collector if it sleeps.
pub fn wake_collector() {
    WAKE.fetch_add(1, Ordering::SeqCst);
    if ASLEEP.load(Ordering::SeqCst) {
        super::arch::futex_wake(&WAKE, 1);
    }
}

/// Returns whether this process is a forked child, which has no collector and does not record.
pub fn is_forked_child() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Notes that this process is a forked child.
pub(super) fn note_fork() {
    FORKED.store(true, Ordering::SeqCst);
}
