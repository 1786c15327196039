//! The profiler's locks, and the order in which one thread may take them.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Every lock of the profiler, in the order in which a thread may take them: a thread that holds one takes only later ones,
/// and each at most once. So no threads can wait for each other in a circle. Debug builds check it at every lock.
///
/// Most are held alone. Those that are held while others are taken: `Init` (while the first session is started),
/// `LiveCache` (while everything that the live page shows is collected), `ReaderCheck` and `Readers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "http"), allow(dead_code))] // some are locks of the endpoints' parts
pub(crate) enum Rank {
    /// One thread makes the process's profiler.
    Init,
    /// Listeners that `shutdown` closes.
    Listeners,
    /// What the thread that pushes profiles is doing.
    #[cfg_attr(not(feature = "push"), allow(dead_code))]
    Pushing,
    /// What the thread that copies kept reports to an object storage is doing.
    #[cfg_attr(not(feature = "store"), allow(dead_code))]
    Storing,
    /// Sessions that have ended, and whose last profile is not made.
    #[cfg_attr(not(feature = "push"), allow(dead_code))]
    EndedSessions,
    /// What ended sessions allocated.
    #[cfg_attr(not(feature = "http"), allow(dead_code))]
    AllocatedInEnded,
    /// What the live thread remembers from one second to the next.
    LiveCache,
    /// Those who wait for the next state of the live page.
    LiveWaiters,
    /// What was read of the memory log.
    MemoryLog,
    /// The state machine.
    Machine,
    /// The last session's outputs on disk.
    SessionOutputs,
    /// Which kept report is the last session's.
    KeptAs,
    /// Outputs that wait to be made.
    Queue,
    /// Outputs that somebody has open.
    OpenOutputs,
    /// Outputs without a name that are remembered.
    RecentOutputs,
    /// Kept reports whose bytes were compared with their checksum.
    VerifiedReports,
    /// When slow clients were looked for last.
    ReaderCheck,
    /// Clients that read an output.
    Readers,
    /// What one of them reads.
    Reader,
    /// The disk space that is reserved for the flight recorder's report.
    DiskReserve,
    /// Names that the flight recorder has looked up.
    FlightSymbols,
    /// What made the flight recorder write a report last.
    LastTrigger,
    /// The kept reports, while one of them or its note is replaced.
    KeptReports,
    /// What was read of the process for its metrics.
    ProcessReading,
    /// The lock file of the profiler's own directory.
    PrivateDirectory,
    /// How many bytes are on disk.
    DiskUsage,
}

/// A mutex with a place in the order. A panic of its holder does not lock others out: each says why its value is whole then.
#[derive(Debug)]
pub(crate) struct Lock<T> {
    rank: Rank,
    value: Mutex<T>,
}

impl<T> Lock<T> {
    pub(crate) const fn new(rank: Rank, value: T) -> Lock<T> {
        Lock {
            rank,
            value: Mutex::new(value),
        }
    }

    /// Waits for the value and holds it.
    ///
    /// # Panics
    ///
    /// In debug builds, if this thread holds a lock that must be taken after this one.
    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        let held = Held::new(self.rank);
        LockGuard {
            value: self.value.lock().unwrap_or_else(PoisonError::into_inner),
            held,
        }
    }
}

/// The value, held.
#[derive(Debug)]
pub(crate) struct LockGuard<'l, T> {
    value: MutexGuard<'l, T>,
    held: Held,
}

impl<'l, T> LockGuard<'l, T> {
    /// Waits, without holding the value, until `condition` is false.
    pub(crate) fn wait_while(
        self,
        changed: &Condvar,
        condition: impl FnMut(&mut T) -> bool,
    ) -> LockGuard<'l, T> {
        let value = changed.wait_while(self.value, condition);
        LockGuard {
            value: value.unwrap_or_else(PoisonError::into_inner),
            held: self.held,
        }
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

use order::Held;

#[cfg(debug_assertions)]
mod order {
    use std::cell::Cell;

    use super::Rank;

    thread_local! {
        /// A bit for each lock that this thread holds.
        static HELD: Cell<u32> = const { Cell::new(0) };
    }

    /// A lock that this thread holds, or waits for.
    #[derive(Debug)]
    pub(super) struct Held(Rank);

    impl Held {
        pub(super) fn new(rank: Rank) -> Held {
            let held = HELD.get();
            assert!(
                held >> (rank as u32) == 0,
                "{rank:?} must be locked before what this thread holds already (a bit for each `Rank`: {held:#b})"
            );
            HELD.set(held | 1 << (rank as u32));
            Held(rank)
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            HELD.set(HELD.get() & !(1 << (self.0 as u32)));
        }
    }
}

#[cfg(not(debug_assertions))]
mod order {
    use super::Rank;

    /// Checked in debug builds only.
    #[derive(Debug)]
    pub(super) struct Held;

    impl Held {
        pub(super) fn new(_rank: Rank) -> Held {
            Held
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lock, Rank};
    use std::panic::catch_unwind;

    #[test]
    fn locks_are_taken_in_their_order() {
        let (first, last) = (Lock::new(Rank::Machine, 1), Lock::new(Rank::Queue, 2));
        let (one, two) = (first.lock(), last.lock());
        assert_eq!((*one, *two), (1, 2));
        drop((one, two));
        let _again = first.lock();
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_lock_that_comes_earlier_or_is_held_is_a_panic_in_debug_builds() {
        for (held, wanted) in [(Rank::Queue, Rank::Machine), (Rank::Queue, Rank::Queue)] {
            let (held, wanted) = (Lock::new(held, ()), Lock::new(wanted, ()));
            assert!(
                catch_unwind(|| {
                    let _held = held.lock();
                    drop(wanted.lock());
                })
                .is_err()
            );
            // Nothing is held any more, and a panic locks nobody out.
            drop(wanted.lock());
            drop(held.lock());
        }
    }
}
