//! The registers that a walk begins with.

use core::ffi::c_void;

use super::super::{Interrupted, Registers};
use super::pointer::strip;

/// Returns the caller's registers as they will be after this function has returned. A walk from them begins with the
/// function that calls this one, at the instruction after the call.
///
/// The values are valid for a walk until that function returns.
#[inline(always)]
#[must_use]
pub fn registers_here() -> Registers {
    let mut registers = Registers::default();
    // SAFETY: `store_registers` writes one `Registers`, for which the reference is valid, and nothing else.
    unsafe { store_registers(&mut registers) };
    registers
}

/// Stores the link register, the stack pointer (which a call does not change) and `x29`.
#[unsafe(naked)]
unsafe extern "C" fn store_registers(_: &mut Registers) {
    core::arch::naked_asm!(
        "hint #34", // bti c
        "mov x9, sp",
        "stp x30, x9, [x0]",
        "str x29, [x0, #16]",
        "ret",
    )
}

/// Returns the registers of the code that a signal handler has interrupted.
///
/// # Safety
/// `context` is the third argument of the running handler (`SA_SIGINFO`).
pub(crate) unsafe fn interrupted(context: *const c_void) -> Interrupted {
    // SAFETY: the caller's duty.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    Interrupted {
        registers: Registers {
            return_address: registers.pc,
            sp: registers.sp,
            bp: registers.regs[29],
        },
        link: Some(strip(registers.regs[30])),
    }
}
