//! System calls, thread pointer and page size of x86-64.

use core::arch::asm;

/// Makes a raw system call. Returns the kernel's answer, which is a negative number for an error.
///
/// # Safety
/// The same as for the call itself.
#[inline(always)]
pub(in super::super) unsafe fn call(number: i64, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let answer;
    // SAFETY: the kernel's calling convention for x86-64; it clobbers rcx and r11 and nothing else. What the call does
    // to memory is the caller's duty.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

/// Returns the address of this thread's control block, which every libc stores at its own beginning (psABI, TLS variant II).
#[inline]
#[must_use]
pub fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: `fs:0` is readable on every thread that a libc has set up, and Rust code runs on no other.
    unsafe {
        asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    pointer
}

/// Returns an address from a stack word: return addresses are not signed here.
#[inline(always)]
#[must_use]
pub(crate) const fn strip(word: u64) -> u64 {
    word
}

/// Returns the bytes in a page.
#[inline(always)]
#[must_use]
pub const fn page_size() -> usize {
    super::PAGE
}
