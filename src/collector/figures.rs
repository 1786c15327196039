//! Sums that can be read at any time, without a request to the collector: it publishes them ten times a second.
//!
//! The collector never waits for a reader. While one copies the figures, it leaves them as they are and publishes the next
//! ones. What ended sessions have counted is added up here, so that totals do not fall within a process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use heapray_report::model::Tally;

/// What sessions have counted. Nothing here ever falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Allocations.
    pub allocated: Tally,
    /// Frees of known blocks.
    pub freed: Tally,
    /// Events lost.
    pub lost_events: u64,
    /// CPU time of the collector's threads, in nanoseconds.
    pub collector_cpu_ns: u64,
}

impl std::ops::AddAssign for Sums {
    fn add_assign(&mut self, other: Sums) {
        self.allocated += other.allocated;
        self.freed += other.freed;
        self.lost_events += other.lost_events;
        self.collector_cpu_ns += other.collector_cpu_ns;
    }
}

/// Figures of the running session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// Start of the session.
    pub started: SystemTime,
    /// What it has counted.
    pub sums: Sums,
    /// Live memory.
    pub live: Tally,
    /// Those live bytes that the service mapped with `mmap`.
    pub mapped: u64,
    /// Live memory at the high-water mark.
    pub high_water: Tally,
    /// Memory that heapray holds, in bytes.
    pub own_bytes: u64,
    /// Average bytes between two samples; 0 if every allocation is recorded.
    pub sample: u64,
}

/// Figures of all sessions of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Published {
    /// The running session, or `None` if no session runs.
    pub running: Option<Running>,
    /// The sums of the ended sessions.
    ended: Sums,
}

impl Published {
    /// Returns the sums of all sessions.
    #[must_use]
    pub fn totals(&self) -> Sums {
        let mut totals = self.ended;
        totals += self.running.map_or_else(Sums::default, |now| now.sums);
        totals
    }
}

/// The place where sessions publish their figures, one session after the other.
#[derive(Debug, Default)]
pub struct Figures(Mutex<Published>);

impl Figures {
    /// Returns the figures of now, at most a tenth of a second old. Waits for nothing but another copy of these figures.
    #[must_use]
    pub fn read(&self) -> Published {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Published> {
        // Each change is one assignment: a panic leaves whole figures.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's right to publish. When it is dropped, its sums are among those of the ended sessions.
#[derive(Debug)]
pub(super) struct Publisher(Arc<Figures>);

impl Publisher {
    pub(super) fn new(figures: Arc<Figures>) -> Publisher {
        Publisher(figures)
    }

    /// Publishes `now`, unless somebody reads at this moment.
    pub(super) fn publish(&self, now: Running) {
        if let Ok(mut published) = self.0.0.try_lock() {
            published.running = Some(now);
        }
    }

    /// Publishes the last figures of the session. Waits while somebody reads.
    pub(super) fn publish_last(&self, now: Running) {
        self.0.lock().running = Some(now);
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let mut published = self.0.lock();
        if let Some(last) = published.running.take() {
            published.ended += last.sums;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(bytes: u64) -> Running {
        let tally = Tally { count: 1, bytes };
        Running {
            started: SystemTime::UNIX_EPOCH,
            sums: Sums {
                allocated: tally,
                ..Sums::default()
            },
            live: tally,
            mapped: 0,
            high_water: tally,
            own_bytes: 0,
            sample: 0,
        }
    }

    #[test]
    fn totals_never_fall_over_the_end_of_a_session() {
        let figures = Arc::new(Figures::default());
        let allocated = || figures.read().totals().allocated.bytes;
        let first = Publisher::new(Arc::clone(&figures));
        first.publish(running(100));
        assert_eq!(allocated(), 100);
        first.publish_last(running(130));
        drop(first);
        assert_eq!((allocated(), figures.read().running), (130, None));

        let second = Publisher::new(Arc::clone(&figures));
        assert_eq!(allocated(), 130);
        second.publish(running(7));
        assert_eq!(allocated(), 137);
    }

    #[test]
    fn the_collector_does_not_wait_for_a_reader() {
        let figures = Arc::new(Figures::default());
        let publisher = Publisher::new(Arc::clone(&figures));
        publisher.publish(running(1));
        let reader = figures.lock();
        publisher.publish(running(2));
        assert_eq!(reader.running, Some(running(1)), "left as it was");
        drop(reader);
        publisher.publish(running(3));
        assert_eq!(figures.read().running, Some(running(3)));
    }
}
