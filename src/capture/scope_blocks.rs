//! The blocks in a [scope](super::scope), and its sums.

use core::cell::Cell;
use core::ptr;

use super::call_tree::Nodes;
use super::event::Kind;
use super::memory::{GrowArray, Plain};

/// Block in a scope, or an empty place (address 0).
#[derive(Debug, Clone, Copy)]
pub struct Block {
    pub(super) address: usize,
    /// Requested bytes.
    pub size: u64,
    /// The call tree of `node`. Trees are released only in loom's models, which have no scopes.
    pub nodes: Option<Nodes>,
    /// The call stack.
    pub node: u32,
}

// SAFETY: integers, and an `Option<Nodes>`, which is a transparent `NonNull`: zero is `None`.
unsafe impl Plain for Block {}

const _: () = assert!(size_of::<Block>() == 32 && align_of::<Block>() <= align_of::<ScopeBlocks>());

/// Number of places of the first table.
pub(super) const FIRST_CAPACITY: usize = 128;

/// Live blocks by address: open addressing, without marks for removed blocks.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) places: GrowArray<Block>,
    /// Number of places, a power of two.
    pub(super) capacity: usize,
    used: usize,
}

impl Table {
    fn new(places: GrowArray<Block>) -> Table {
        Table {
            places,
            capacity: FIRST_CAPACITY,
            used: 0,
        }
    }

    fn home(&self, address: usize) -> usize {
        // Fibonacci hashing: the high bits of the product depend on all of the address.
        let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize & (self.capacity - 1)
    }

    fn slots(&mut self) -> &mut [Block] {
        let capacity = self.capacity;
        &mut self.places.as_mut_slice()[..capacity]
    }

    /// Returns the place of `address`, or the empty place where it belongs.
    fn find(&mut self, address: usize) -> usize {
        let (home, mask) = (self.home(address), self.capacity - 1);
        let slots = self.slots();
        let mut at = home;
        while slots[at].address != 0 && slots[at].address != address {
            at = (at + 1) & mask;
        }
        at
    }

    /// Inserts a block. Returns false without memory: the block is not known then.
    fn insert(&mut self, block: Block) -> bool {
        if (self.used + 1) * 4 > self.capacity * 3
            && !self.double()
            && self.used + 2 > self.capacity
        {
            return false;
        }
        let at = self.find(block.address);
        self.used += usize::from(self.slots()[at].address == 0);
        self.slots()[at] = block;
        true
    }

    fn double(&mut self) -> bool {
        let Some(places) = GrowArray::mapped(self.capacity * 2) else {
            return false;
        };
        let old = core::mem::replace(&mut self.places, places);
        let length = self.capacity;
        self.capacity *= 2;
        for &block in &old.as_slice()[..length] {
            if block.address != 0 {
                let at = self.find(block.address);
                self.slots()[at] = block;
            }
        }
        old.release();
        true
    }

    fn remove(&mut self, address: usize) -> Option<Block> {
        let found = self.find(address);
        let mask = self.capacity - 1;
        let block = self.slots()[found];
        if block.address == 0 {
            return None;
        }
        self.used -= 1;
        // The blocks after the gap move up, unless a block is nearer to its home place than the gap is.
        let (mut gap, mut at) = (found, (found + 1) & mask);
        while self.slots()[at].address != 0 {
            let address = self.slots()[at].address;
            let home = self.home(address);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(gap) & mask) {
                self.slots()[gap] = self.slots()[at];
                gap = at;
            }
            at = (at + 1) & mask;
        }
        self.slots()[gap].address = 0;
        Some(block)
    }
}

/// Sums of a scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScopeSums {
    /// Allocated blocks.
    pub allocations: u64,
    /// Bytes of the allocated blocks.
    pub allocated: u64,
    /// Blocks that were allocated and not freed.
    pub live_blocks: u64,
    /// Bytes of the live blocks.
    pub live: u64,
    /// The maximum of `live`.
    pub peak: u64,
    /// Blocks that could not be noted for lack of memory. They count as allocated, but not as live.
    pub missed: u64,
}

/// Part that hooks write to. Only the thread on whose list it is touches it, or else its owner.
#[derive(Debug)]
pub(super) struct ScopeBlocks {
    pub(super) outer: Cell<*mut ScopeBlocks>,
    pub(super) table: Table,
    pub(super) figures: ScopeSums,
    /// The block that a running `realloc` may free.
    reallocated: Option<Block>,
}

impl ScopeBlocks {
    /// Makes the blocks of a scope that no thread has entered yet. `places` is the first table.
    pub(super) fn new(places: GrowArray<Block>) -> ScopeBlocks {
        ScopeBlocks {
            outer: Cell::new(ptr::null_mut()),
            table: Table::new(places),
            figures: ScopeSums::default(),
            reallocated: None,
        }
    }

    pub(super) fn note(&mut self, block: Block) {
        self.figures.allocations += 1;
        self.figures.allocated += block.size;
        self.add(block);
    }

    fn add(&mut self, block: Block) {
        // The address is handed out again: another thread, which this scope does not see, has freed the earlier block.
        let _before = self.remove(block.address);
        let figures = &mut self.figures;
        if self.table.insert(block) {
            figures.live_blocks += 1;
            figures.live += block.size;
            figures.peak = figures.peak.max(figures.live);
        } else {
            figures.missed += 1;
        }
    }

    pub(super) fn end(&mut self, kind: Kind, address: usize, size: u64) {
        match kind {
            Kind::Free => drop(self.remove(address)),
            Kind::ReallocFree => self.reallocated = self.remove(address),
            Kind::ReallocFailed => {
                if let Some(block) = self.reallocated.take() {
                    self.add(block);
                }
            }
            Kind::Munmap => self.unmap(address, size),
            _ => {}
        }
    }

    fn remove(&mut self, address: usize) -> Option<Block> {
        let block = self.table.remove(address)?;
        self.figures.live_blocks -= 1;
        self.figures.live -= block.size;
        Some(block)
    }

    /// Removes a mapping, which is known by its start. If the range begins or ends elsewhere, only the part that belongs to
    /// the mapping at this start is counted.
    fn unmap(&mut self, address: usize, size: u64) {
        let Some(mut block) = self.remove(address) else {
            return;
        };
        if block.size > size {
            block.address += size as usize;
            block.size -= size;
            self.add(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn block(address: usize, size: u64) -> Block {
        Block {
            address,
            size,
            nodes: None,
            node: 0,
        }
    }

    proptest! {
        #[test]
        fn a_table_knows_what_a_map_knows(changes in prop::collection::vec((1usize..400, 0u64..9), 0..2000)) {
            let mut table = Table::new(GrowArray::mapped(FIRST_CAPACITY).unwrap());
            let mut model = HashMap::new();
            for (address, size) in changes {
                // Near each other, so that they collide.
                let address = address * 16;
                if size == 0 {
                    prop_assert_eq!(table.remove(address).map(|block| block.size), model.remove(&address));
                } else {
                    prop_assert!(table.insert(block(address, size)));
                    model.insert(address, size);
                }
                prop_assert_eq!(table.used, model.len());
            }
            for (address, size) in model {
                prop_assert_eq!(table.remove(address).map(|block| block.size), Some(size));
            }
            prop_assert!(table.slots().iter().all(|block| block.address == 0));
            table.places.release();
        }
    }
}
