//! Gives some events of threads that share an entry a thread number of their own, so that memray finds the right temporary
//! blocks.
//!
//! memray calls a block temporary if the thread that allocated it frees it after at most one other allocation. It compares
//! the thread numbers in the file, in the file's order. With one number for several threads, memray would count a block of
//! one thread that another thread frees, and miss a block if another thread allocates before the free. But memray's flame
//! graphs have one branch per thread number. So:
//!
//! ```text
//! a temporary block, and its free     the thread's own number      freed before the peak, with few exceptions
//! any other block                     the shared number            shown in reports of the peak and of leaks
//! any other free                      a separate number            no allocation has this number
//! ```
//!
//! This reads the log twice, because only the free of a block shows whether the block is temporary.

use std::collections::HashMap;
use std::io;

use heapray_report::model::{Event, StrId, Thread, ThreadId};

use super::{Resolved, Wanted};
use crate::capture::event::Kind;
use crate::collector::snapshot::{EventLog, RawThread};
use crate::collector::{LogEntry, LogReader, Map};

/// A block is temporary if its thread frees it while it is among the thread's last so many allocations (memray's default
/// threshold).
const WINDOW: usize = 2;

/// Entries that are read between two checks of [`Wanted`].
const LOOK: usize = 4096;

/// The threads of a log that share an entry, and which of their allocations are temporary.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    /// Additional entries of the file, after the report's threads. They do not count as threads.
    threads: Vec<Thread>,
    /// The own entry, if any, of each thread that shares an entry, by the thread's number in the log.
    own: HashMap<u32, Option<ThreadId>>,
    /// The entry of the frees of other blocks.
    frees: ThreadId,
    temporary: Marks,
}

/// A bit for each allocation of threads that share an entry.
#[derive(Debug, Default)]
struct Marks(Vec<u64>);

impl Marks {
    fn set(&mut self, at: u64) {
        let word = usize::try_from(at / 64).expect("a mark was counted");
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (at % 64);
    }

    fn has(&self, at: u64) -> bool {
        let word = usize::try_from(at / 64).ok().and_then(|at| self.0.get(at));
        word.is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

/// A block among the last allocations of its thread.
struct Recent {
    thread: u32,
    number: u64,
    size: u64,
}

impl Apart {
    /// Reads `log` if some of its `threads` share an entry.
    pub(crate) fn of(
        resolved: &Resolved,
        threads: &[RawThread],
        log: &EventLog,
        wanted: &Wanted,
    ) -> io::Result<Apart> {
        let mut apart = Apart {
            own: counted_together(resolved, threads),
            ..Apart::default()
        };
        if !apart.own.is_empty() {
            apart.mark(LogReader::new(log.clone()), wanted)?;
            apart.list(resolved, threads);
        }
        Ok(apart)
    }

    /// Returns the additional entries of the file, after the report's threads.
    pub(crate) fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// Returns the events of `log` as [`Resolved::events`] does, with the thread numbers changed as described above.
    pub(crate) fn events(
        &self,
        resolved: &Resolved,
        log: &EventLog,
    ) -> impl Iterator<Item = io::Result<Event>> {
        let reader = LogReader::new(log.clone());
        let (mut allocations, mut temporary) = (0, Map::default());
        reader.map(move |entry| {
            let entry = entry?;
            let mut event = resolved.event(entry)?;
            match (&mut event, entry) {
                (
                    Event::Allocation { thread, .. },
                    LogEntry::Allocation {
                        thread: by,
                        address,
                        ..
                    },
                ) => {
                    if let Some(own) = self.own.get(&by) {
                        if let (Some(own), true) = (own, self.temporary.has(allocations)) {
                            *thread = *own;
                            temporary.insert(address, *own);
                        }
                        allocations += 1;
                    }
                }
                (
                    Event::Deallocation { thread, .. },
                    LogEntry::Deallocation {
                        thread: by,
                        address,
                        ..
                    },
                ) => {
                    if let Some(own) = temporary.remove(&address) {
                        *thread = own;
                    } else if self.own.contains_key(&by) {
                        *thread = self.frees;
                    }
                }
                _ => {}
            }
            Ok(event)
        })
    }

    fn mark(&mut self, log: LogReader, wanted: &Wanted) -> io::Result<()> {
        let mut windows: Map<u32, [u64; WINDOW]> = Map::default();
        let mut recent: Map<u64, Recent> = Map::default();
        let mut allocations = 0;
        for (read, entry) in log.enumerate() {
            if read % LOOK == 0 && !wanted.still() {
                // The caller discards the result.
                return Ok(());
            }
            match entry? {
                LogEntry::Allocation {
                    thread,
                    address,
                    size,
                    ..
                } => {
                    // An earlier block at this address is gone, even if its free was lost.
                    recent.remove(&address);
                    let Some(own) = self.own.get(&thread) else {
                        continue;
                    };
                    let number = allocations;
                    allocations += 1;
                    if own.is_none() {
                        continue;
                    }
                    let window = windows.entry(thread).or_default();
                    let oldest = window[WINDOW - 1];
                    window.copy_within(..WINDOW - 1, 1);
                    window[0] = address;
                    if !window.contains(&oldest)
                        && recent.get(&oldest).is_some_and(|of| of.thread == thread)
                    {
                        recent.remove(&oldest);
                    }
                    recent.insert(
                        address,
                        Recent {
                            thread,
                            number,
                            size,
                        },
                    );
                }
                LogEntry::Deallocation {
                    thread,
                    kind,
                    address,
                    size,
                } => {
                    if let Some(block) = recent.remove(&address)
                        && block.thread == thread
                        && (kind != Kind::Munmap || size == block.size)
                    {
                        self.temporary.set(block.number);
                    }
                }
                LogEntry::Memory { .. } => {}
            }
        }
        Ok(())
    }

    /// Adds an entry for each thread in `own`, and the entry of frees.
    fn list(&mut self, resolved: &Resolved, threads: &[RawThread]) {
        let report = &resolved.report;
        let mut add = |thread| {
            let at = report.threads.len() + self.threads.len();
            self.threads.push(thread);
            ThreadId(u32::try_from(at).expect("threads are numbered in 32 bits"))
        };
        self.frees = add(Thread {
            tid: 0,
            name: StrId::default(),
            threads: 0,
        });
        for thread in threads {
            if let Some(Some(own)) = self.own.get_mut(&thread.number) {
                let name = report.threads[own.0 as usize].name;
                *own = add(Thread {
                    tid: u64::from(thread.tid),
                    name,
                    threads: 0,
                });
            }
        }
    }
}

/// Returns the numbers of those `threads` that share an entry of the report, each with that entry. A number that itself
/// stands for several threads has `None`.
fn counted_together(resolved: &Resolved, threads: &[RawThread]) -> HashMap<u32, Option<ThreadId>> {
    let entry = |number| (number, resolved.thread_of(number));
    threads
        .iter()
        .map(|thread| (entry(thread.number), thread.threads))
        .filter(|&((_, id), _)| {
            let entry = resolved.report.threads.get(id.0 as usize);
            entry.is_some_and(|entry| entry.threads > 1)
        })
        .map(|((number, id), stands_for)| (number, (stands_for <= 1).then_some(id)))
        .collect()
}
