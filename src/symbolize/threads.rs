//! Converts the threads of a stack table to threads of the report.

use std::collections::HashMap;

use heapray_report::model::{Strings, Thread, ThreadId};

use super::options::ThreadMode;
use crate::collector::snapshot::StackTable;

/// The report's threads, and the report's thread of each of the table's threads.
#[derive(Debug, Default)]
pub(super) struct Threads {
    pub(super) list: Vec<Thread>,
    by_number: HashMap<u32, ThreadId>,
}

impl Threads {
    /// Returns the threads of `table`, in the order of their numbers, and adds their names to `strings`. A thread that only
    /// a site mentions is included, without a name and a system number.
    pub(super) fn of(table: &StackTable, mode: ThreadMode, strings: &mut Strings) -> Threads {
        let mut raw: Vec<(u32, u32, &str, u32)> = table
            .threads
            .iter()
            .map(|thread| (thread.number, thread.tid, &*thread.name, thread.threads))
            .chain(table.sites.iter().map(|site| (site.thread, 0, "", 1)))
            .collect();
        // A stable sort keeps a thread's own entry before its mention by a site.
        raw.sort_by_key(|&(number, ..)| number);
        raw.dedup_by_key(|&mut (number, ..)| number);

        let mut threads = Threads::default();
        let mut by_name = HashMap::new();
        for (number, tid, name, count) in raw {
            let thread = Thread {
                tid: u64::from(tid),
                name: strings.intern(name),
                threads: count,
            };
            let merged = match mode {
                ThreadMode::ByName => by_name.get(&thread.name).copied(),
                ThreadMode::Each => None,
            };
            let id = match merged {
                Some(id) => {
                    threads.merge(id, thread);
                    id
                }
                None => threads.add(thread),
            };
            by_name.insert(thread.name, id);
            threads.by_number.insert(number, id);
        }
        threads
    }

    /// Returns the entry of the table's thread `number`, or the first entry if the number is unknown.
    pub(super) fn id(&self, number: u32) -> ThreadId {
        self.by_number.get(&number).copied().unwrap_or_default()
    }

    fn add(&mut self, thread: Thread) -> ThreadId {
        self.list.push(thread);
        ThreadId(u32::try_from(self.list.len() - 1).expect("threads are numbered in 32 bits"))
    }

    fn merge(&mut self, id: ThreadId, other: Thread) {
        let thread = &mut self.list[id.0 as usize];
        thread.threads = thread.threads.saturating_add(other.threads);
        // 0 stands for an unknown number.
        if other.tid != 0 && (thread.tid == 0 || other.tid < thread.tid) {
            thread.tid = other.tid;
        }
    }
}
