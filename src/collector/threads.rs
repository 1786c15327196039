//! The threads that recorded something: their entries and their last allocations.
//!
//! The first threads of a session have entries of their own and are never forgotten. A later thread has a slot only while it
//! lives, and its name at the beginning decides its entry for good:
//!
//! ```text
//!   slots: [ first threads: 0 .. apart ][ later ones: at most `late`, reused ]
//!
//!   later thread ── start ──▶ has a slot ── end ──▶ leaving ── 64 more have ended ──▶ forgotten
//!                                 └─────── `late` others began since ──────────────────▲
//! ```
//!
//! If events of a forgotten thread come (from destructors at its very end, or because its end was lost), its name can no
//! longer be found. It counts once more, among the threads without a name.

use std::collections::VecDeque;

use super::entries::{Bounds, Entries};
use super::hash::Map;
use super::pairs::Pairs;
use super::recent::RecentAllocations;
use super::runs::Place;
use super::snapshot::RawThread;
use crate::capture::event::{Event, Kind};

/// Function that returns the name of the living thread with this operating system's number.
pub(super) type NameOf = fn(u32) -> Option<String>;

const RECENT: usize = 64;

/// Number of ended threads that keep their slot, for the events of their last destructors.
const LEAVING: usize = 64;

/// Slot of a thread, and the numbers of the entries that it is counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadSlot {
    index: u32,
    /// The entry in call sites: of the thread alone, or of the thread in its present context ([`Pairs`]).
    pub(super) entry: u32,
    /// The entry of the thread alone.
    pub(super) thread: u32,
    /// The run that it is in.
    pub(super) run: Place,
}

/// Threads of a session; see the module.
#[derive(Debug)]
pub(super) struct Threads {
    bounds: Bounds,
    name_of: NameOf,
    entries: Entries,
    pairs: Pairs,
    /// The contexts of threads that have no slot yet, in the tables of a scope.
    begun_in: Map<u32, u32>,
    allocations: RecentAllocations,
    /// The thread in each slot.
    numbers: Vec<u32>,
    /// Free slots of later threads.
    free: Vec<u32>,
    /// Numbers of later threads that have ended, the earliest first.
    leaving: VecDeque<u32>,
    /// The slot that is taken from its thread next if no slot is free.
    next_reused: usize,
    by_number: Map<u32, ThreadSlot>,
    /// Recently seen threads as (number, slot), at the number modulo the length.
    recent: [(u32, ThreadSlot); RECENT],
}

impl Default for Threads {
    fn default() -> Self {
        Threads::new(Bounds::default(), |_| None)
    }
}

/// Returns the value of `recent` at `at` that stands for no thread: a number that is not looked for there.
const fn nobody(at: usize) -> (u32, ThreadSlot) {
    let slot = ThreadSlot {
        index: 0,
        entry: 0,
        thread: 0,
        run: Place::NONE,
    };
    (at as u32 + 1, slot)
}

impl Threads {
    /// Makes an empty table.
    pub(super) fn new(bounds: Bounds, name_of: NameOf) -> Threads {
        Threads {
            bounds,
            name_of,
            entries: Entries::new(bounds),
            pairs: Pairs::default(),
            begun_in: Map::default(),
            allocations: RecentAllocations::default(),
            numbers: Vec::new(),
            free: Vec::new(),
            leaving: VecDeque::new(),
            next_reused: 0,
            by_number: Map::default(),
            recent: std::array::from_fn(nobody),
        }
    }

    /// Returns the slot of the thread `number`, and adds it if it is new.
    #[inline]
    pub(super) fn slot(&mut self, number: u32) -> ThreadSlot {
        let (recent, slot) = self.recent[number as usize % RECENT];
        if recent == number {
            return slot;
        }
        self.look_up(number)
    }

    /// Returns the entry that the thread `number` is most probably counted under.
    #[inline]
    pub(super) fn likely_entry(&self, number: u32) -> u32 {
        let (recent, slot) = self.recent[number as usize % RECENT];
        if recent == number { slot.entry } else { number }
    }

    #[cold]
    fn look_up(&mut self, number: u32) -> ThreadSlot {
        match self.by_number.get(&number) {
            Some(&slot) => {
                self.recent[number as usize % RECENT] = (number, slot);
                slot
            }
            None => self.admit(number, 0, ""),
        }
    }

    /// Adds a new thread. The name does not matter while threads get entries of their own.
    fn admit(&mut self, number: u32, tid: u32, name: &str) -> ThreadSlot {
        let (index, thread) = if self.entries.is_full() {
            (self.free_slot(), self.entries.fold(tid, name))
        } else {
            let index = self.entries.add(number, tid) as u32;
            debug_assert_eq!(index as usize, self.numbers.len(), "an entry has its slot");
            self.add_slot();
            (index, number)
        };
        let context = self.begun_in.remove(&number).unwrap_or(0);
        let slot = ThreadSlot {
            index,
            entry: self.pairs.entry(thread, context),
            thread,
            run: Place::NONE,
        };
        self.numbers[slot.index as usize] = number;
        self.by_number.insert(number, slot);
        self.recent[number as usize % RECENT] = (number, slot);
        slot
    }

    /// Returns a slot for a later thread.
    fn free_slot(&mut self) -> u32 {
        let late = self.bounds.late.max(1);
        if self.free.is_empty() && self.numbers.len() < self.bounds.apart + late {
            return self.add_slot();
        }
        if self.free.is_empty() {
            // The threads in all slots seem to live, because their ends were lost. Take the slot that was given out first.
            self.forget(self.numbers[self.bounds.apart + self.next_reused]);
            self.next_reused = (self.next_reused + 1) % late;
        }
        self.free
            .pop()
            .expect("a thread that is forgotten leaves its slot")
    }

    fn add_slot(&mut self) -> u32 {
        self.numbers.push(0);
        self.allocations.add();
        self.numbers.len() as u32 - 1
    }

    /// Forgets a later thread. Its allocations stay under its entry.
    fn forget(&mut self, number: u32) {
        let Some(slot) = self.by_number.remove(&number) else {
            return;
        };
        let at = number as usize % RECENT;
        if self.recent[at].0 == number {
            self.recent[at] = nobody(at);
        }
        self.allocations.clear(slot.index);
        self.free.push(slot.index);
    }

    /// Returns whether the slot's thread is counted together with others.
    #[inline]
    pub(super) fn is_shared(&self, slot: ThreadSlot) -> bool {
        slot.index as usize >= self.bounds.apart
    }

    /// Notes that the slot's thread allocated the block at `address`.
    #[inline]
    pub(super) fn allocated(&mut self, slot: ThreadSlot, address: u64) {
        let shared = self.is_shared(slot);
        self.allocations.allocated(slot.index, shared, address);
    }

    /// Returns whether the block at `address`, which was allocated under the slot's entry, is among its thread's last
    /// allocations.
    #[inline]
    pub(super) fn allocated_recently(&self, slot: ThreadSlot, address: u64) -> bool {
        let shared = self.is_shared(slot);
        self.allocations.has(slot.index, shared, address)
    }

    /// Notes that a thread begins. `later` are events that are known to follow.
    #[cold]
    pub(super) fn start(&mut self, event: &Event, later: &[Event]) {
        let tid = event.tid();
        // The context that the thread announces next, if it is in one, is that of its later events.
        self.begun_in.remove(&event.thread);
        if self.by_number.contains_key(&event.thread) {
            self.change_context(event.thread, 0, |_| Place::NONE);
        }
        match self.by_number.get(&event.thread).copied() {
            Some(slot) if self.is_shared(slot) => {}
            Some(slot) => self.entries.set_tid(slot.index as usize, tid),
            None if self.entries.is_full() => {
                // A short-lived thread has sent its name by now, and often cannot be asked any more.
                let end = later
                    .iter()
                    .find(|one| one.kind == Kind::ThreadName && one.thread == event.thread);
                let name = end.map(name_in).or_else(|| (self.name_of)(tid));
                self.admit(event.thread, tid, &name.unwrap_or_default());
            }
            None => {
                self.admit(event.thread, tid, "");
            }
        }
    }

    /// Notes that a thread is in another context from now on, and in the run that `run` returns for the context that this one is
    /// counted under.
    #[cold]
    pub(super) fn change_context(
        &mut self,
        number: u32,
        context: u32,
        run: impl FnOnce(u32) -> Place,
    ) {
        let before = self.slot(number);
        let slot = self.in_context(before, context);
        let (_, context) = self.pairs.parts(slot.entry);
        let slot = ThreadSlot {
            run: run(context),
            ..slot
        };
        if slot != before {
            self.by_number.insert(number, slot);
            self.recent[number as usize % RECENT] = (number, slot);
        }
    }

    /// Returns the contexts that threads are in. There are doubles.
    pub(super) fn present_contexts(&self) -> impl Iterator<Item = u32> {
        let slots = self.by_number.values();
        let living =
            slots.filter(|slot| self.is_shared(**slot) || !self.entries.has_ended(slot.index));
        living.map(|slot| self.pairs.parts(slot.entry).1)
    }

    /// Counts what threads did in some contexts under others: see [`Pairs::retire`].
    pub(super) fn retire(&mut self, retired: &Map<u32, u32>, used_again: bool) -> Map<u32, u32> {
        let moved = self.pairs.retire(retired, used_again);
        for slot in self.by_number.values_mut() {
            slot.entry = moved.get(&slot.entry).copied().unwrap_or(slot.entry);
        }
        self.recent = std::array::from_fn(nobody);
        moved
    }

    /// Returns `slot` as if its thread were in `context`, and in no run.
    pub(super) fn in_context(&mut self, slot: ThreadSlot, context: u32) -> ThreadSlot {
        ThreadSlot {
            entry: self.pairs.entry(slot.thread, context),
            run: Place::NONE,
            ..slot
        }
    }

    /// Returns the thread's entry and the context that `entry`, that of a call site, stands for.
    #[inline]
    pub(super) fn thread_and_context(&self, entry: u32) -> (u32, u32) {
        self.pairs.parts(entry)
    }

    /// Returns the pairs of a thread and a context, in the order of their entries.
    pub(super) fn pairs(&self) -> &[(u32, u32)] {
        self.pairs.list()
    }

    /// Returns what [`list`](Self::list) and [`pairs`](Self::pairs) do.
    pub(super) fn list_and_pairs(&mut self) -> (&[RawThread], &[(u32, u32)]) {
        self.entries.learn_names(self.name_of);
        (self.entries.list(), self.pairs.list())
    }

    /// Returns whether a thread was ever in a context.
    pub(super) fn has_contexts(&self) -> bool {
        !self.pairs.is_empty()
    }

    /// Makes an empty table in which threads begin in their present contexts.
    pub(super) fn begin_again(&self) -> Threads {
        let contexts = self.by_number.iter().filter_map(|(&number, slot)| {
            let (_, context) = self.pairs.parts(slot.entry);
            (context != 0).then_some((number, context))
        });
        Threads {
            begun_in: contexts.collect(),
            ..Threads::default()
        }
    }

    /// Notes that a thread ends: the event has its name.
    #[cold]
    pub(super) fn end(&mut self, event: &Event) {
        let slot = self.slot(event.thread);
        if !self.is_shared(slot) {
            return self.entries.end(slot.index as usize, name_in(event));
        }
        self.leaving.push_back(event.thread);
        if self.leaving.len() > LEAVING
            && let Some(number) = self.leaving.pop_front()
        {
            self.forget(number);
        }
    }

    /// Returns all entries, in the order of first use, with the present names of living threads.
    pub(super) fn list(&mut self) -> &[RawThread] {
        self.list_and_pairs().0
    }

    /// Returns a sentence for the user, if threads were counted together.
    pub(super) fn note(&self) -> Option<String> {
        self.entries.note()
    }

    /// Returns the bytes of memory of the threads.
    pub(super) fn memory_bytes(&self) -> u64 {
        let slots = (self.numbers.capacity() + self.free.capacity() + self.leaving.capacity())
            * size_of::<u32>();
        let map = self.by_number.capacity() * (size_of::<(u32, ThreadSlot)>() + 1);
        let begun_in = self.begun_in.capacity() * (size_of::<(u32, u32)>() + 1);
        let pairs = self.pairs.memory_bytes() + begun_in;
        (self.entries.memory_bytes() + pairs + self.allocations.memory_bytes() + slots + map) as u64
    }
}

/// Returns the name in a `ThreadName` event.
fn name_in(event: &Event) -> String {
    let bytes = event.name();
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
