//! Removes signatures from code addresses, and recognizes signal trampolines.

use core::sync::atomic::{AtomicU64, Ordering};

use super::super::{Registers, StackSlots};

/// Mask of the bits of a user space address. Where return addresses are signed (Armv8.3 pointer authentication), the
/// signature lies above these bits, and their number depends on the kernel. Until [`prepare`], the number that most kernels
/// have.
static ADDRESS_BITS: AtomicU64 = AtomicU64::new((1 << 48) - 1);

/// Finds out from the processor which bits belong to an address. Called outside of hooks, before the first session.
pub(crate) fn prepare() {
    #[cfg(target_arch = "aarch64")]
    {
        // Bit 55 separates user space from the kernel's.
        const ALL: u64 = (1 << 55) - 1;
        let mut pointer = ALL;
        // SAFETY: `xpaclri` strips the signature from x30; it is a hint, which a processor without signatures passes
        // by. It touches nothing else.
        unsafe {
            core::arch::asm!(
                "mov x30, {pointer}",
                "hint #7",
                "mov {pointer}, x30",
                pointer = inout(reg) pointer,
                out("x30") _,
                options(nomem, nostack, preserves_flags),
            );
        }
        if pointer != ALL {
            ADDRESS_BITS.store(pointer, Ordering::Relaxed);
        }
    }
}

/// Returns a code address without its signature.
#[inline(always)]
pub(crate) fn strip(address: u64) -> u64 {
    address & ADDRESS_BITS.load(Ordering::Relaxed)
}

/// Offsets in the kernel's `struct rt_sigframe` (`arch/arm64/kernel/signal.c`): `siginfo_t` of 128 bytes, then the
/// `ucontext`, in which `uc_mcontext` lies at 176 (`arch/arm64/include/uapi/asm/ucontext.h`: after `uc_flags`,
/// `uc_link`, `uc_stack` and a signal mask with room for 1024) and begins with `fault_address` and `regs[31]`.
const REGISTERS: u64 = 128 + 176 + 8;
const X29: u64 = REGISTERS + 8 * 29;
const X30: u64 = REGISTERS + 8 * 30;
const SP: u64 = REGISTERS + 8 * 31;
const PC: u64 = REGISTERS + 8 * 32;

/// Returns the registers of the code that a signal interrupted, from the signal frame at `frame`.
pub(super) fn interrupted(frame: u64, slots: &mut impl StackSlots) -> Option<Registers> {
    Some(Registers {
        bp: slots.read(frame.wrapping_add(X29))?,
        sp: slots.read(frame.wrapping_add(SP))?,
        return_address: slots.read(frame.wrapping_add(PC))?,
    })
}

/// Returns the link register of the code that a signal interrupted.
pub(crate) fn interrupted_link(frame: u64, slots: &mut impl StackSlots) -> Option<u64> {
    slots.read(frame.wrapping_add(X30))
}

/// Returns whether the code at `address` is the kernel's return from a signal handler, which no unwind information describes
/// since Linux 5.8: `mov x8, #__NR_rt_sigreturn; svc #0`. libgcc and gdb recognize it in the same way.
#[cfg(target_arch = "aarch64")]
#[cold]
pub(crate) fn is_signal_return(address: u64) -> bool {
    if !address.is_multiple_of(4) || !super::super::is_readable(address) {
        return false;
    }
    if !super::super::is_readable(address.wrapping_add(4)) {
        return false;
    }
    // SAFETY: two aligned words of code that a frame returns to, so it stays; the kernel has just read them.
    let code = unsafe { (address as *const [u32; 2]).read_volatile() };
    code == SIGNAL_RETURN
}

#[cfg(target_arch = "aarch64")]
const SIGNAL_RETURN: [u32; 2] = [0xd280_1168, 0xd400_0001];
