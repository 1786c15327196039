//! The generic timer's virtual count.
//!
//! It is not a memory access, so no memory barrier orders it, and a processor may read it early or late: between two other
//! instructions it is read only behind an `isb` (Arm ARM, D12.2, "may be read speculatively"). Without one, two stamps of
//! one thread could be out of order.

use core::arch::asm;

/// The count, read after every instruction before it in program order. Stores before it may still be in flight.
#[inline(always)]
#[must_use]
pub fn stamp() -> u64 {
    let count: u64;
    // SAFETY: Linux lets user code read the register; glibc's own clock does. Not `nomem`: the compiler must not move
    // it across the stores that open and close a ring's window.
    unsafe {
        asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nostack, preserves_flags));
    }
    count
}

/// The count, read after every load before it in program order is done.
///
/// An `isb` alone does not wait for a load that nothing has looked at; `dmb ishld` in front does not either. What is
/// asked for is that the loads by which an allocator took a block precede the stamp: a hook has compared the block's
/// address by then, and a branch on a load's value, followed by an `isb`, does wait for it.
#[inline(always)]
#[must_use]
pub fn stamp_after_loads() -> u64 {
    stamp()
}

/// A full barrier for memory accesses and stamps alike: stores before it are seen by all processors before a stamp behind
/// it is taken, and loads behind it are done after a stamp before it was.
#[inline(always)]
pub fn fence_and_stamps() {
    // SAFETY: barriers. `dsb` waits until all accesses before it are complete, which `dmb` does not.
    unsafe {
        asm!("isb", "dsb ish", "isb", options(nostack, preserves_flags));
    }
}

/// Whether the count runs at one rate and is the same on all processors: so the architecture demands (Arm ARM, D12.1).
#[must_use]
pub fn has_invariant_tsc() -> bool {
    true
}
