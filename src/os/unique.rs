//! Unique numbers of this process, which another process with the same process number does not have.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns a number that no other call returns, in this process or another one.
pub(crate) fn unique() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    // The hasher's keys are random, from the operating system. A forked child has its parent's.
    RandomState::new().hash_one((std::process::id(), call))
}

/// Returns a number of this process. A later process with the same process number has another one. Never 0.
pub(crate) fn life() -> u64 {
    static LIFE: OnceLock<u64> = OnceLock::new();
    *LIFE.get_or_init(|| unique() | 1)
}

#[cfg(test)]
mod tests {
    use super::{life, unique};

    #[test]
    fn no_two_numbers_are_the_same() {
        let numbers: std::collections::HashSet<u64> = (0..10_000).map(|_| unique()).collect();
        assert_eq!(numbers.len(), 10_000);
        assert_eq!(life(), life());
    }
}
