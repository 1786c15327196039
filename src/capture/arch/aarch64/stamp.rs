//! The generic timer's virtual count.
//!
//! Reading it is not a memory access, so no memory barrier orders it, and a processor may read it early or late. Only behind
//! an `isb` is it read between its neighbours (Arm ARM, D12.2, "may be read speculatively"). Without an `isb`, two stamps of
//! one thread could be out of order.

use core::arch::asm;

/// Returns the count, read after every earlier instruction in program order. Stores before it may still be in flight.
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

/// Returns the count, read after every earlier load in program order is done.
///
/// An `isb` alone does not wait for a load whose value is unused, and neither does `dmb ishld` before it. The loads by which
/// an allocator took a block must come before the stamp. A hook has compared the block's address by then, and a branch on a
/// load's value, followed by an `isb`, waits for the load.
#[inline(always)]
#[must_use]
pub fn stamp_after_loads() -> u64 {
    stamp()
}

/// Executes a full barrier for memory accesses and stamps: all processors see earlier stores before a later stamp is taken,
/// and later loads are done after an earlier stamp.
#[inline(always)]
pub fn fence_and_stamps() {
    // SAFETY: barriers. `dsb` waits until all accesses before it are complete, which `dmb` does not.
    unsafe {
        asm!("isb", "dsb ish", "isb", options(nostack, preserves_flags));
    }
}

/// Returns whether the count runs at one rate and is the same on all processors, as the architecture demands (Arm ARM,
/// D12.1).
#[must_use]
pub fn has_invariant_tsc() -> bool {
    true
}
