//! The call stack of a thread, from inside `malloc`: exact, without frame pointers, at tens of nanoseconds.
//!
//! [`ThreadUnwinder::capture`] walks from the leaf outward by the rules that `modules` has compiled ahead, and stops
//! as soon as it meets the stack of its last capture: what was read to unwind that is checked to be unchanged (two
//! loads and a compare a frame) instead of being unwound again. See `docs/how-it-works.md`.
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

/// The most frames of a call stack that are recorded: one that is not deeper is whole.
pub const MAX_DEPTH: usize = 4096;

/// Of a deeper stack at least so many frames are recorded, the innermost ones.
pub const LEAST_DEPTH: usize = 2048;

/// Addresses of the nodes that mark a stack whose root is missing: below any code, directly below the empty stack.
pub mod mark {
    /// The stack was too deep: its outer frames are cut.
    pub const CUT: u64 = 1;
    /// The outer frames could not be found.
    pub const INCOMPLETE: u64 = 2;
    /// The code ran on a stack that is not the thread's own.
    pub const FOREIGN: u64 = 3;
    /// Not a thread's: the collector's, for stacks that it has no memory to tell apart.
    pub const OTHER: u64 = 4;
}

/// What captures of all threads could not do, since the process began.
pub fn counts() -> StackCounts {
    StackCounts {
        cut: CUT.load(Ordering::Relaxed),
        incomplete: INCOMPLETE.load(Ordering::Relaxed),
    }
}

static CUT: AtomicU64 = AtomicU64::new(0);
static INCOMPLETE: AtomicU64 = AtomicU64::new(0);

/// What captures could not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StackCounts {
    /// Captures whose stack was deeper than [`MAX_DEPTH`] and was cut.
    pub cut: u64,
    /// Captures whose outer frames could not be found.
    pub incomplete: u64,
}
