//! The registers that a walk begins with.

use super::super::Registers;

/// The caller's registers as they will be when this function has returned: a walk from them begins with the function
/// that calls this one, at the instruction after the call.
///
/// The values are good for a walk as long as that function has not returned.
#[inline(always)]
#[must_use]
pub fn registers_here() -> Registers {
    let mut registers = Registers::default();
    // SAFETY: `store_registers` writes one `Registers`, for which the reference is valid, and nothing else.
    unsafe { store_registers(&mut registers) };
    registers
}

/// Stores the return address, the stack pointer after the return, and `rbp`, which a naked function leaves alone.
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
