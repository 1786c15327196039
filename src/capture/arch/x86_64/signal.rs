//! Functions for signal frames that other architectures need. Here, unwind information describes all of it.

use core::ffi::c_void;

use super::super::{Interrupted, Registers, StackSlots};

/// Does nothing.
pub(crate) fn prepare() {}

/// Returns `None`: the processor has no link register.
pub(crate) fn interrupted_link(_frame: u64, _slots: &mut impl StackSlots) -> Option<u64> {
    None
}

/// Returns `false`: glibc describes its `__restore_rt`.
pub(crate) fn is_signal_return(_address: u64) -> bool {
    false
}

/// Returns the registers of the code that a signal handler has interrupted.
///
/// # Safety
/// `context` is the third argument of the running handler (`SA_SIGINFO`).
pub(crate) unsafe fn interrupted(context: *const c_void) -> Interrupted {
    // SAFETY: the caller's duty.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    Interrupted {
        registers: Registers {
            return_address: registers[libc::REG_RIP as usize] as u64,
            sp: registers[libc::REG_RSP as usize] as u64,
            bp: registers[libc::REG_RBP as usize] as u64,
        },
        link: None,
    }
}
