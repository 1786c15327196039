//! What a part of the program allocates and has not freed: exact, on the thread that runs it.
//!
//! A [`Scope`] that was entered hangs on its thread. While it does, the thread's hooks note in it each block that they
//! record, and look up each block that the thread frees. Scopes nest: an inner one's blocks are the outer ones' too.
//!
//! ```text
//!   Local::scope ──▶ innermost ──outer──▶ next ──outer──▶ null        (linked by enter, unlinked by leave)
//!   record::publish ── only if Local::scope is not null ──▶ noted in each of them
//! ```
//!
//! Where none is entered, that is one test of a word of the thread's own, on the path that records. A scope may move with
//! its task from thread to thread, as long as it is left in between. It knows nothing of what happens on other threads:
//! a block that another thread frees stays in it until its address is handed out again here.

use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

use super::call_tree::Nodes;
use super::event::Kind;
use super::memory::{self, GrowArray, Plain};
use super::thread::{Local, with_local};
use super::{control, sampling};

/// A block that a scope knows, or an empty place (address 0).
#[derive(Debug, Clone, Copy)]
pub struct Block {
    address: usize,
    /// Bytes asked for.
    pub size: u64,
    /// The call tree that `node` is of. Trees are never released, but in loom's models, which know no scopes.
    pub nodes: Option<Nodes>,
    /// The call stack.
    pub node: u32,
}

// SAFETY: integers, and an `Option<Nodes>`, which is a transparent `NonNull`: zero is `None`.
unsafe impl Plain for Block {}

const _: () = assert!(size_of::<Block>() == 32 && align_of::<Block>() <= align_of::<Inner>());

/// Places of the first table.
const FIRST_CAPACITY: usize = 128;
/// All that a scope has at first, in one piece: its sums and the first table.
const PIECE: usize = 8192;

const _: () = assert!(size_of::<Inner>() + FIRST_CAPACITY * size_of::<Block>() <= PIECE);

/// Live blocks by address: open addressing, without marks for what was removed.
#[derive(Debug)]
struct Table {
    places: GrowArray<Block>,
    /// Places in use, of a power of two.
    capacity: usize,
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

    /// The place of `address`, or the empty one where it would be.
    fn find(&mut self, address: usize) -> usize {
        let (home, mask) = (self.home(address), self.capacity - 1);
        let slots = self.slots();
        let mut at = home;
        while slots[at].address != 0 && slots[at].address != address {
            at = (at + 1) & mask;
        }
        at
    }

    /// False without memory: the block is not known then.
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
        // What lies behind moves up, unless it is nearer to its home than the gap is.
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
pub struct Figures {
    /// Blocks that were allocated.
    pub allocations: u64,
    /// Their bytes.
    pub allocated: u64,
    /// Blocks that were allocated and not freed.
    pub live_blocks: u64,
    /// Their bytes.
    pub live: u64,
    /// The most that `live` was.
    pub peak: u64,
    /// Blocks that could not be noted, for want of memory: they count as allocated, not as live.
    pub missed: u64,
}

/// What hooks write to. Only the thread on whose list it is, or else its owner, touches it.
#[derive(Debug)]
pub(super) struct Inner {
    outer: Cell<*mut Inner>,
    table: Table,
    figures: Figures,
    /// The block that a `realloc` under way may free.
    reallocated: Option<Block>,
}

impl Inner {
    fn note(&mut self, block: Block) {
        self.figures.allocations += 1;
        self.figures.allocated += block.size;
        self.add(block);
    }

    fn add(&mut self, block: Block) {
        // Handed out again: another thread, which is not asked, has freed the one before.
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

    fn end(&mut self, kind: Kind, address: usize, size: u64) {
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

    /// A mapping is known by its start. One that loses its first part, or several at once, is looked up no further: the
    /// part that is given back counts as far as it belongs to the mapping that begins there.
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

/// A scope that no thread is in.
#[derive(Debug)]
pub struct Scope(NonNull<Inner>);

// SAFETY: it owns what it points to, which nobody else can reach while no thread has entered it.
unsafe impl Send for Scope {}

impl Scope {
    /// One that nothing was allocated in. `None` without memory.
    #[must_use]
    pub fn new() -> Option<Scope> {
        let piece = memory::map(PIECE)?;
        let inner = piece.cast::<Inner>();
        // SAFETY: a fresh mapping, zeroed, page aligned, known to nobody else, with room for both (asserted above); what
        // follows `Inner` is aligned for blocks, which need no more than it does. The table lives as long as the piece.
        unsafe {
            let places = GrowArray::borrowed(inner.add(1).cast(), FIRST_CAPACITY);
            inner.write(Inner {
                outer: Cell::new(ptr::null_mut()),
                table: Table::new(places),
                figures: Figures::default(),
                reallocated: None,
            });
        }
        Some(Scope(inner))
    }

    /// The calling thread is in it from now on, inside of those that it is in already.
    #[must_use]
    pub fn enter(self) -> Entered {
        let inner = ManuallyDrop::new(self).0;
        with_local(|local| {
            // SAFETY: owned by `self`, and on no thread's list: nobody else touches it. It is on this thread's list from
            // here until `Entered` is gone, so it outlives its place there.
            unsafe { inner.as_ref() }.outer.set(local.scope.get());
            local.scope.set(inner.as_ptr());
        });
        Entered {
            inner,
            _of_this_thread: PhantomData,
        }
    }

    /// What is known so far.
    #[must_use]
    pub fn figures(&self) -> Figures {
        // SAFETY: owned by `self`; no thread is in it, so no hook writes.
        unsafe { self.0.as_ref() }.figures
    }

    /// The live blocks. What the caller allocates meanwhile is not seen by this scope, which nobody is in.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        // SAFETY: as in `figures`.
        let table = &unsafe { self.0.as_ref() }.table;
        let places = &table.places.as_slice()[..table.capacity];
        places.iter().filter(|block| block.address != 0)
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // SAFETY: written by `new` at the start of its piece, owned by `self`, and on no list: nobody uses it any more.
        unsafe {
            self.0.read().table.places.release();
            memory::unmap(self.0.cast(), PIECE);
        }
    }
}

/// A scope that the calling thread is in. It is left, and gone, when this is dropped.
#[derive(Debug)]
pub struct Entered {
    inner: NonNull<Inner>,
    _of_this_thread: PhantomData<*mut ()>,
}

impl Entered {
    /// The calling thread is out of it.
    #[must_use]
    pub fn leave(self) -> Scope {
        self.unlink();
        Scope(ManuallyDrop::new(self).inner)
    }

    /// What is known so far.
    #[must_use]
    pub fn figures(&self) -> Figures {
        // SAFETY: on this thread's list, so hooks of this thread alone write to it, and none is under way: this is not
        // called from a hook. The reference ends here.
        unsafe { self.inner.as_ref() }.figures
    }

    fn unlink(&self) {
        with_local(|local| {
            let mut at = &local.scope;
            // Mostly it is the innermost. It is not where guards are dropped in another order.
            while at.get() != self.inner.as_ptr() {
                // SAFETY: all that is on the list lives: each is taken off it here before it is freed.
                match unsafe { at.get().as_ref() } {
                    Some(inner) => at = &inner.outer,
                    None => return,
                }
            }
            // SAFETY: as above.
            at.set(unsafe { self.inner.as_ref() }.outer.get());
        });
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.unlink();
        drop(Scope(self.inner));
    }
}

/// Why a scope would see nothing now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blind {
    /// No session is open.
    NotRecording,
    /// One is, which records samples.
    Sampling,
}

/// The session that records every allocation at this moment.
///
/// # Errors
/// Why there is none.
pub fn session() -> Result<u32, Blind> {
    match control::session() {
        0 => Err(Blind::NotRecording),
        _ if sampling::is_on() => Err(Blind::Sampling),
        session => Ok(session),
    }
}

/// Notes what happened to a block or a mapping in all scopes that the thread is in. Called in hooks, where there is a
/// scope; the thread is busy. `node` is of the tree that `nodes` shows.
#[cold]
#[inline(never)]
pub(super) fn seen(local: &Local, nodes: Nodes, kind: Kind, address: u64, size: u64, node: u32) {
    let address = address as usize;
    if kind.is_allocation() {
        let block = Block {
            address,
            size,
            nodes: Some(nodes),
            node,
        };
        each(local, |inner| inner.note(block));
    } else {
        each(local, |inner| inner.end(kind, address, size));
    }
}

fn each(local: &Local, mut change: impl FnMut(&mut Inner)) {
    let mut at = local.scope.get();
    while !at.is_null() {
        // SAFETY: all on this thread's list live (`unlink`), no reference into one outlives the call that made it, and the
        // thread is in a hook: neither those calls nor another hook run now.
        let inner = unsafe { &mut *at };
        change(inner);
        at = inner.outer.get();
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
                // Near each other, so that they meet.
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

    #[test]
    fn a_realloc_that_fails_leaves_the_block_and_a_mapping_shrinks() {
        let scope = Scope::new().unwrap();
        // SAFETY: the scope's own, which no thread is in.
        let inner = unsafe { &mut *scope.0.as_ptr() };
        inner.note(block(64, 100));
        inner.end(Kind::ReallocFree, 64, 0);
        assert_eq!(scope.figures().live, 0);
        // SAFETY: as above.
        let inner = unsafe { &mut *scope.0.as_ptr() };
        inner.end(Kind::ReallocFailed, 64, 0);
        inner.note(block(4096, 8192));
        inner.end(Kind::Munmap, 4096, 4096);
        inner.end(Kind::Munmap, 1 << 20, 4096);
        let expected = Figures {
            allocations: 2,
            allocated: 8292,
            live_blocks: 2,
            live: 4196,
            peak: 8292,
            missed: 0,
        };
        assert_eq!(scope.figures(), expected);
    }

    #[test]
    fn scopes_are_left_in_any_order() {
        let head = || with_local(|local| local.scope.get());
        let outer = Scope::new().unwrap().enter();
        let middle = Scope::new().unwrap().enter();
        let inner = Scope::new().unwrap().enter();
        assert_eq!(head(), inner.inner.as_ptr());
        drop(middle);
        let left = outer.leave();
        drop(inner);
        assert!(head().is_null());
        drop(left.enter());
        assert!(head().is_null());
    }

    #[test]
    fn a_block_that_another_thread_freed_is_gone_when_its_address_is_handed_out_again() {
        let scope = Scope::new().unwrap();
        // SAFETY: the scope's own, which no thread is in.
        let inner = unsafe { &mut *scope.0.as_ptr() };
        inner.note(block(64, 100));
        inner.note(block(64, 30));
        let figures = scope.figures();
        assert_eq!((figures.allocations, figures.allocated), (2, 130));
        assert_eq!(
            (figures.live_blocks, figures.live, figures.peak),
            (1, 30, 100)
        );
    }
}
