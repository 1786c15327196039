//! What each thread allocated last, to tell which blocks were temporary.
//!
//! A block is temporary if the thread that allocated it frees it among its last allocations. A call site tells which
//! thread allocated a block only where threads are kept apart. For those that are counted together, `owner` tells it,
//! of the few addresses in their windows.

use super::hash::Map;

/// A block is temporary if its thread frees it among its last so many allocations. memray's default threshold of 1 says
/// "at most one other allocation in between", so it is 2 (capture format, section 5; tried with memray 1.20).
pub(super) const TEMPORARY_WINDOW: usize = 2;

type Window = [u64; TEMPORARY_WINDOW];

/// See the module. Threads are told apart by slots, which are used again.
#[derive(Debug, Default)]
pub(super) struct RecentAllocations {
    /// By slot: addresses of the last allocations, the latest first.
    windows: Vec<Window>,
    /// Of each address in the window of a shared slot: the slot that allocated there last.
    owner: Map<u64, u32>,
}

impl RecentAllocations {
    /// Makes room for one more slot, the next one.
    pub(super) fn add(&mut self) {
        self.windows.push(Window::default());
    }

    /// The slot's thread allocated the block at `address`. `shared` tells whether the slot's thread is counted together
    /// with others.
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

    /// Whether the block at `address` is among the slot's last allocations. `shared` as in
    /// [`allocated`](Self::allocated); where it is false, the caller knows that the slot's thread allocated the block.
    #[inline]
    pub(super) fn has(&self, slot: u32, shared: bool, address: u64) -> bool {
        let window = &self.windows[slot as usize];
        let found = window
            .iter()
            .fold(false, |found, &one| found | (one == address));
        found && (!shared || self.owner.get(&address) == Some(&slot))
    }

    /// Forgets what was allocated by a shared slot's thread.
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

    /// Bytes of memory it holds.
    pub(super) fn memory_bytes(&self) -> usize {
        self.windows.capacity() * size_of::<Window>()
            + self.owner.capacity() * (size_of::<(u64, u32)>() + 1)
    }
}
