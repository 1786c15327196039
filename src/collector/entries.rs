//! The entries under which threads are counted: the first threads of a session have one each, and later ones are counted by
//! name. So a service that starts threads forever has a bounded number of entries, and of call sites.
//!
//! ```text
//!   list: [ one thread each: at most `apart` ][ one name each: at most `names`, "", and the rest ]
//! ```

use super::hash::Map;
use super::snapshot::RawThread;

/// Limits on the data about threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Number of threads with an entry of their own.
    pub(super) apart: usize,
    /// Number of names with an entry of their own, among the later threads.
    pub(super) names: usize,
    /// Number of later threads whose entry is remembered. At least 1.
    pub(super) late: usize,
}

impl Default for Bounds {
    /// 1,024 is twice what tokio has by default at one time (512 blocking threads and a worker per core). A thread costs
    /// some 100 bytes, and as much again for each of its call sites: with 100 call sites each, 1,024 cost 11 MB. Names cost
    /// the same, and a program has few, unless it numbers its threads. A later thread costs some 200 bytes as long as it is
    /// remembered: 2 MB at most.
    fn default() -> Self {
        Bounds {
            apart: 1024,
            names: 256,
            late: 8192,
        }
    }
}

/// Entry of all further names. It is longer than the 15 bytes of a thread's name, so that no name is equal.
const REST: &str = "(threads of other names)";

/// Entries of threads; see the module.
#[derive(Debug)]
pub(super) struct Entries {
    bounds: Bounds,
    list: Vec<RawThread>,
    /// For each thread with its own entry: whether it has ended and given its last name.
    ended: Vec<bool>,
    /// Entries by name, as positions in `list`.
    by_name: Map<String, usize>,
    rest: Option<usize>,
}

impl Entries {
    pub(super) fn new(bounds: Bounds) -> Entries {
        Entries {
            bounds,
            list: Vec::new(),
            ended: Vec::new(),
            by_name: Map::default(),
            rest: None,
        }
    }

    /// Returns whether the next thread is counted by name.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.ended.len() >= self.bounds.apart
    }

    /// Gives the thread `number` its own entry, and returns the entry's position.
    pub(super) fn add(&mut self, number: u32, tid: u32) -> usize {
        debug_assert!(!self.is_full(), "entries by name come after all others");
        self.list.push(RawThread {
            number,
            tid,
            name: String::new(),
            threads: 1,
        });
        self.ended.push(false);
        self.list.len() - 1
    }

    /// Counts a thread under `name`. Returns the entry's number, which is not the number of a thread.
    pub(super) fn fold(&mut self, tid: u32, name: &str) -> u32 {
        let found = self.by_name.get(name).copied().or_else(|| {
            // The entry without a name always exists, for threads that ended before they could be asked.
            let room = self.by_name.len() < self.bounds.names || name.is_empty();
            self.rest.filter(|_| !room)
        });
        let at = found.unwrap_or_else(|| self.add_folded(name));
        let entry = &mut self.list[at];
        entry.threads = entry.threads.saturating_add(1);
        if entry.tid == 0 {
            entry.tid = tid;
        }
        entry.number
    }

    fn add_folded(&mut self, name: &str) -> usize {
        let at = self.list.len();
        let is_rest = self.by_name.len() >= self.bounds.names && !name.is_empty();
        // Threads are numbered upwards from 1, and there will not be 2^32 of them.
        let number = u32::MAX - (at - self.ended.len()) as u32;
        self.list.push(RawThread {
            number,
            tid: 0,
            name: if is_rest { REST } else { name }.to_owned(),
            threads: 0,
        });
        if is_rest {
            self.rest = Some(at);
        } else {
            self.by_name.insert(name.to_owned(), at);
        }
        at
    }

    /// Sets the operating system's number of the thread that has the entry at `at`.
    pub(super) fn set_tid(&mut self, at: usize, tid: u32) {
        self.list[at].tid = tid;
    }

    /// Notes that the thread of the entry at `at` ends, with its name.
    pub(super) fn end(&mut self, at: usize, name: String) {
        self.list[at].name = name;
        self.ended[at] = true;
    }

    /// Returns whether the thread with the entry at `at` has ended.
    pub(super) fn has_ended(&self, at: u32) -> bool {
        self.ended.get(at as usize).is_some_and(|&ended| ended)
    }

    /// Asks the living threads for their names. Threads that have ended gave theirs, and their number may belong to another
    /// thread by now. An entry of many threads has the name by which they were counted.
    pub(super) fn learn_names(&mut self, name_of: fn(u32) -> Option<String>) {
        for (entry, ended) in self.list.iter_mut().zip(&self.ended) {
            if !ended && let Some(name) = name_of(entry.tid) {
                entry.name = name;
            }
        }
    }

    /// Returns all entries, in the order of first use.
    pub(super) fn list(&self) -> &[RawThread] {
        &self.list
    }

    /// Returns a sentence for the user, if threads were counted by name.
    pub(super) fn note(&self) -> Option<String> {
        let apart = with_commas(self.ended.len());
        if self.list.len() == self.ended.len() {
            return None;
        }
        let rest = match self.rest {
            Some(_) => format!(
                ", and those of more than {} names as one",
                with_commas(self.bounds.names)
            ),
            None => String::new(),
        };
        Some(format!(
            "more than {apart} threads: those after the first {apart} are counted by name{rest}"
        ))
    }

    /// Returns the bytes of memory of the entries.
    pub(super) fn memory_bytes(&self) -> usize {
        let names: usize = self.list.iter().map(|entry| entry.name.capacity()).sum();
        let keys: usize = self.by_name.keys().map(String::capacity).sum();
        self.list.capacity() * size_of::<RawThread>()
            + self.ended.capacity()
            + self.by_name.capacity() * (size_of::<(String, usize)>() + 1)
            + names
            + keys
    }
}

fn with_commas(number: usize) -> String {
    if number < 1000 {
        number.to_string()
    } else {
        format!("{},{:03}", with_commas(number / 1000), number % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(apart: usize, names: usize) -> Entries {
        let bounds = Bounds {
            apart,
            names,
            late: 1,
        };
        let mut entries = Entries::new(bounds);
        for number in 0..apart {
            entries.add(10 + number as u32, 100 + number as u32);
        }
        entries
    }

    #[test]
    fn names_past_the_bound_are_one_entry_but_no_name_is_not_among_them() {
        let mut entries = entries(1, 2);
        assert_eq!(entries.note(), None);
        for (tid, name) in [(1, "a"), (2, "b"), (3, "a"), (4, "c"), (5, "d"), (6, "")] {
            entries.fold(tid, name);
        }
        assert_eq!(entries.fold(7, "b"), u32::MAX - 1);
        assert_eq!(entries.fold(8, ""), u32::MAX - 3);
        let shown: Vec<_> = entries
            .list()
            .iter()
            .map(|entry| (entry.number, entry.tid, entry.name.as_str(), entry.threads))
            .collect();
        assert_eq!(
            shown,
            [
                (10, 100, "", 1),
                (u32::MAX, 1, "a", 2),
                (u32::MAX - 1, 2, "b", 2),
                (u32::MAX - 2, 4, REST, 2),
                (u32::MAX - 3, 6, "", 2),
            ]
        );
    }

    #[test]
    fn the_names_of_those_that_live_are_asked_for_and_of_no_others() {
        let mut entries = entries(3, 2);
        entries.end(1, "given".to_owned());
        entries.fold(103, "folded");
        entries.learn_names(|tid| (tid != 102).then(|| format!("asked {tid}")));
        let names: Vec<_> = entries.list().iter().map(|entry| &*entry.name).collect();
        assert_eq!(names, ["asked 100", "given", "", "folded"]);
    }

    #[test]
    fn the_note_says_what_was_counted_together() {
        let mut entries = entries(1024, 1);
        assert_eq!(entries.note(), None);
        entries.fold(1, "a");
        let by_name = "more than 1,024 threads: those after the first 1,024 are counted by name";
        assert_eq!(entries.note().as_deref(), Some(by_name));
        entries.fold(2, "b");
        let by_rest = format!("{by_name}, and those of more than 1 names as one");
        assert_eq!(entries.note(), Some(by_rest));
        assert_eq!(with_commas(1_002_003), "1,002,003");
    }
}
