//! The registers that a walk begins with.

use super::super::Registers;

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

/// Stores the return address, the stack pointer after the return, and `rbp`, which a naked function does not change.
#[unsafe(naked)]
unsafe extern "C" fn store_registers(_: &mut Registers) {
    core::arch::naked_asm!(
        "mov rax, [rsp]",
        "mov [rdi], rax",
        "lea rax, [rsp + 8]",
        "mov [rdi + 8], rax",
        "mov [rdi + 16], rbp",
        "ret",
    )
}
