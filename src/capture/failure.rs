//! Allocations that fail: the collector hears of them, and the thread waits for the report of that moment.
//!
//! Most Rust programs end when an allocation fails, as soon as the call returns. So the first thread that fails waits, and
//! so does every other thread that fails while the report is being written. Each waits at most [`LONGEST_WAIT_MS`], once,
//! and not again before a pause has passed. Then it tries once more. As long as allocations succeed, this costs nothing.
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

/// Bytes of the last failed allocation.
static SIZE: AtomicU64 = AtomicU64::new(0);

/// Longest time that a thread waits for the report.
pub const LONGEST_WAIT_MS: u64 = 10_000;

/// Time between two checks for the report, if nothing wakes the thread.
const SLEEP_NS: u64 = 50_000_000;

/// No processor has a larger address space. A larger request failed because it makes no sense.
pub(super) const MOST: usize = 1 << 46;

/// Notes that an allocation of `size` bytes failed. Called in hooks, with the thread busy. Does not change `errno`. Returns
/// true if the thread has waited for the report: the memory that was reserved for the report is free now, and the call
/// should be repeated once.
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

/// Reports the next failure.
pub fn arm() {
    let _ = PHASE.compare_exchange(OFF, ARMED, Ordering::AcqRel, Ordering::Relaxed);
}

/// Reports no further failure.
pub fn disarm() {
    PHASE.store(OFF, Ordering::Release);
    arch::futex_wake(&PHASE, u32::MAX);
}

/// Forgets all failures. Called in a forked child, which has no collector and where no thread waits yet.
pub fn forget_in_child() {
    PHASE.store(OFF, Ordering::Release);
}

/// Returns whether a thread that failed is waiting.
#[must_use]
pub fn is_waited_for() -> bool {
    PHASE.load(Ordering::Acquire) == WAITED_FOR
}

/// Returns the bytes that the waiting thread requested.
#[must_use]
pub fn waited_for() -> Option<u64> {
    is_waited_for().then(|| SIZE.load(Ordering::Relaxed))
}

/// Lets waiting threads go on, because the report is written or will not be written.
pub fn done() {
    let waited = PHASE.compare_exchange(WAITED_FOR, OFF, Ordering::AcqRel, Ordering::Relaxed);
    if waited.is_ok() {
        arch::futex_wake(&PHASE, u32::MAX);
    }
}
