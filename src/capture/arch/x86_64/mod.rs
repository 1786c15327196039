//! x86-64 Linux.

mod registers;
mod rule;
mod stamp;
mod system;

pub use registers::registers_here;
pub use rule::Rule;
pub use stamp::{has_invariant_tsc, stamp, stamp_after_loads};
pub use system::{
    futex_wait, futex_wake, gettid, is_main_thread, is_readable, map_pages, membarrier,
    register_membarrier, remap_pages, thread_pointer, unmap_pages,
};

/// Bytes in a page.
pub const PAGE: usize = 4096;

/// DWARF's number of `rbp` (psABI, figure 3.36).
pub const DWARF_FRAME_POINTER: u16 = 6;

/// DWARF's number of the return address column (psABI, figure 3.36).
pub const DWARF_RETURN_ADDRESS: u16 = 16;
