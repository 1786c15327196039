//! What other architectures must know of signal frames, and this one need not: all of it is in unwind information.

use core::ffi::c_void;

use super::super::{Interrupted, Registers, StackSlots};

/// Nothing has to be learnt.
pub(crate) fn prepare() {}

/// There is no link register.
pub(crate) fn interrupted_link(_frame: u64, _slots: &mut impl StackSlots) -> Option<u64> {
    None
}

/// glibc describes its `__restore_rt`.
pub(crate) fn is_signal_return(_address: u64) -> bool {
    false
}

/// What a signal handler has interrupted.
///
/// # Safety
/// `context` is the third argument of the handler (`SA_SIGINFO`) that runs.
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
