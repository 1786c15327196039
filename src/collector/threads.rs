//! The threads that recorded something: their names, and what each allocated last.

use super::hash::Map;
use super::snapshot::RawThread;
use crate::capture::event::Event;

/// A block is temporary if its thread frees it among its last so many allocations. memray's default threshold of 1 says
/// "at most one other allocation in between", so it is 2 (capture format, section 5; tried with memray 1.20).
pub(super) const TEMPORARY_WINDOW: usize = 2;

const RECENT: usize = 64;

/// A position in [`Threads`]' columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadSlot(u32);

/// See the module.
#[derive(Debug)]
pub(super) struct Threads {
    about: Vec<RawThread>,
    /// Addresses of each thread's last allocations, the latest first.
    window: Vec<[u64; TEMPORARY_WINDOW]>,
    by_number: Map<u32, ThreadSlot>,
    /// (number, slot) of threads seen lately, at number modulo the length.
    recent: [(u32, ThreadSlot); RECENT],
}

impl Default for Threads {
    fn default() -> Self {
        Threads {
            about: Vec::new(),
            window: Vec::new(),
            by_number: Map::default(),
            // Numbers that are not looked for at these positions.
            recent: std::array::from_fn(|at| (at as u32 + 1, ThreadSlot(0))),
        }
    }
}

impl Threads {
    /// The slot of the thread `number`, which is added if it is new.
    #[inline]
    pub(super) fn slot(&mut self, number: u32) -> ThreadSlot {
        let (recent, slot) = self.recent[number as usize % RECENT];
        if recent == number {
            return slot;
        }
        self.look_up(number)
    }

    #[cold]
    fn look_up(&mut self, number: u32) -> ThreadSlot {
        let next = ThreadSlot(self.about.len() as u32);
        let slot = *self.by_number.entry(number).or_insert(next);
        if slot == next {
            self.about.push(RawThread {
                number,
                tid: 0,
                name: String::new(),
            });
            self.window.push([0; TEMPORARY_WINDOW]);
        }
        self.recent[number as usize % RECENT] = (number, slot);
        slot
    }

    /// The thread allocated the block at `address`.
    #[inline]
    pub(super) fn allocated(&mut self, thread: u32, address: u64) {
        let slot = self.slot(thread);
        let window = &mut self.window[slot.0 as usize];
        window.copy_within(..TEMPORARY_WINDOW - 1, 1);
        window[0] = address;
    }

    /// Whether the block at `address` is among the thread's last allocations.
    #[inline]
    pub(super) fn allocated_lately(&mut self, thread: u32, address: u64) -> bool {
        let slot = self.slot(thread);
        let window = &self.window[slot.0 as usize];
        window
            .iter()
            .fold(false, |found, &one| found | (one == address))
    }

    /// A thread begins: the event's size is its operating system number.
    pub(super) fn start(&mut self, event: &Event) {
        let slot = self.slot(event.thread);
        self.about[slot.0 as usize].tid = u32::try_from(event.size).unwrap_or(0);
    }

    /// A thread ends or is renamed: the event's address and size are its name.
    pub(super) fn name(&mut self, event: &Event) {
        let slot = self.slot(event.thread);
        self.about[slot.0 as usize].name = name(event);
    }

    /// Every thread, in the order of first use.
    pub(super) fn about(&self) -> &[RawThread] {
        &self.about
    }

    /// Bytes of memory it holds.
    pub(super) fn memory_bytes(&self) -> u64 {
        let names: usize = self.about.iter().map(|thread| thread.name.len()).sum();
        let columns = size_of::<RawThread>() + size_of::<[u64; TEMPORARY_WINDOW]>();
        let map = self.by_number.capacity() * size_of::<(u32, ThreadSlot)>();
        (names + self.about.len() * columns + map) as u64
    }
}

/// The name that a `ThreadName` event carries: up to 16 bytes, in the machine's order, zero padded.
fn name(event: &Event) -> String {
    let mut bytes = event.address.to_ne_bytes().to_vec();
    bytes.extend(event.size.to_ne_bytes());
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
