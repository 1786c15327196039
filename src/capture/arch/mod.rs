//! Everything that depends on the processor or the kernel's interface: register names, unwind rules and their
//! evaluation, the time stamp counter, raw system calls.
//!
//! Each architecture is a file or a folder, all with the same names, and is chosen here. `portable` compiles anywhere and is
//! used where nothing better exists, or with `--cfg heapray_portable`.

#[cfg(all(heapray_native, target_arch = "x86_64"))]
mod x86_64;
#[cfg(all(heapray_native, target_arch = "x86_64"))]
pub use x86_64::*;

#[cfg(all(heapray_native, target_arch = "aarch64"))]
mod aarch64;
#[cfg(all(heapray_native, target_arch = "aarch64"))]
pub use aarch64::*;

/// On other processors only the pure code of this module is compiled, for its tests.
#[cfg(all(test, not(all(heapray_native, target_arch = "aarch64"))))]
#[allow(dead_code, unreachable_pub)] // used on AArch64
mod aarch64 {
    mod pointer;
    mod rule;
    mod tests;
}

#[cfg(heapray_native)]
mod linux;
#[cfg(heapray_native)]
pub use linux::{
    cpu_ns_of, create_cpu_timer, delete_timer, futex_wait, futex_wake, gettid, is_main_thread,
    is_readable, map_pages, membarrier, register_membarrier, remap_pages, set_timer, thread_cpu_ns,
    unmap_pages, want_huge_pages,
};

#[cfg(not(heapray_native))]
mod portable;
#[cfg(not(heapray_native))]
pub use portable::*;

/// Tells the processor to load the beginning of `value` into its cache soon. Does not wait for it.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch may be of any address, and nothing that the program can see is read or written.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _: &T = value;
}

/// Registers with which a call stack begins: the state of the caller at the moment of the return to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Registers {
    /// The address at which the caller goes on.
    pub return_address: u64,
    /// The caller's stack pointer after the return: the CFA of the function that it called.
    pub sp: u64,
    /// The caller's frame pointer register, with any content.
    pub bp: u64,
}

/// Registers of code that a signal has interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted {
    /// The code's own registers; `return_address` is the instruction that was to run next.
    pub registers: Registers,
    /// The link register, if the processor has one.
    pub link: Option<u64>,
}

/// Row of a module's call frame information, in DWARF's terms (DWARF 5, section 6.4.1).
#[derive(Debug, Clone, Copy)]
pub struct DwarfRow<'a> {
    /// Rule of the canonical frame address.
    pub cfa: DwarfCfa<'a>,
    /// Place of the caller's frame pointer register.
    pub frame_pointer: DwarfPlace<'a>,
    /// Place of the return address.
    pub return_address: DwarfPlace<'a>,
    /// The frame belongs to a signal trampoline (augmentation `S`): its caller was interrupted, it called nothing.
    pub is_signal_frame: bool,
}

/// Ways to compute a canonical frame address.
#[derive(Debug, Clone, Copy)]
pub enum DwarfCfa<'a> {
    /// A register's value and an offset.
    Register {
        /// DWARF's number of the register.
        number: u16,
        /// Bytes to add to it.
        offset: i64,
    },
    /// The value of this DWARF expression.
    Expression(&'a [u8]),
}

/// Place of a caller's register.
#[derive(Debug, Clone, Copy)]
pub enum DwarfPlace<'a> {
    /// The row does not say.
    Unspecified,
    /// Lost, as the row says. For the return address, this marks an outermost frame.
    Undefined,
    /// Still in the register.
    Unchanged,
    /// In memory, at CFA plus this offset.
    AtCfa(i64),
    /// In memory, at the address that this DWARF expression computes.
    AtExpression(&'a [u8]),
    /// Anywhere else.
    Elsewhere,
}

/// Stack memory that a step of the walk may read.
#[cfg(any(test, heapray_native))]
pub(crate) trait StackSlots {
    /// Returns the word at `address`, or `None` if it is not aligned or not known to be readable.
    fn read(&mut self, address: u64) -> Option<u64>;
}

/// Reason why a walk cannot take another step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg(any(test, heapray_native))]
pub(crate) enum Stop {
    /// The frame is the outermost.
    Outermost,
    /// The unwind information of the frame's code does not lead to its caller.
    Lost,
}
