//! The time stamps that order events: the time stamp counter where it is invariant, `CLOCK_MONOTONIC` elsewhere.

#[cfg(not(heapray_loom))]
use core::sync::atomic::fence;
use core::sync::atomic::{AtomicBool, Ordering};

use super::arch;

/// Set if the counter cannot be used: it may stop, change its rate, or differ between processors.
static MONOTONIC: AtomicBool = AtomicBool::new(false);

/// Chooses the clock. Called once, before the first session.
pub fn prepare() {
    if !arch::has_invariant_tsc() {
        use_monotonic();
    }
}

/// Uses `CLOCK_MONOTONIC` even if the processor has a counter. For machines whose counter is bad without saying so, and for
/// tests. Call it before the first session.
pub fn use_monotonic() {
    MONOTONIC.store(true, Ordering::Relaxed);
}

/// Returns whether time stamps are nanoseconds of `CLOCK_MONOTONIC`.
pub fn is_monotonic() -> bool {
    MONOTONIC.load(Ordering::Relaxed)
}

#[cfg(heapray_loom)]
super::shared::shared! {
    /// Clock that orders like the time stamp counter and synchronizes nothing.
    static MODEL: super::shared::AtomicU64 = super::shared::AtomicU64::new(1);
}

/// Returns a time stamp. Loads and stores around it may still be in flight.
#[inline(always)]
pub fn stamp() -> u64 {
    #[cfg(heapray_loom)]
    return MODEL.fetch_add(1, Ordering::Relaxed);
    #[cfg(not(heapray_loom))]
    if MONOTONIC.load(Ordering::Relaxed) {
        monotonic()
    } else {
        arch::stamp()
    }
}

/// Returns a time stamp that is taken after every load before it is done.
#[inline(always)]
pub fn stamp_after_loads() -> u64 {
    #[cfg(heapray_loom)]
    return stamp();
    #[cfg(not(heapray_loom))]
    if MONOTONIC.load(Ordering::Relaxed) {
        monotonic()
    } else {
        arch::stamp_after_loads()
    }
}

/// Returns the milliseconds of `CLOCK_MONOTONIC`, for bounds on waiting.
pub fn milliseconds() -> u64 {
    monotonic() / 1_000_000
}

#[cold]
fn monotonic() -> u64 {
    #[cfg(not(heapray_loom))]
    fence(Ordering::SeqCst);
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock exists on every POSIX system; the result goes to a live place. The call neither allocates nor
    // locks (it reads the kernel's shared page).
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
