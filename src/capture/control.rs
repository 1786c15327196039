//! The words that hooks read and sessions write.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::shared::{self, shared};

shared! {
    /// The number of the session that records; 0 while none does. The one word a hook reads before anything else.
    static SESSION: shared::AtomicU32 = shared::AtomicU32::new(0);
}

/// Goes up when the collector should look at the rings. The collector sleeps on it.
static WAKE: AtomicU32 = AtomicU32::new(0);

/// The collector sleeps, or is about to: a producer that wants it must wake it.
static ASLEEP: AtomicBool = AtomicBool::new(false);

shared! {
    /// Events lost by threads that had no memory for a state.
    pub static LOST_WITHOUT_STATE: shared::AtomicU64 = shared::AtomicU64::new(0);
}

shared! {
    /// The stamp of the session's first lost event; 0 while none is lost.
    static FIRST_LOST: shared::AtomicU64 = shared::AtomicU64::new(0);
}

/// This process is a forked child of one that recorded.
static FORKED: AtomicBool = AtomicBool::new(false);

/// The session that records; 0 if none does.
#[inline(always)]
pub fn session() -> u32 {
    SESSION.load(Ordering::Relaxed)
}

/// Hooks record from now on, for session `number`.
pub fn open_session(number: u32) {
    FIRST_LOST.store(0, Ordering::SeqCst);
    SESSION.store(number, Ordering::SeqCst);
}

/// Hooks record no more.
pub fn close_session() {
    SESSION.store(0, Ordering::SeqCst);
}

/// An event is being lost at `stamp`. Called before it is counted: whoever sees the count finds the stamp.
pub fn note_lost(stamp: u64) {
    let _ = FIRST_LOST.compare_exchange(0, stamp, Ordering::Release, Ordering::Relaxed);
}

/// The stamp at which the session lost its first event, if it lost one.
pub fn first_lost() -> Option<u64> {
    Some(FIRST_LOST.load(Ordering::Acquire)).filter(|&stamp| stamp != 0)
}

/// How often the collector was called, for [`sleep_until_called`]: to be read before it looks at the rings.
pub fn calls() -> u32 {
    WAKE.load(Ordering::SeqCst)
}

/// The collector sleeps until somebody calls [`wake_collector`], or has called since there were `calls`, or `longest`
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

/// Whether this process is a forked child: it has no collector, and does not record.
pub fn is_forked_child() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// This process is a forked child from now on.
pub(super) fn note_fork() {
    FORKED.store(true, Ordering::SeqCst);
}
