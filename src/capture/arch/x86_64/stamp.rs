//! The time stamp counter.

use core::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};
use core::sync::atomic::{Ordering, fence};

/// Returns the time stamp counter. Loads and stores around it may still be in flight.
#[inline(always)]
#[must_use]
pub fn stamp() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; Linux lets user code run it (a process that forbids it to
    // itself with PR_SET_TSC could not run glibc's own clock either).
    unsafe { _rdtsc() }
}

/// Returns the time stamp counter, read after every earlier load in program order is done.
#[inline(always)]
#[must_use]
pub fn stamp_after_loads() -> u64 {
    // SAFETY: as in `stamp`; `lfence` is part of SSE2, which x86-64 includes.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// Executes a full barrier, where the kernel does not make threads execute one.
#[inline(always)]
pub fn fence_and_stamps() {
    fence(Ordering::SeqCst);
}

/// Returns whether the counter runs at one rate on all processors, asleep or awake (Intel SDM 3B, 18.17.1; CPUID 80000007H,
/// EDX bit 8).
#[must_use]
pub fn has_invariant_tsc() -> bool {
    // A function of the standard library that newer compilers call safe.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has this instruction, and leaf 0x8000_0007 is asked for only if it exists.
    unsafe {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
    }
}
