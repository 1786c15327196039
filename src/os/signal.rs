//! Control over the signals that a thread receives.

use crate::capture::arch;

/// Guard that blocks every signal for the calling thread, and so for the threads that it starts.
#[derive(Debug)]
pub(crate) struct BlockSignals {
    before: libc::sigset_t,
}

impl BlockSignals {
    /// Blocks all signals.
    pub(crate) fn all() -> BlockSignals {
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

/// Guard that lets the calling thread receive a signal that it had blocked. Must be dropped on the same thread; on another
/// one it restores nothing.
#[derive(Debug)]
pub(crate) struct Unblocked {
    signal: i32,
    of: u32,
}

impl Unblocked {
    /// Unblocks `signal`. Returns `None` if it is not blocked.
    pub(crate) fn new(signal: i32) -> Option<Unblocked> {
        let was_blocked = change_mask(libc::SIG_UNBLOCK, signal);
        // Made only if the signal was blocked: dropping the guard blocks it.
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

/// Changes the mask for one signal. Returns whether the signal was blocked before.
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
