//! System calls, thread pointer and page size of AArch64.

use core::arch::asm;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Makes a raw system call. Returns the kernel's answer, which is a negative number for an error.
///
/// # Safety
/// The same as for the call itself.
#[inline(always)]
pub(in super::super) unsafe fn call(number: i64, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let answer;
    // SAFETY: the kernel's calling convention for AArch64; it keeps every register but x0. What the call does to memory
    // is the caller's duty.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a as isize => answer,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    answer
}

/// Returns the address of this thread's control block, which every libc puts above the stack that it makes (TLS variant I:
/// the libc's own words lie directly below it, the program's above).
#[inline]
#[must_use]
pub fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: reads a register.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}

/// Returns the bytes in a page: 4, 16 or 64 KiB, as the kernel was built.
#[inline]
#[must_use]
pub fn page_size() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    match SIZE.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: looks up a number in the auxiliary vector, without a lock.
            let size = unsafe { libc::getauxval(libc::AT_PAGESZ) } as usize;
            SIZE.store(size, Ordering::Relaxed);
            size
        }
        size => size,
    }
}
