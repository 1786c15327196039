//! Which events of threads that are counted as one are told apart, so that memray concludes what is so.
//!
//! memray calls a block temporary if the thread that allocated it frees it after at most one other allocation; it goes by
//! the thread numbers of the file, in the file's order. Under one number for several threads it would see blocks of one
//! thread that another one frees, and miss those between which another thread allocates. Its flame graphs, on the other
//! hand, fall apart into a branch a number. So:
//!
//! ```text
//! a temporary block, and its free     the thread's own number      gone before the peak, with few exceptions
//! any other block                     the number of all of them    what reports of the peak and of leaks show
//! any other free                      a number of its own, under which nothing is allocated
//! ```
//!
//! That takes two readings of the log: whether a block is temporary is known when it is freed.

use std::collections::HashMap;
use std::io;

use heapray_report::model::{Event, StrId, Thread, ThreadId};

use super::{Resolved, Wanted};
use crate::capture::event::Kind;
use crate::collector::snapshot::{EventLog, RawThread};
use crate::collector::{LogEntry, LogReader, Map};

/// A block is temporary if its thread frees it among its last so many allocations: with memray's default threshold.
const WINDOW: usize = 2;

/// Entries read between two looks at whether this is still wanted.
const LOOK: usize = 4096;

/// The threads of a log that are told apart in parts of it.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    /// Entries behind the report's, for the file. They stand for no thread of their own.
    threads: Vec<Thread>,
    /// By the log's number of a thread that is counted with others: its own entry, if it has one.
    own: HashMap<u32, Option<ThreadId>>,
    /// The entry of frees.
    frees: ThreadId,
    temporary: Marks,
}

/// A bit for each allocation of such threads.
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
    /// Reads `log`, if some of its `threads` are counted as one.
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
            apart.mark(LogReader::new(log.file.clone(), log.bytes), wanted)?;
            apart.list(resolved, threads);
        }
        Ok(apart)
    }

    /// What the file has behind the report's threads.
    pub(crate) fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// `log` as [`Resolved::events`] has it, with the threads told apart.
    pub(crate) fn events(
        &self,
        resolved: &Resolved,
        log: &EventLog,
    ) -> impl Iterator<Item = io::Result<Event>> {
        let reader = LogReader::new(log.file.clone(), log.bytes);
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
                // What is made of this is thrown away.
                return Ok(());
            }
            match entry? {
                LogEntry::Allocation {
                    thread,
                    address,
                    size,
                    ..
                } => {
                    // Whoever had a block there has it no more.
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

    /// Gives each thread that is told apart its entry.
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

/// Those of `threads` whose entry in the report stands for others too, by their numbers: with that entry, or with none if
/// they are not known one by one.
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
