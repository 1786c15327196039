//! What a system call, a thread and a page are here.

use core::arch::asm;

/// A raw system call: the kernel's answer, negative error numbers included.
///
/// # Safety
/// As the call itself demands.
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

/// The address of this thread's control block, which every libc stores at its own beginning (psABI, TLS variant II).
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

/// An address from a stack word: return addresses are not signed here.
#[inline(always)]
#[must_use]
pub(crate) const fn strip(word: u64) -> u64 {
    word
}

/// Bytes in a page.
#[inline(always)]
#[must_use]
pub const fn page_size() -> usize {
    super::PAGE
}
