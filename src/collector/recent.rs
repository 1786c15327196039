//! The recent allocations of each thread, which decide which blocks were temporary.
//!
//! A block is temporary if the thread that allocated it frees it among its last allocations. A call site says which thread
//! allocated a block only if the thread has an entry of its own. For threads that are counted together, `owner` says it, for
//! the few addresses in their windows.

use super::hash::Map;

/// Number of last allocations within which a freed block is temporary. memray's default threshold of 1 means "at most one
/// other allocation in between", so it is 2 (capture format, section 5; tried with memray 1.20).
pub(super) const TEMPORARY_WINDOW: usize = 2;

type Window = [u64; TEMPORARY_WINDOW];

/// Recent allocations; see the module. Each thread has a slot; slots are reused.
#[derive(Debug, Default)]
pub(super) struct RecentAllocations {
    /// Addresses of the last allocations of each slot, the latest first.
    windows: Vec<Window>,
    /// The slot that allocated last at each address in the window of a shared slot.
    owner: Map<u64, u32>,
}

impl RecentAllocations {
    /// Adds the next slot.
    pub(super) fn add(&mut self) {
        self.windows.push(Window::default());
    }

    /// Notes that the slot's thread allocated the block at `address`. `shared` says whether the slot's thread is counted
    /// together with others.
    #[inline]
    pub(super) fn allocated(&mut self, slot: u32, shared: bool, address: u64) {
        let window = &mut self.windows[slot as usize];
        let oldest = window[TEMPORARY_WINDOW - 1];
        window.copy_within(..TEMPORARY_WINDOW - 1, 1);
        window[0] = address;
        if shared {
            if !window.contains(&oldest) {
                self.disown(slot, oldest);
            }
            self.owner.insert(address, slot);
        }
    }

    /// Returns whether the block at `address` is among the slot's last allocations. `shared` is as in
    /// [`allocated`](Self::allocated); if it is false, the caller knows that the slot's thread allocated the block.
    #[inline]
    pub(super) fn has(&self, slot: u32, shared: bool, address: u64) -> bool {
        let window = &self.windows[slot as usize];
        let found = window
            .iter()
            .fold(false, |found, &one| found | (one == address));
        found && (!shared || self.owner.get(&address) == Some(&slot))
    }

    /// Forgets the allocations of a shared slot's thread.
    pub(super) fn clear(&mut self, slot: u32) {
        for address in std::mem::take(&mut self.windows[slot as usize]) {
            self.disown(slot, address);
        }
    }

    fn disown(&mut self, slot: u32, address: u64) {
        if self.owner.get(&address) == Some(&slot) {
            self.owner.remove(&address);
        }
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.windows.capacity() * size_of::<Window>()
            + self.owner.capacity() * (size_of::<(u64, u32)>() + 1)
    }
}
