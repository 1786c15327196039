//! Exact count of the memory that a part of the program allocates and has not freed, on the thread that runs it.
//!
//! A [`Scope`] that was entered hangs on its thread. Meanwhile, the thread's hooks note in the scope each block that they
//! record, and look up each block that the thread frees. Scopes nest: the blocks of an inner scope are also those of the
//! outer ones.
//!
//! ```text
//!   Local::scope ──▶ innermost ──outer──▶ next ──outer──▶ null        (linked by enter, unlinked by leave)
//!   record::publish ── only if Local::scope is not null ──▶ noted in each of them
//! ```
//!
//! Without a scope, the cost is one test of a thread-local word on the path that records. A scope may move with its task
//! from thread to thread, if it is left in between. It does not see what happens on other threads: a block that another
//! thread frees stays in the scope until its address is handed out again here.

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use super::call_tree::Nodes;
use super::event::Kind;
use super::memory::{self, GrowArray};
pub use super::scope_blocks::{Block, ScopeSums};
use super::scope_blocks::{FIRST_CAPACITY, ScopeBlocks};
use super::thread::{Local, with_local};
use super::{control, sampling};

/// Bytes of a new scope, in one piece: its sums and the first table.
const PIECE: usize = 8192;

const _: () = assert!(size_of::<ScopeBlocks>() + FIRST_CAPACITY * size_of::<Block>() <= PIECE);

/// Scope that no thread is in.
#[derive(Debug)]
pub struct Scope(NonNull<ScopeBlocks>);

// SAFETY: it owns what it points to, which nobody else can reach while no thread has entered it.
unsafe impl Send for Scope {}

impl Scope {
    /// Makes an empty scope. Returns `None` without memory.
    #[must_use]
    pub fn new() -> Option<Scope> {
        let piece = memory::map(PIECE)?;
        let inner = piece.cast::<ScopeBlocks>();
        // SAFETY: a fresh mapping, zeroed, page aligned, known to nobody else, with room for both (asserted above); what
        // follows `ScopeBlocks` is aligned for blocks, which need no more than it does. The table lives as long as the piece.
        unsafe {
            let places = GrowArray::borrowed(inner.add(1).cast(), FIRST_CAPACITY);
            inner.write(ScopeBlocks::new(places));
        }
        Some(Scope(inner))
    }

    /// Lets the calling thread enter the scope, inside of those that it is in already.
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

    /// Returns the sums so far.
    #[must_use]
    pub fn figures(&self) -> ScopeSums {
        // SAFETY: owned by `self`; no thread is in it, so no hook writes.
        unsafe { self.0.as_ref() }.figures
    }

    /// Returns the live blocks. What the caller allocates meanwhile is not in this scope, because no thread is in it.
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

/// Scope that the calling thread is in. Dropping it leaves and removes the scope.
#[derive(Debug)]
pub struct Entered {
    inner: NonNull<ScopeBlocks>,
    _of_this_thread: PhantomData<*mut ()>,
}

impl Entered {
    /// Lets the calling thread leave the scope.
    #[must_use]
    pub fn leave(self) -> Scope {
        self.unlink();
        Scope(ManuallyDrop::new(self).inner)
    }

    /// Returns the sums so far.
    #[must_use]
    pub fn figures(&self) -> ScopeSums {
        // SAFETY: on this thread's list, so hooks of this thread alone write to it, and none is under way: this is not
        // called from a hook. The reference ends here.
        unsafe { self.inner.as_ref() }.figures
    }

    fn unlink(&self) {
        with_local(|local| {
            let mut at = &local.scope;
            // Mostly it is the innermost, unless guards are dropped in another order.
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

/// Reason why a scope would see nothing now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoExactSession {
    /// No session is open.
    NotRecording,
    /// The session records samples.
    Sampling,
}

/// Returns the session that records every allocation at this moment.
///
/// # Errors
/// The reason why there is no such session.
pub fn session() -> Result<u32, NoExactSession> {
    match control::session() {
        0 => Err(NoExactSession::NotRecording),
        _ if sampling::is_on() => Err(NoExactSession::Sampling),
        session => Ok(session),
    }
}

/// Notes an event of a block or a mapping in all scopes that the thread is in. Called in hooks, if there is a scope; the
/// thread is busy. `node` is of the tree that `nodes` shows.
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

fn each(local: &Local, mut change: impl FnMut(&mut ScopeBlocks)) {
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

    fn block(address: usize, size: u64) -> Block {
        Block {
            address,
            size,
            nodes: None,
            node: 0,
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
        let expected = ScopeSums {
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
