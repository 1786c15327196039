//! The barrier between hooks and the collector, and the calling thread's name.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence};

use super::shared::fence;
use super::{arch, clock};

/// Set if the kernel can make every running thread execute a barrier. If not, hooks execute one themselves.
static HAS_MEMBARRIER: AtomicBool = AtomicBool::new(false);

/// Registers for `membarrier`. Called once, before the first session.
pub fn prepare() {
    HAS_MEMBARRIER.store(arch::register_membarrier(), Ordering::SeqCst);
}

/// Executes the hooks' side of the barrier, which is free where the collector's side does the work. It orders a hook's
/// earlier writes before the stamp that it takes later.
#[inline(always)]
pub fn light_barrier() {
    if HAS_MEMBARRIER.load(Ordering::Relaxed) {
        compiler_fence(Ordering::SeqCst);
    } else {
        arch::fence_and_stamps();
    }
}

/// Executes the collector's side: when it returns, every other thread has executed a full barrier since the call. A stamp
/// that the caller took before is older than that barrier.
pub fn heavy_barrier() {
    arch::fence_and_stamps();
    if HAS_MEMBARRIER.load(Ordering::Relaxed) && !arch::membarrier() {
        do_without_membarrier();
    }
    fence(Ordering::SeqCst);
}

/// Handles that the kernel refuses what it granted at registration, because a seccomp filter was added. From now on hooks
/// execute a barrier themselves. The sleep covers hooks that do not know that yet: their writes are visible after a tiny
/// part of that time, since a processor's store buffer drains by itself, and an interrupted thread has executed a barrier.
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

/// Returns whether the kernel can make every running thread execute a barrier.
#[must_use]
pub fn has_membarrier() -> bool {
    HAS_MEMBARRIER.load(Ordering::Relaxed)
}

/// Returns the calling thread's name, padded with zeros.
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
