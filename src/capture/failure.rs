//! Allocations that failed: told to the collector, whose report of that moment the thread waits for.
//!
//! Most Rust programs end when an allocation fails, as soon as the call returns. So the first thread that fails, and
//! every other that does while the report is being written, waits: no longer than [`LONGEST_WAIT_MS`], once, and not
//! again before a pause has passed. Then each tries once more. Nothing of this costs anything while allocations succeed.
//!
//! ```text
//!   OFF ── arm ──▶ ARMED ── an allocation failed ──▶ WAITED_FOR ── done, or the wait is over ──▶ OFF
//! ```

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{arch, clock, control};

const OFF: u32 = 0;
const ARMED: u32 = 1;
const WAITED_FOR: u32 = 2;

static PHASE: AtomicU32 = AtomicU32::new(OFF);

/// Bytes that the last one asked for.
static SIZE: AtomicU64 = AtomicU64::new(0);

/// How long a thread waits for the report.
pub const LONGEST_WAIT_MS: u64 = 10_000;

/// From one look at whether the report is there to the next, if nobody wakes the thread.
const SLEEP_NS: u64 = 50_000_000;

/// More is in no processor's address space: such a request failed because it makes no sense.
pub(super) const MOST: usize = 1 << 46;

/// An allocation of `size` bytes failed. Called in hooks, with the thread busy. Changes no `errno`. True if it was waited
/// for the report: what was kept for that is free now, and the call should be made once more.
#[cold]
#[must_use]
pub fn note(size: usize) -> bool {
    if size == 0 || size > MOST || PHASE.load(Ordering::Relaxed) == OFF {
        return false;
    }
    SIZE.store(size as u64, Ordering::Relaxed);
    match PHASE.compare_exchange(ARMED, WAITED_FOR, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => control::wake_collector(),
        Err(WAITED_FOR) => {}
        Err(_) => return false,
    }
    let began = clock::milliseconds();
    while PHASE.load(Ordering::Acquire) == WAITED_FOR {
        if clock::milliseconds() - began >= LONGEST_WAIT_MS {
            done();
            break;
        }
        arch::futex_wait(&PHASE, WAITED_FOR, SLEEP_NS);
    }
    true
}

/// The next failure is to be told.
pub fn arm() {
    let _ = PHASE.compare_exchange(OFF, ARMED, Ordering::AcqRel, Ordering::Relaxed);
}

/// No failure is to be told any more.
pub fn disarm() {
    PHASE.store(OFF, Ordering::Release);
    arch::futex_wake(&PHASE, u32::MAX);
}

/// No collector is here that could be told. Called in a forked child, where nobody waits yet.
pub fn forget_in_child() {
    PHASE.store(OFF, Ordering::Release);
}

/// Whether a thread that failed waits.
#[must_use]
pub fn is_waited_for() -> bool {
    PHASE.load(Ordering::Acquire) == WAITED_FOR
}

/// Bytes that a thread that waits asked for in vain.
#[must_use]
pub fn waited_for() -> Option<u64> {
    is_waited_for().then(|| SIZE.load(Ordering::Relaxed))
}

/// The report is written, or there will be none: whoever waits goes on.
pub fn done() {
    let waited = PHASE.compare_exchange(WAITED_FOR, OFF, Ordering::AcqRel, Ordering::Relaxed);
    if waited.is_ok() {
        arch::futex_wake(&PHASE, u32::MAX);
    }
}
