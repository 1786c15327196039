//! x86-64 Linux.

mod registers;
mod rule;
mod signal;
mod stamp;
mod system;

pub use registers::registers_here;
pub use rule::Rule;
pub(crate) use signal::{interrupted, interrupted_link, is_signal_return, prepare};
pub use stamp::{fence_and_stamps, has_invariant_tsc, stamp, stamp_after_loads};
pub(super) use system::call;
pub(crate) use system::strip;
pub use system::{page_size, thread_pointer};

/// Bytes in a page.
pub const PAGE: usize = 4096;

/// Bytes below the stack pointer that a leaf function may use (psABI 3.2.2).
pub(crate) const RED_ZONE: u64 = 128;

/// Not set: a function's return address lies on the stack from its first instruction on, and the frame pointer leads to it.
pub(crate) const HAS_LINK_REGISTER: bool = false;

/// Returns the bytes between a thread's stack and its control block: the program's thread-local variables, `program` bytes,
/// lie directly below the control block (TLS variant II).
pub(crate) const fn below_control_block(program: u64) -> u64 {
    program
}

/// Alignment of `rbp` after `push rbp; mov rbp, rsp` at a function's entry (psABI 3.2.2).
pub(crate) const FRAME_POINTER_ALIGNMENT: u64 = 16;

/// DWARF's number of `rbp` (psABI, figure 3.36).
pub const DWARF_FRAME_POINTER: u16 = 6;

/// DWARF's number of the return address column (psABI, figure 3.36).
pub const DWARF_RETURN_ADDRESS: u16 = 16;
