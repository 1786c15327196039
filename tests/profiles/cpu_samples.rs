//! Profiles that have enough samples, also on a machine that is busy with something else.
#![cfg(all(heapray_native, target_env = "gnu"))]

use std::time::Duration;

/// Calls `profile` with more and more CPU time to use, until it is `enough`. CPU-time timers fire at the kernel's ticks, and
/// few ticks fall into the time slices of a thread that is often preempted.
pub(crate) fn sampled<T>(profile: impl Fn(Duration) -> T, enough: impl Fn(&T) -> bool) -> T {
    (0..6)
        .map(|longer| profile(Duration::from_millis(300 << longer)))
        .find(enough)
        .expect("enough samples in 10 seconds of CPU time")
}
