//! The barrier between hooks and the collector, and the calling thread's name.

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
