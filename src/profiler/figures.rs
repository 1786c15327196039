//! What can be said of the process at any moment, for its metrics. Asks neither the collector nor the state machine, so that
//! a scrape never waits for a report, and a report never waits for a scrape.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use heapray_report::model::ProcessMemory;

use super::lock::{Lock, Rank};
use super::store::{ReportsOfCause, Store};
use super::{DiskStatus, PushStatus, StoreStatus};
use crate::capture::memory::own_bytes;
use crate::collector::figures::{Figures, Published};
use crate::os::cgroup::{Groups, Limit};
use crate::os::{memory, process_start};

/// Shortest age at which figures that take longer are read again, and the factor by which it is longer than reading them
/// took, which is milliseconds for many threads or files. What the allocators report has a bound of its own.
const AGAIN_AFTER: Duration = Duration::from_secs(10);
const SELDOM: u32 = 1_000;

/// Figures of the process.
#[derive(Debug)]
pub(crate) struct ProcessFigures {
    pub(crate) sessions: Published,
    /// `None` where the system does not report the resident size. Stacks, allocators and the control group may be older
    /// than the rest.
    pub(crate) memory: Option<ProcessMemory>,
    /// The tightest limit of the control groups. As old as those.
    pub(crate) limit: Option<Limit>,
    /// When the process started.
    pub(crate) process_started: Option<SystemTime>,
    pub(crate) disk: DiskStatus,
    pub(crate) reports: Vec<ReportsOfCause>,
    /// `None` where profiles are not pushed.
    pub(crate) push: Option<PushStatus>,
    /// `None` where there is no object storage.
    pub(crate) store: Option<StoreStatus>,
}

/// Reads them.
#[derive(Debug)]
pub(super) struct ProcessReader {
    sessions: Arc<Figures>,
    store: Arc<Store>,
    last: Lock<Option<Reading>>,
}

/// Figures that take longer to read: those of the allocators, of all threads, and of files.
#[derive(Debug, Clone)]
struct Reading {
    due: Instant,
    memory: Option<ProcessMemory>,
    limit: Option<Limit>,
    disk_bytes: u64,
}

impl ProcessReader {
    pub(super) fn new(store: Arc<Store>) -> ProcessReader {
        ProcessReader {
            sessions: Arc::default(),
            store,
            last: Lock::new(Rank::ProcessReading, None),
        }
    }

    /// Returns the place where the sessions publish their figures.
    pub(super) fn sessions(&self) -> &Arc<Figures> {
        &self.sessions
    }

    /// Returns the figures. This takes microseconds, and at times a few milliseconds, but less than a thousandth of the time
    /// however often it is called.
    pub(super) fn read(&self) -> ProcessFigures {
        let Reading {
            memory,
            limit,
            disk_bytes,
            due: _,
        } = self.reading();
        let sessions = self.sessions.read();
        let own_mapped = own_bytes() as u64;
        let own = sessions.running.map_or(own_mapped, |now| now.own_bytes);
        let memory = memory
            .zip(memory::read_system())
            .map(|(seldom, now)| ProcessMemory {
                rss: now.rss,
                anonymous: now.anonymous,
                files: now.files,
                shared: now.shared,
                swapped: now.swapped,
                own_mapped,
                own_heap: own.saturating_sub(own_mapped),
                ..seldom
            });
        ProcessFigures {
            sessions,
            memory,
            limit,
            process_started: process_start::time(),
            disk: DiskStatus {
                bytes: disk_bytes,
                bound_bytes: self.store.archive.bound(),
            },
            reports: self.store.archive.written().by_cause().collect(),
            push: None,
            store: None,
        }
    }

    fn reading(&self) -> Reading {
        let last = self.last.lock().clone();
        let began = Instant::now();
        match last.filter(|last| began < last.due) {
            Some(last) => last,
            None => {
                let reading = Reading {
                    memory: memory::read(0, 0),
                    limit: Groups::find(Path::new("/")).tightest(),
                    disk_bytes: self.store.directory.bytes(),
                    due: began + AGAIN_AFTER.max(began.elapsed() * SELDOM),
                };
                *self.last.lock() = Some(reading.clone());
                reading
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_longer_is_not_read_at_each_scrape() {
        let reader = ProcessReader::new(Arc::new(Store::new(&crate::config::Config::default())));
        let first = reader.read();
        let due = reader.last.lock().as_ref().map(|last| last.due);
        let again = reader.read();
        assert_eq!(reader.last.lock().as_ref().map(|last| last.due), due);
        let stacks = |figures: &ProcessFigures| figures.memory.as_ref().and_then(|it| it.stacks);
        assert_eq!(stacks(&again), stacks(&first));
        assert_eq!(again.sessions, Published::default());
    }
}
