//! The barrier between hooks and the collector, and the few calls of the system that need no speed.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence};

use super::shared::fence;
use super::{arch, clock};

/// The kernel makes every running thread pass a barrier when we ask; if not, hooks must pass one themselves.
static HAS_MEMBARRIER: AtomicBool = AtomicBool::new(false);

/// Registers for `membarrier`. Called once, before the first session.
pub fn prepare() {
    HAS_MEMBARRIER.store(arch::register_membarrier(), Ordering::SeqCst);
}

/// The hooks' side of the barrier: free where the collector's side does the work. It orders what a hook writes before
/// with the stamp that it takes behind.
#[inline(always)]
pub fn light_barrier() {
    if HAS_MEMBARRIER.load(Ordering::Relaxed) {
        compiler_fence(Ordering::SeqCst);
    } else {
        arch::fence_and_stamps();
    }
}

/// The collector's side: when it returns, every other thread has passed a full barrier since it was called. A stamp
/// that the caller took before is older than that barrier.
pub fn heavy_barrier() {
    arch::fence_and_stamps();
    if HAS_MEMBARRIER.load(Ordering::Relaxed) && !arch::membarrier() {
        do_without_membarrier();
    }
    fence(Ordering::SeqCst);
}

/// The kernel refuses what it granted when the process registered: a seccomp filter has come. From now on hooks pass a
/// barrier themselves. Those that did not know that yet are waited for: what they wrote is visible after a tiny part of
/// that time, since a processor's store buffer drains by itself, and a thread that was interrupted has passed a barrier.
#[cold]
fn do_without_membarrier() {
    const LONG_ENOUGH_MS: u64 = 10;
    HAS_MEMBARRIER.store(false, Ordering::SeqCst);
    let since = clock::milliseconds();
    let nobody = AtomicU32::new(0);
    while clock::milliseconds() - since <= LONG_ENOUGH_MS {
        arch::futex_wait(&nobody, 0, LONG_ENOUGH_MS * 1_000_000);
    }
}

/// Whether the kernel makes every running thread pass a barrier when we ask.
#[must_use]
pub fn has_membarrier() -> bool {
    HAS_MEMBARRIER.load(Ordering::Relaxed)
}

/// The calling thread's name, zero padded.
pub fn thread_name() -> [u8; 16] {
    let mut name = [0; 16];
    #[cfg(target_os = "linux")]
    // SAFETY: PR_GET_NAME writes at most 16 bytes to the buffer.
    unsafe {
        libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr());
    }
    #[cfg(not(target_os = "linux"))]
    // SAFETY: the buffer's own length is told; the last byte is left zero.
    unsafe {
        libc::pthread_getname_np(libc::pthread_self(), name.as_mut_ptr().cast(), name.len());
    }
    name
}

/// CPU time that the calling thread has used, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock exists on Linux; the result goes to a live place.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Bytes of a page.
pub fn page_size() -> u64 {
    // SAFETY: no precondition.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Waits until nobody else holds the lock of an open file, and takes it; it is given up when the file is closed. False:
/// `errno` says why.
pub fn lock_file(descriptor: core::ffi::c_int) -> bool {
    // SAFETY: a descriptor that is not open is refused.
    unsafe { libc::flock(descriptor, libc::LOCK_EX) == 0 }
}

/// Takes the lock of an open file if nobody else has it; it is given up when the last descriptor of this opening is closed,
/// or with the process. False: `errno` says why.
pub fn try_lock_file(descriptor: core::ffi::c_int) -> bool {
    // SAFETY: a descriptor that is not open is refused.
    unsafe { libc::flock(descriptor, libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Whether other machines, or other kernels on this one, may use the same files and not see this kernel's locks.
#[must_use]
pub fn is_shared_between_kernels(descriptor: core::ffi::c_int) -> bool {
    #[cfg(target_os = "linux")]
    {
        /// statfs(2): NFS, SMB, CIFS, SMB2, FUSE (virtiofs too), 9P, Ceph, AFS, OCFS2, GFS2, Lustre.
        const SHARED: [u64; 11] = [
            0x6969,
            0x517b,
            0xff53_4d42,
            0xfe53_4d42,
            0x6573_5546,
            0x0102_1997,
            0x00c3_6400,
            0x5346_414f,
            0x7461_636f,
            0x0116_1970,
            0x0bd0_0bd0,
        ];
        // SAFETY: a structure of numbers may be all zeros.
        let mut about: libc::statfs = unsafe { core::mem::zeroed() };
        // SAFETY: a descriptor that is not open is refused; the structure is live for the call.
        let known = unsafe { libc::fstatfs(descriptor, &raw mut about) } == 0;
        !known || SHARED.contains(&(about.f_type as u64 & 0xffff_ffff))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = descriptor;
        true
    }
}

/// Bytes that a file of this process may have (`RLIMIT_FSIZE`); `u64::MAX` where there is no limit.
#[must_use]
pub fn file_size_limit() -> u64 {
    let mut found = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: a limit that exists and a live place for it.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut found) };
    // The system's own word for "none" is not the largest number everywhere.
    match found.rlim_cur {
        libc::RLIM_INFINITY => u64::MAX,
        limit => limit,
    }
}

/// Has `last` called when the process exits by `exit` or the end of `main`. False if the system has no place left.
pub fn at_exit(last: extern "C" fn()) -> bool {
    // SAFETY: a function that may be called at any time; this library is part of the program and is not unloaded before.
    unsafe { libc::atexit(last) == 0 }
}

/// Whether the process may map less than the machine could give it.
#[must_use]
pub fn memory_is_limited() -> bool {
    mapping_limits().iter().any(Option::is_some)
}

/// How many bytes the process may map (`RLIMIT_AS`), and of data (`RLIMIT_DATA`); `None` where there is no limit.
#[must_use]
pub fn mapping_limits() -> [Option<u64>; 2] {
    [libc::RLIMIT_AS, libc::RLIMIT_DATA].map(|limit| {
        let mut found = libc::rlimit {
            rlim_cur: libc::RLIM_INFINITY,
            rlim_max: libc::RLIM_INFINITY,
        };
        // SAFETY: a limit that exists and a live place for it.
        unsafe { libc::getrlimit(limit, &raw mut found) };
        (found.rlim_cur != libc::RLIM_INFINITY).then_some(found.rlim_cur)
    })
}

/// Ends the process at once, without destructors or exit handlers: they may want what there is none of.
pub fn exit_at_once(code: i32) -> ! {
    // SAFETY: no precondition.
    unsafe { libc::_exit(code) }
}

/// Bytes written to the socket of this descriptor that its other end has not taken. `None` where the system does not tell.
#[must_use]
pub fn unsent(socket: i32) -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        let mut bytes: libc::c_int = 0;
        // SAFETY: TIOCOUTQ (of a socket: SIOCOUTQ, the same number) writes one int to the live place it is given; a
        // descriptor is a number, and the kernel refuses one that is not a socket's.
        let told = unsafe { libc::ioctl(socket, libc::TIOCOUTQ, &raw mut bytes) };
        (told == 0).then(|| u32::try_from(bytes).ok())?
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = socket;
        None
    }
}

/// Has the file system set aside `bytes` for the file of this descriptor. Whether it did.
#[must_use]
pub fn set_aside(file: i32, bytes: u64) -> bool {
    let Ok(bytes) = i64::try_from(bytes) else {
        return false;
    };
    #[cfg(target_os = "linux")]
    // SAFETY: a descriptor is a number; what it is not, the kernel refuses. Not `posix_fallocate`, which would write all
    // of it where the file system cannot do it.
    return unsafe { libc::fallocate(file, 0, 0, bytes) } == 0;
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, bytes);
        false
    }
}

/// Blocks every signal for the calling thread, and so for threads it starts, until dropped.
#[derive(Debug)]
pub struct BlockSignals {
    before: libc::sigset_t,
}

impl BlockSignals {
    /// Blocks all of them.
    pub fn all() -> BlockSignals {
        // SAFETY: a signal set may be all zeros; both sets are live for the calls.
        unsafe {
            let mut all: libc::sigset_t = core::mem::zeroed();
            let mut before: libc::sigset_t = core::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            BlockSignals { before }
        }
    }
}

impl Drop for BlockSignals {
    fn drop(&mut self) {
        // SAFETY: `before` was filled in by the call above.
        unsafe {
            libc::pthread_sigmask(
                libc::SIG_SETMASK,
                &raw const self.before,
                core::ptr::null_mut(),
            )
        };
    }
}

/// Lets the calling thread receive a signal that it had blocked, until dropped (on the same thread; elsewhere nothing is
/// put back).
#[derive(Debug)]
pub(crate) struct Unblocked {
    signal: i32,
    of: u32,
}

impl Unblocked {
    /// `None` if the signal is not blocked.
    pub(crate) fn new(signal: i32) -> Option<Unblocked> {
        let was_blocked = change_mask(libc::SIG_UNBLOCK, signal);
        // Made only where it was blocked: dropping one blocks it.
        was_blocked.then(|| Unblocked {
            signal,
            of: arch::gettid(),
        })
    }
}

impl Drop for Unblocked {
    fn drop(&mut self) {
        if arch::gettid() == self.of {
            change_mask(libc::SIG_BLOCK, self.signal);
        }
    }
}

/// Whether the signal was blocked before.
fn change_mask(how: i32, signal: i32) -> bool {
    // SAFETY: a signal set may be all zeros; both sets are live for the calls.
    unsafe {
        let mut set: libc::sigset_t = core::mem::zeroed();
        let mut before: libc::sigset_t = core::mem::zeroed();
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(how, &raw const set, &raw mut before);
        libc::sigismember(&raw const before, signal) == 1
    }
}
