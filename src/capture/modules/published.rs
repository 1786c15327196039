//! The modules' code ranges and rules as hooks see them. They change while hooks read them, and no hook ever waits.
//!
//! A *latch*: two copies of a sorted list and a sequence number. While the number is even, readers use copy 0. The writer
//! makes it odd, which sends readers to copy 1, rewrites copy 0, makes it even again, and rewrites copy 1. A reader that
//! finds the number changed after it has read tries again. So there is always a whole copy to read, even for a signal
//! handler that has interrupted the writer. Nothing that a reader could still hold is ever freed: rule tables live forever
//! (a module that is loaded again gets its old one). A list that is too short is replaced by one that is twice as long, so
//! that all retired lists together are no longer than the current one.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};

use super::table::Table;
use crate::capture::arch::Rule;

/// A range of code and its rules.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodeRange {
    pub(super) start: u64,
    pub(super) end: u64,
    /// `None`: the module has no unwind information.
    pub(super) table: Option<&'static Table>,
}

struct Slot {
    start: AtomicU64,
    end: AtomicU64,
    table: AtomicPtr<Table>,
}

struct List {
    length: AtomicUsize,
    slots: Box<[Slot]>,
}

struct Latch {
    sequence: AtomicU64,
    copies: [List; 2],
}

static CURRENT: AtomicPtr<Latch> = AtomicPtr::new(null_mut());

/// High half: the number of removals. Low half: the number of changes.
static VERSION: AtomicU64 = AtomicU64::new(0);

/// Returns the version of the loaded code. As long as it is the same, everything that hooks keep about code stays valid.
#[inline(always)]
pub(crate) fn version() -> u64 {
    VERSION.load(Ordering::Acquire)
}

/// Returns the part of a [`version`] that changes when a module is removed, so that addresses may mean something else.
pub(crate) fn epoch_of(version: u64) -> u32 {
    (version >> 32) as u32
}

/// Returns the rule of the code at `address`, or `None` if the address lies in no module's code.
pub(crate) fn rule_at(address: u64) -> Option<Rule> {
    let latch = CURRENT.load(Ordering::Acquire);
    // SAFETY: null before the first `publish`, else a leaked box.
    let latch = unsafe { latch.as_ref() }?;
    let (start, table) = latch.find(address)?;
    // SAFETY: null, or a table that lives forever.
    let table = unsafe { table.as_ref() };
    Some(table.map_or(Rule::NONE, |table| table.rule(address - start)))
}

/// Returns whether `address` lies in a module's code.
pub(crate) fn is_code(address: u64) -> bool {
    // SAFETY: as in `rule_at`.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
        .is_some_and(|latch| latch.find(address).is_some())
}

/// Replaces the ranges that hooks see. `ranges` are sorted and do not overlap. Only one thread may publish at a time.
pub(super) fn publish(ranges: &[CodeRange], removed: bool) {
    // SAFETY: as in `rule_at`.
    match unsafe { CURRENT.load(Ordering::Acquire).as_ref() } {
        Some(latch) if ranges.len() <= latch.copies[0].slots.len() => latch.write(ranges),
        _ => {
            let latch = Latch::new(ranges.len().next_power_of_two().max(64));
            latch.write(ranges);
            // Leaked: a hook may be reading it. Its predecessor stays for the same reason.
            CURRENT.store(Box::leak(Box::new(latch)), Ordering::Release);
        }
    }
    let changed = 1 + if removed { 1 << 32 } else { 0 };
    VERSION.fetch_add(changed, Ordering::Release);
}

impl Latch {
    fn new(capacity: usize) -> Latch {
        let list = || List {
            length: AtomicUsize::new(0),
            slots: (0..capacity)
                .map(|_| Slot {
                    start: AtomicU64::new(0),
                    end: AtomicU64::new(0),
                    table: AtomicPtr::new(null_mut()),
                })
                .collect(),
        };
        Latch {
            sequence: AtomicU64::new(0),
            copies: [list(), list()],
        }
    }

    fn write(&self, ranges: &[CodeRange]) {
        for copy in [0, 1] {
            // Sends readers away from this copy. The fence pairs with the one in `find`: a reader that has seen any of the
            // writes below also sees the new number.
            self.sequence.fetch_add(1, Ordering::Release);
            fence(Ordering::Release);
            self.copies[copy].write(ranges);
        }
    }

    /// Returns the start and the table of the range that `address` lies in.
    fn find(&self, address: u64) -> Option<(u64, *const Table)> {
        loop {
            let sequence = self.sequence.load(Ordering::Acquire);
            let found = self.copies[(sequence & 1) as usize].find(address);
            fence(Ordering::Acquire);
            if self.sequence.load(Ordering::Relaxed) == sequence {
                return found;
            }
        }
    }
}

impl List {
    fn write(&self, ranges: &[CodeRange]) {
        for (slot, range) in self.slots.iter().zip(ranges) {
            slot.start.store(range.start, Ordering::Relaxed);
            slot.end.store(range.end, Ordering::Relaxed);
            let table = range
                .table
                .map_or(null_mut(), |table| core::ptr::from_ref(table).cast_mut());
            // Release: a reader that finds the table finds it filled.
            slot.table.store(table, Ordering::Release);
        }
        self.length.store(ranges.len(), Ordering::Relaxed);
    }

    fn find(&self, address: u64) -> Option<(u64, *const Table)> {
        let slots = self.slots.get(..self.length.load(Ordering::Relaxed))?;
        let after = slots.partition_point(|slot| slot.start.load(Ordering::Relaxed) <= address);
        let slot = slots.get(after.checked_sub(1)?)?;
        let start = slot.start.load(Ordering::Relaxed);
        if address >= slot.end.load(Ordering::Relaxed) || address < start {
            return None;
        }
        Some((start, slot.table.load(Ordering::Acquire)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// One range that is always there, at another place of the list in each generation.
    fn ranges(generation: u64) -> Vec<CodeRange> {
        let range = |start| CodeRange {
            start,
            end: start + 0x100,
            table: None,
        };
        let below = (0..generation % 20).map(|index| range(0x1000 + index * 0x100));
        let above = (0..generation % 13).map(|index| range(0x9000 + index * 0x100));
        below.chain([range(0x5000)]).chain(above).collect()
    }

    #[test]
    fn an_address_is_found_in_its_range_only() {
        let latch = Latch::new(64);
        assert_eq!(latch.find(0x5000), None);
        latch.write(&ranges(2));
        let found = [
            0xfff, 0x1000, 0x11ff, 0x1200, 0x5000, 0x50ff, 0x5100, 0x9100,
        ]
        .map(|at| latch.find(at));
        let starts = found.map(|found| found.map_or(0, |found| found.0));
        assert_eq!(starts, [0, 0x1000, 0x1100, 0, 0x5000, 0x5000, 0, 0x9100]);
        latch.write(&[]);
        assert_eq!(latch.find(0x5000), None);
    }

    #[test]
    fn readers_never_see_half_of_a_change() {
        let latch = Latch::new(64);
        latch.write(&ranges(0));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let readers = [(); 2].map(|()| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        assert_eq!(latch.find(0x5080).map(|found| found.0), Some(0x5000));
                    }
                })
            });
            for generation in 0..if cfg!(miri) { 20 } else { 100_000 } {
                latch.write(&ranges(generation));
            }
            done.store(true, Ordering::Relaxed);
            // Joined by hand: ThreadSanitizer does not see that the end of a scope waits.
            for reader in readers {
                reader.join().unwrap();
            }
        });
    }
}
