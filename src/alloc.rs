//! The `GlobalAlloc` wrapper, which records Rust's allocations where patching the GOT does not reach them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;

use crate::capture::arch;
use crate::capture::event::Kind;
use crate::capture::failure;
use crate::capture::record::{self, Reallocation, seen};
use crate::capture::sampling;
use crate::capture::thread::with_local;

/// Global allocator that records the calls to the allocator `A` in it.
///
/// A dynamically linked program that uses the system's allocator does not need it. A program that uses another allocator
/// (jemalloc, mimalloc), or that is linked statically, does:
/// (jemalloc, mimalloc), or is linked statically, does:
///
/// ```
/// #[global_allocator]
/// static GLOBAL: heapray::Alloc = heapray::Alloc::new(std::alloc::System);
/// # fn main() {}
/// ```
///
/// While nothing is recorded, it costs one relaxed load and a branch per call. Allocations are counted once even if `A`
/// calls functions that are patched: the calling thread is marked busy during the inner call. So the mappings that `A` makes
/// for itself, to cut blocks from them, are not recorded. There are two rare exceptions: a call of `A` that is running on
/// another thread when a session starts, and mappings of an allocator's own background threads, are recorded as mappings.
/// When `A` unmaps memory, on any thread, no recorded block ends.
#[derive(Debug, Default, Clone, Copy)]
pub struct Alloc<A = System> {
    inner: A,
}

impl<A> Alloc<A> {
    /// Wraps `inner`.
    pub const fn new(inner: A) -> Alloc<A> {
        Alloc { inner }
    }
}

impl<A: GlobalAlloc> Alloc<A> {
    /// Calls `A` and records the block. Not inlined: reports trim exactly these frames, whatever the caller looks like.
    #[inline(never)]
    fn allocate(&self, kind: Kind, size: usize, call: impl Fn(&A) -> *mut u8) -> *mut u8 {
        with_local(|local| {
            if !record::wants_allocation(local)
                || record::probed(local, seen::GLOBAL)
                || !sampling::is_due(local, size)
            {
                return call(&self.inner);
            }
            local.set_busy(true);
            let mut block = call(&self.inner);
            if block.is_null() && failure::note(size) {
                block = call(&self.inner);
            }
            if !block.is_null() {
                let registers = arch::registers_here();
                // SAFETY: the registers are this function's own, which has not returned; the thread is busy.
                unsafe { record::allocation(local, kind, block as usize, size, registers) };
            }
            local.set_busy(false);
            block
        })
    }
}

// SAFETY: every call goes to `A`, whose promises are those of this implementation; nothing here changes a layout, a
// pointer or a result, and nothing here panics or allocates.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Alloc<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's own promise, handed on.
        let call = |inner: &A| unsafe { inner.alloc(layout) };
        if record::is_off() || is_unsampled(layout.size()) {
            call(&self.inner)
        } else {
            self.allocate(Kind::Malloc, layout.size(), call)
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's own promise, handed on.
        let call = |inner: &A| unsafe { inner.alloc_zeroed(layout) };
        if record::is_off() || is_unsampled(layout.size()) {
            call(&self.inner)
        } else {
            self.allocate(Kind::Calloc, layout.size(), call)
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's own promise, handed on.
        let call = || unsafe { self.inner.dealloc(block, layout) };
        if record::is_off() || sampling::is_free_unsampled(block as usize) {
            call();
        } else {
            deallocate(block as usize, call);
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's own promise, handed on.
        let call = || unsafe { self.inner.realloc(block, layout, new_size) };
        if record::is_off()
            || with_local(|local| sampling::is_realloc_unsampled(local, block as usize, new_size))
        {
            call()
        } else {
            reallocate(block.cast(), new_size, call)
        }
    }
}

/// Returns whether sampling leaves an allocation of `size` bytes out, and counts it in that case.
#[inline(always)]
fn is_unsampled(size: usize) -> bool {
    with_local(|local| sampling::is_unsampled(local, size))
}

#[inline(never)]
fn deallocate(block: usize, call: impl Fn()) {
    with_local(|local| {
        if !record::wants_free(local)
            || record::probed(local, seen::GLOBAL)
            || !sampling::is_end_due(block)
        {
            return call();
        }
        local.set_busy(true);
        record::free_block(local, block);
        call();
        local.set_busy(false);
    });
}

/// Records a free before the real call and an allocation after it, as in the hooks.
#[inline(never)]
fn reallocate(block: *mut c_void, size: usize, call: impl Fn() -> *mut u8) -> *mut u8 {
    with_local(|local| {
        if !record::wants_free(local) || record::probed(local, seen::GLOBAL) {
            return call();
        }
        let begun = Reallocation::begin(local, block as usize, size);
        local.set_busy(true);
        begun.before(local);
        let mut result = call();
        if result.is_null() && failure::note(size) {
            result = call();
        }
        let registers = arch::registers_here();
        // SAFETY: the registers are this function's own, which has not returned; the thread is busy.
        unsafe { begun.after(local, result as usize, registers) };
        local.set_busy(false);
        result
    })
}
