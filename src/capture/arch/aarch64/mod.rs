//! AArch64 Linux.

mod pointer;
mod registers;
mod rule;
mod stamp;
mod system;
#[cfg(test)]
mod tests;

pub(crate) use pointer::{interrupted_link, is_signal_return, prepare, strip};
pub(crate) use registers::interrupted;
pub use registers::registers_here;
pub use rule::Rule;
pub use stamp::{fence_and_stamps, has_invariant_tsc, stamp, stamp_after_loads};
pub(super) use system::call;
pub use system::{page_size, thread_pointer};

/// Bytes in the smallest page that a kernel may have been built for; [`page_size`] is that of the running kernel.
pub const PAGE: usize = 4096;

/// Bytes below the stack pointer that a leaf function may use: none (AAPCS64, 6.4.5.1; Linux adds none).
pub(crate) const RED_ZONE: u64 = 0;

/// Set: a function's return address is in a register until the function saves it, and a chain of frame records does not say
/// where the frames end.
pub(crate) const HAS_LINK_REGISTER: bool = true;

/// Returns the bytes between a thread's stack and the target of its thread pointer: the libc's own words of the thread, 200
/// bytes in musl and more in others. The program's thread-local variables lie above (TLS variant I).
pub(crate) const fn below_control_block(_program: u64) -> u64 {
    192
}

/// Alignment of a frame record: LLVM puts it at odd words too.
pub(crate) const FRAME_POINTER_ALIGNMENT: u64 = 8;

/// DWARF's number of `x29` (AADWARF64, section 4.1).
pub const DWARF_FRAME_POINTER: u16 = 29;

/// DWARF's number of `x30`, which is the return address column.
pub const DWARF_RETURN_ADDRESS: u16 = 30;
