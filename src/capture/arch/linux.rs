//! System calls without libc: no `errno`, no lock, no cancellation point, nothing that could call a hook again. What differs
//! between processors is in the `system` module of each.

use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;

use super::call;
#[cfg(test)]
use super::page_size;

const EAGAIN: isize = -11;
const EFAULT: isize = -14;

/// Turns the address that a mapping call returned into a pointer.
fn address(answer: isize) -> Option<NonNull<u8>> {
    // Error numbers are -4095 to -1; every other answer is an address.
    if (-4095..0).contains(&answer) {
        return None;
    }
    NonNull::new(answer as *mut u8)
}

/// Maps `bytes` (a multiple of [`page_size`](super::page_size)) of zeroed memory. Returns `None` if the kernel has none.
#[must_use]
pub fn map_pages(bytes: usize) -> Option<NonNull<u8>> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: a new anonymous mapping where the kernel likes touches no memory that anyone uses.
    address(unsafe { call(libc::SYS_mmap, [0, bytes, protection, flags, usize::MAX, 0]) })
}

/// Asks the kernel for huge pages behind a mapping. The kernel may have none; then nothing changes.
pub fn want_huge_pages(start: NonNull<u8>, bytes: usize) {
    let advice = libc::MADV_HUGEPAGE as usize;
    let arguments = [start.as_ptr() as usize, bytes, advice, 0, 0, 0];
    // SAFETY: whatever lies there, this advice does not change it.
    unsafe { call(libc::SYS_madvise, arguments) };
}

/// Unmaps memory.
///
/// # Safety
/// `start` and `bytes` are a range from [`map_pages`] or [`remap_pages`] that nobody uses any more.
pub unsafe fn unmap_pages(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's duty. It cannot fail for a whole mapping.
    unsafe {
        call(
            libc::SYS_munmap,
            [start.as_ptr() as usize, bytes, 0, 0, 0, 0],
        )
    };
}

/// Grows a mapping, and moves it if necessary. Returns `None`, and leaves the mapping as it was, if the kernel has no
/// memory.
///
/// # Safety
/// `start` and `old` are a range from [`map_pages`] or this function, and no pointer into it is used afterwards.
#[must_use]
pub unsafe fn remap_pages(start: NonNull<u8>, old: usize, new: usize) -> Option<NonNull<u8>> {
    let flags = libc::MREMAP_MAYMOVE as usize;
    // SAFETY: the caller's duty.
    address(unsafe {
        call(
            libc::SYS_mremap,
            [start.as_ptr() as usize, old, new, flags, 0, 0],
        )
    })
}

/// Returns whether the page of `address` can be read at this moment.
///
/// Asks the kernel to read a signal set at this address for an operation that does not exist. The kernel reads the set first
/// and then returns EINVAL, or EFAULT if it could not read. Abseil's `AddressIsReadable` and libunwind do the same. Seccomp
/// filters allow this call, because every thread start makes it.
#[must_use]
pub fn is_readable(address: u64) -> bool {
    const NO_SUCH_OPERATION: usize = !0;
    // The kernel does not read a null set at all. The word after it is in the same page.
    let set = (address & !7).max(8) as usize;
    // SAFETY: the operation is invalid, so no mask is changed and nothing is written.
    let answer = unsafe {
        call(
            libc::SYS_rt_sigprocmask,
            [NO_SUCH_OPERATION, set, 0, 8, 0, 0],
        )
    };
    answer != EFAULT
}

/// Returns the kernel's number of this thread.
#[must_use]
pub fn gettid() -> u32 {
    // SAFETY: takes nothing and always succeeds.
    unsafe { call(libc::SYS_gettid, [0; 6]) as u32 }
}

/// Returns the CPU time that the calling thread has used, in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let mut time = [0i64; 2];
    // SAFETY: the clock exists since Linux 2.6.12; the result, a `timespec`, goes to a live place of its size.
    unsafe {
        call(
            libc::SYS_clock_gettime,
            [
                libc::CLOCK_THREAD_CPUTIME_ID as usize,
                time.as_mut_ptr() as usize,
                0,
                0,
                0,
                0,
            ],
        )
    };
    time[0] as u64 * 1_000_000_000 + time[1] as u64
}

/// Returns the CPU time that the process's thread `tid` has used, in nanoseconds, or `None` if there is no such thread.
#[must_use]
pub fn cpu_ns_of(tid: u32) -> Option<u64> {
    let mut time = [0i64; 2];
    let arguments = [cpu_clock_of(tid), time.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: the result, a `timespec`, goes to a live place of its size.
    let answer = unsafe { call(libc::SYS_clock_gettime, arguments) };
    (answer == 0).then(|| time[0] as u64 * 1_000_000_000 + time[1] as u64)
}

/// Returns the kernel's number of a thread's CPU clock (`include/linux/posix-timers_types.h`: the thread's number inverted,
/// `CPUCLOCK_PERTHREAD_MASK`, `CPUCLOCK_SCHED`).
fn cpu_clock_of(tid: u32) -> usize {
    ((!(tid as i32) << 3) | 4 | 2) as usize
}

/// Makes a timer on the CPU time of the process's thread `tid`, which sends `signal` with `value` to that thread alone.
/// Returns the kernel's number of the timer.
///
/// # Errors
/// The kernel's error number: the thread does not exist, or there are too many timers.
pub fn create_cpu_timer(tid: u32, signal: i32, value: usize) -> Result<i32, i32> {
    // SAFETY: integers, and a pointer that may be null.
    let mut event: libc::sigevent = unsafe { core::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_notify_thread_id = tid as i32;
    event.sigev_signo = signal;
    event.sigev_value.sival_ptr = value as *mut _;
    let mut timer = 0i32;
    let (event, place) = (&raw const event as usize, &raw mut timer as usize);
    // SAFETY: the kernel reads one structure of its own layout, which libc's is, and writes one number.
    let answer = unsafe {
        call(
            libc::SYS_timer_create,
            [cpu_clock_of(tid), event, place, 0, 0, 0],
        )
    };
    match answer {
        0 => Ok(timer),
        error => Err(-error as i32),
    }
}

/// Starts a timer that sends its signal after `first` nanoseconds and then after each `interval`. 0 as `first` stops it.
/// Returns the nanoseconds that were left until its next signal.
pub fn set_timer(timer: i32, first: u64, interval: u64) -> u64 {
    let time = |nanoseconds: u64| {
        [
            (nanoseconds / 1_000_000_000) as i64,
            (nanoseconds % 1_000_000_000) as i64,
        ]
    };
    let (new, mut old) = ([time(interval), time(first)], [[0i64; 2]; 2]);
    let (new, old_place) = (new.as_ptr() as usize, old.as_mut_ptr() as usize);
    // SAFETY: reads one `itimerspec` (interval, then value) and writes one, both live; a timer that does not exist any
    // more is an error without effect.
    unsafe {
        call(
            libc::SYS_timer_settime,
            [timer as usize, 0, new, old_place, 0, 0],
        )
    };
    old[1][0] as u64 * 1_000_000_000 + old[1][1] as u64
}

/// Deletes a timer.
pub fn delete_timer(timer: i32) {
    // SAFETY: touches no memory; a timer that does not exist any more is an error without effect.
    unsafe { call(libc::SYS_timer_delete, [timer as usize, 0, 0, 0, 0, 0]) };
}

/// Returns whether this is the thread that the process began with.
#[must_use]
pub fn is_main_thread() -> bool {
    // SAFETY: takes nothing and always succeeds.
    let pid = unsafe { call(libc::SYS_getpid, [0; 6]) as u32 };
    pid == gettid()
}

/// Sleeps until [`futex_wake`] on the same word, at most `nanoseconds`, unless the word is not `expected`. May wake without
/// a reason. Returns `false` at once if the word had changed.
pub fn futex_wait(word: &AtomicU32, expected: u32, nanoseconds: u64) -> bool {
    let timeout = [
        (nanoseconds / 1_000_000_000) as i64,
        (nanoseconds % 1_000_000_000) as i64,
    ];
    let operation = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the word and the timeout (a `timespec`) outlive the call, which only reads them.
    let answer = unsafe {
        let word = word.as_ptr() as usize;
        let timeout = timeout.as_ptr() as usize;
        call(
            libc::SYS_futex,
            [word, operation, expected as usize, timeout, 0, 0],
        )
    };
    answer != EAGAIN
}

/// Wakes up to `sleepers` threads that sleep on the word.
pub fn futex_wake(word: &AtomicU32, sleepers: u32) {
    let operation = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the kernel only uses the word's address as a key.
    unsafe {
        let word = word.as_ptr() as usize;
        call(
            libc::SYS_futex,
            [word, operation, sleepers as usize, 0, 0, 0],
        )
    };
}

/// Enables [`membarrier`] in this process. Returns `false` if the kernel has no such call.
#[must_use]
pub fn register_membarrier() -> bool {
    const REGISTER_PRIVATE_EXPEDITED: usize = 1 << 4;
    // SAFETY: changes nothing but a flag of the process.
    unsafe {
        call(
            libc::SYS_membarrier,
            [REGISTER_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0],
        ) == 0
    }
}

/// Makes every running thread of the process execute a full memory barrier, so that the threads need none of their own.
/// Returns `false` if [`register_membarrier`] has not succeeded before.
#[must_use]
pub fn membarrier() -> bool {
    const PRIVATE_EXPEDITED: usize = 1 << 3;
    // SAFETY: touches no memory.
    unsafe { call(libc::SYS_membarrier, [PRIVATE_EXPEDITED, 0, 0, 0, 0, 0]) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_read_permission_is_not_readable_and_a_stack_is() {
        let here = 0u64;
        assert!(is_readable(&raw const here as u64));
        assert!(!is_readable(0));
        assert!(!is_readable(8 << 12));
        let size = page_size();
        let page = map_pages(2 * size).unwrap();
        let second = page.as_ptr() as u64 + size as u64;
        assert!(is_readable(second));
        // SAFETY: the page was mapped just now and nothing lies in it.
        unsafe { assert_eq!(libc::mprotect(second as *mut _, size, libc::PROT_NONE), 0) };
        assert!(!is_readable(second));
        assert!(is_readable(second - 8));
        // SAFETY: the whole mapping, which nobody uses.
        unsafe { unmap_pages(page, 2 * size) };
        assert!(!is_readable(second - 8));
    }

    #[test]
    fn the_first_thread_is_known_from_others() {
        let (main, tid) = std::thread::spawn(|| (is_main_thread(), gettid()))
            .join()
            .unwrap();
        assert!(!main);
        assert_ne!(tid, gettid());
    }

    #[test]
    fn a_futex_does_not_sleep_on_a_word_that_has_changed() {
        let word = AtomicU32::new(3);
        assert!(!futex_wait(&word, 4, u64::MAX / 2));
        assert!(futex_wait(&word, 3, 1));
        futex_wake(&word, 1);
    }

    #[test]
    fn the_barrier_works_once_it_is_registered() {
        assert!(register_membarrier());
        assert!(membarrier());
    }
}
