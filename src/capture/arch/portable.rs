//! Any Unix, through libc. It is slower than the other architectures and unwinds by frame pointers only.

use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
#[cfg(target_os = "linux")]
use core::sync::atomic::Ordering;

use super::Registers;

/// Returns the bytes in a page, or a multiple on systems with smaller pages.
#[must_use]
pub const fn page_size() -> usize {
    16 << 10
}

/// Unwind rule. There are none here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Rule(u32);

impl Rule {
    /// No unwind information.
    pub const NONE: Rule = Rule(0);

    /// Returns the word of this rule, for tables.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Returns the rule of a word that [`to_bits`](Rule::to_bits) returned.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Rule {
        Rule(bits)
    }
}

/// Returns the registers with which a walk by frame pointers can begin in the calling function. Its own return address is
/// not known (0).
#[inline(always)]
#[must_use]
pub fn registers_here() -> Registers {
    let here = 0u8;
    let bp: u64;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mov {}, rbp", out(reg) bp, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mov {}, x29", out(reg) bp, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        bp = 0;
    }
    Registers {
        return_address: 0,
        sp: (&raw const here) as u64 & !7,
        bp,
    }
}

/// Returns the monotonic clock in nanoseconds, which orders events as a time stamp counter would.
#[inline]
#[must_use]
pub fn stamp() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: fills the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns a [`stamp`] that is taken after every load before it.
#[inline]
#[must_use]
pub fn stamp_after_loads() -> u64 {
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
    stamp()
}

/// Returns `None`: this system does not report other threads' CPU time.
#[must_use]
pub fn cpu_ns_of(_tid: u32) -> Option<u64> {
    None
}

/// Executes a full barrier.
#[inline]
pub fn fence_and_stamps() {
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
}

/// Returns whether [`stamp`] runs at one rate on all processors, as the monotonic clock does.
#[must_use]
pub fn has_invariant_tsc() -> bool {
    true
}

/// Does nothing: huge pages are the system's own matter.
pub fn want_huge_pages(_: NonNull<u8>, _: usize) {}

/// Maps `bytes` (a multiple of [`page_size`]) of zeroed memory. Returns `None` if the kernel has none.
#[must_use]
pub fn map_pages(bytes: usize) -> Option<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
    // SAFETY: a new anonymous mapping where the kernel likes touches no memory that anyone uses.
    let start = unsafe { libc::mmap(core::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        None
    } else {
        NonNull::new(start.cast())
    }
}

/// Unmaps memory.
///
/// # Safety
/// `start` and `bytes` are a range from [`map_pages`] or [`remap_pages`] that nobody uses any more.
pub unsafe fn unmap_pages(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's duty.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}

/// Grows a mapping by moving it. Returns `None`, and leaves the mapping as it was, if the kernel has no memory.
///
/// # Safety
/// `start` and `old` are a range from [`map_pages`] or this function, and no pointer into it is used afterwards.
#[must_use]
pub unsafe fn remap_pages(start: NonNull<u8>, old: usize, new: usize) -> Option<NonNull<u8>> {
    let moved = map_pages(new)?;
    // SAFETY: both ranges are mapped and do not overlap; the old one is the caller's, who gives it up.
    unsafe {
        moved.copy_from_nonoverlapping(start, old.min(new));
        unmap_pages(start, old);
    }
    Some(moved)
}

/// Returns whether the page of `address` can be read at this moment, if the system can tell; see the x86-64 version.
#[must_use]
pub fn is_readable(address: u64) -> bool {
    #[cfg(target_os = "linux")]
    {
        const NO_SUCH_OPERATION: i64 = -1;
        let set = (address & !7).max(8);
        // SAFETY: the operation is invalid, so no mask is changed and nothing is written.
        let answer =
            unsafe { libc::syscall(libc::SYS_rt_sigprocmask, NO_SUCH_OPERATION, set, 0, 8) };
        answer == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = address;
        false
    }
}

/// Returns the system's number of this thread.
#[must_use]
pub fn gettid() -> u32 {
    #[cfg(target_os = "linux")]
    // SAFETY: takes nothing and always succeeds.
    unsafe {
        libc::syscall(libc::SYS_gettid) as u32
    }
    #[cfg(not(target_os = "linux"))]
    // SAFETY: takes nothing and always succeeds. Not the kernel's number, but one of its own for each thread.
    unsafe {
        libc::pthread_self() as usize as u32
    }
}

/// Sleeps until [`futex_wake`] on the same word, no longer than `nanoseconds`, unless the word is not `expected`.
/// May wake without reason. Returns at once with `false` if the word had changed.
pub fn futex_wait(word: &AtomicU32, expected: u32, nanoseconds: u64) -> bool {
    #[cfg(target_os = "linux")]
    {
        let timeout = libc::timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as _,
            tv_nsec: (nanoseconds % 1_000_000_000) as _,
        };
        if word.load(Ordering::Acquire) != expected {
            return false;
        }
        let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word and the timeout outlive the call, which only reads them.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                operation,
                expected,
                &raw const timeout,
            )
        };
        true
    }
    #[cfg(not(target_os = "linux"))]
    {
        const MOST: u64 = 1_000_000;
        if word.load(core::sync::atomic::Ordering::Acquire) != expected {
            return false;
        }
        let nap = libc::timespec {
            tv_sec: 0,
            tv_nsec: nanoseconds.min(MOST) as _,
        };
        // SAFETY: reads the structure.
        unsafe { libc::nanosleep(&nap, core::ptr::null_mut()) };
        true
    }
}

/// Wakes up to `sleepers` threads that sleep on the word.
pub fn futex_wake(word: &AtomicU32, sleepers: u32) {
    #[cfg(target_os = "linux")]
    {
        let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the kernel only uses the word's address as a key.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, sleepers) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (word, sleepers);
}

/// Returns the CPU time that the calling thread has used, in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the result goes to a live place; where the clock is unknown, nothing is written.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns `false`: this system has no [`membarrier`].
#[must_use]
pub fn register_membarrier() -> bool {
    false
}

/// Returns `false`: this system has no such call.
#[must_use]
pub fn membarrier() -> bool {
    false
}
