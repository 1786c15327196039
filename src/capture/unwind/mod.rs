//! The call stack of a thread, taken inside `malloc`: exact, without frame pointers, in tens of nanoseconds.
//!
//! [`ThreadUnwinder::capture`] walks from the leaf outward by the rules that `modules` has compiled earlier. It stops as
//! soon as it meets the stack of its last capture: from there on, the walk checks that the words that were read are
//! unchanged (two loads and a compare per frame) instead of unwinding again. See `docs/how-it-works.md`.
//!
//! Nothing here allocates, locks or calls libc. Only memory of the current stack is read.

#[cfg(heapray_native)]
mod kept;
#[cfg(heapray_native)]
mod rules;
#[cfg(heapray_native)]
mod stack;
#[cfg(heapray_native)]
mod start;
#[cfg(heapray_native)]
mod thread;
#[cfg(heapray_native)]
mod walk;

#[cfg(heapray_native)]
pub(crate) use stack::prepare;
#[cfg(heapray_native)]
pub use thread::ThreadUnwinder;

#[cfg(not(heapray_native))]
mod portable;
#[cfg(not(heapray_native))]
pub use portable::ThreadUnwinder;

use core::sync::atomic::{AtomicU64, Ordering};

/// Largest number of frames of a call stack that is recorded whole.
pub const MAX_DEPTH: usize = 4096;

/// Number of innermost frames of a deeper stack that are always recorded.
pub const LEAST_DEPTH: usize = 2048;

/// Addresses of the nodes that mark a stack without its root. They are below any code, directly below the empty stack.
pub mod mark {
    /// The stack was too deep: its outer frames are cut.
    pub const CUT: u64 = 1;
    /// The outer frames could not be found.
    pub const INCOMPLETE: u64 = 2;
    /// The code ran on a stack that is not the thread's own.
    pub const FOREIGN: u64 = 3;
    /// Mark that the collector sets, for stacks that it has no memory to tell apart.
    pub const OTHER: u64 = 4;
}

/// Returns the counts of incomplete captures of all threads since the process began.
pub fn counts() -> StackCounts {
    StackCounts {
        cut: CUT.load(Ordering::Relaxed),
        incomplete: INCOMPLETE.load(Ordering::Relaxed),
    }
}

static CUT: AtomicU64 = AtomicU64::new(0);
static INCOMPLETE: AtomicU64 = AtomicU64::new(0);

/// Counts of incomplete captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StackCounts {
    /// Captures whose stack was deeper than [`MAX_DEPTH`] and was cut.
    pub cut: u64,
    /// Captures whose outer frames could not be found.
    pub incomplete: u64,
}
