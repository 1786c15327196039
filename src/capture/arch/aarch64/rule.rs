//! The unwind rule of AArch64: how to step from a frame to its caller, in one word.
//!
//! ```text
//! bits  31 ................ 12 | 11 ......... 4 | 3 | 2..0
//! ENDS    which of them                            | 0 | 0
//! SP      CFA = sp + 8 × this    | link's slot j  | f | 1     the return address is at CFA − 8j
//! BP      CFA = x29 + 8 × this   | link's slot j  | f | 2     f: the caller's x29 is in the word below it
//! SP_LOW  CFA = sp + 8 × this    | link's slot j  | f | 3     the return address is at sp + 8j
//! BP_LOW  CFA = x29 + 8 × this   | link's slot j  | f | 4     the return address is at x29 + 8j
//! LINK    CFA = sp + 8 × this    | 0              | 0 | 5     the return address is in the link register still
//! ```
//! A call leaves the return address in `x30`, and nothing on the stack. A function that calls others saves it, mostly in a
//! *frame record*, a pair of words (AAPCS64, 6.4.6). `LINK` is therefore the rule of leaf functions, prologues and
//! epilogues: such a frame is on a stack only if a signal interrupted it. Compilers save `x29` beside `x30` or not at all,
//! and save them near the upper end of a frame (LLVM) or near the lower (GCC). A row that does not fit is marked as
//! unsupported, never approximated.

use super::super::{DwarfCfa, DwarfPlace, DwarfRow, Registers, StackSlots, Stop};
use super::pointer::{self, strip};

/// Unwind rule: how to step from a frame to its caller. `Rule::NONE` where no module has a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Rule(u32);

const ENDS: u32 = 0;
const SP: u32 = 1;
const BP: u32 = 2;
const SP_LOW: u32 = 3;
const BP_LOW: u32 = 4;
const LINK: u32 = 5;

const SP_NUMBER: u16 = 31;
const BP_NUMBER: u16 = 29;

/// Bit of a rule: the caller's x29 is saved.
const SAVES_BP: u32 = 1 << 3;

impl Rule {
    /// No unwind information.
    pub const NONE: Rule = Rule::end(0);
    /// The outermost frame: its return address is undefined.
    pub const OUTERMOST: Rule = Rule::end(1);
    /// Unwind information of an unsupported kind.
    pub const UNSUPPORTED: Rule = Rule::end(2);
    /// A signal trampoline: the interrupted registers lie in the kernel's `rt_sigframe` at `sp`.
    pub const SIGNAL: Rule = Rule::end(3);
    /// Rule of a frame that begins with `stp x29, x30, [sp, -16]!; mov x29, sp`, or of which only the record is known. In
    /// the second case the stack pointer of its caller is a lower bound.
    pub const FRAME_POINTER: Rule = Rule(BP | SAVES_BP | 1 << 4 | 2 << 12);

    const fn end(which: u32) -> Rule {
        Rule(ENDS | which << 12)
    }

    /// Returns the rule with the CFA at `base` + `offset`, the return address at CFA - 8 × `slot`, and the caller's x29
    /// below that if it is saved.
    fn frame(base: u32, offset: i64, slot: i64, saves_bp: bool) -> Rule {
        let words = offset / 8;
        let from_base = words.wrapping_sub(slot);
        let fits = offset % 8 == 0
            && (1..1 << 20).contains(&words)
            && slot > 0
            && from_base >= i64::from(saves_bp);
        let (kind, slot) = match (fits, slot, from_base) {
            (true, 0..256, _) => (base, slot),
            (true, _, 0..256) => (base + (SP_LOW - SP), from_base),
            _ => return Rule::UNSUPPORTED,
        };
        let saves_bp = if saves_bp { SAVES_BP } else { 0 };
        Rule(kind | saves_bp | (slot as u32) << 4 | (words as u32) << 12)
    }

    const fn kind(self) -> u32 {
        self.0 & 7
    }

    /// Returns the word of this rule, for tables.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Returns the rule of a word that [`to_bits`](Rule::to_bits) returned.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Rule {
        Rule(bits)
    }

    /// Returns whether the step uses x29, apart from passing it on.
    #[inline(always)]
    pub(crate) const fn uses_bp(self) -> bool {
        matches!(self.kind(), BP | BP_LOW)
    }

    /// Returns whether the caller's x29 is the frame's own.
    #[inline(always)]
    pub(crate) const fn keeps_bp(self) -> bool {
        self.0 & SAVES_BP == 0
    }

    /// Returns whether a call can end here. It cannot where the function's own return address is in the link register.
    pub(crate) const fn may_call(self) -> bool {
        self.kind() != LINK && self.0 != Rule::NONE.0
    }

    /// Returns the rule that `row` describes.
    #[must_use]
    pub fn from_dwarf(row: &DwarfRow<'_>) -> Rule {
        let (base, offset) = match row.cfa {
            DwarfCfa::Register {
                number: SP_NUMBER,
                offset,
            } => (SP, offset),
            DwarfCfa::Register {
                number: BP_NUMBER,
                offset,
            } => (BP, offset),
            _ => return Rule::UNSUPPORTED,
        };
        if row.is_signal_frame {
            return signal_rule(base, offset, row);
        }
        let frame_pointer = match row.frame_pointer {
            DwarfPlace::Unspecified | DwarfPlace::Unchanged => None,
            DwarfPlace::AtCfa(at) => Some(at),
            _ => return Rule::UNSUPPORTED,
        };
        match (row.return_address, frame_pointer) {
            (DwarfPlace::Undefined, _) => Rule::OUTERMOST,
            (DwarfPlace::AtCfa(at), _) if at % 8 != 0 => Rule::UNSUPPORTED,
            (DwarfPlace::AtCfa(at), None) => Rule::frame(base, offset, -(at / 8), false),
            (DwarfPlace::AtCfa(at), Some(below)) if below == at - 8 => {
                Rule::frame(base, offset, -(at / 8), true)
            }
            (DwarfPlace::Unspecified | DwarfPlace::Unchanged, None)
                if base == SP && offset % 8 == 0 && (0..1 << 23).contains(&offset) =>
            {
                Rule(LINK | ((offset / 8) as u32) << 12)
            }
            _ => Rule::UNSUPPORTED,
        }
    }

    /// Returns whether [`plain_step`](Rule::plain_step) can be taken, as for nearly all code after a call.
    #[inline(always)]
    pub(crate) const fn is_plain(self) -> bool {
        self.kind().wrapping_sub(SP) <= BP_LOW - SP
    }

    /// Returns the CFA of a plain rule or `LINK`, and the slot of the return address.
    #[inline(always)]
    fn cfa_and_return_slot(self, at: Registers) -> (u64, u64) {
        let base = if self.uses_bp() { at.bp } else { at.sp };
        let cfa = base.wrapping_add(u64::from(self.0 >> 12) * 8);
        let slot = u64::from(self.0 >> 4 & 255) * 8;
        let return_slot = if self.kind() <= BP {
            cfa.wrapping_sub(slot)
        } else {
            base.wrapping_add(slot)
        };
        (cfa, return_slot)
    }

    /// Takes one step outward by a plain rule, with few branches, on a stack that is readable from `at.sp` to `high`.
    /// Returns `None` if the step leaves that range.
    ///
    /// # Safety
    /// All memory from `at.sp` to `high` is mapped; both are multiples of 8.
    #[inline(always)]
    pub(crate) unsafe fn plain_step(self, at: Registers, high: u64) -> Option<Registers> {
        let (sp, return_slot) = self.cfa_and_return_slot(at);
        // Without a saved x29, the return address is read a second time, and x29 is kept.
        let bp_slot = return_slot.wrapping_sub(if self.keeps_bp() { 0 } else { 8 });
        // Slots lie below the CFA by construction, unless the addition went past the end of all addresses.
        let inside = sp > at.sp
            && sp <= high
            && sp & 7 == 0
            && bp_slot >= at.sp
            && return_slot >= bp_slot
            && return_slot < sp;
        if !inside {
            return None;
        }
        // SAFETY: aligned words between `at.sp` and `high`: all slots are whole words away from the CFA. Volatile: they
        // belong to frames of other functions.
        let (return_address, saved_bp) = unsafe {
            (
                (return_slot as *const u64).read_volatile(),
                (bp_slot as *const u64).read_volatile(),
            )
        };
        Some(Registers {
            return_address: strip(return_address),
            sp,
            bp: if self.keeps_bp() { at.bp } else { saved_bp },
        })
    }

    /// Takes one step outward from the frame `at`, whose code has this rule. `pc` is the address at which the code was
    /// looked up; `link` is the link register if a signal interrupted this very frame.
    pub(crate) fn step(
        self,
        at: Registers,
        _pc: u64,
        link: Option<u64>,
        slots: &mut impl StackSlots,
    ) -> Result<Registers, Stop> {
        if self == Rule::OUTERMOST {
            return Err(Stop::Outermost);
        }
        if self == Rule::SIGNAL {
            return pointer::interrupted(at.sp, slots).ok_or(Stop::Lost);
        }
        let (cfa, return_slot) = self.cfa_and_return_slot(at);
        if self.kind() == LINK {
            // After a call, the register holds what that call put there.
            let return_address = strip(link.ok_or(Stop::Lost)?);
            return if cfa < at.sp {
                Err(Stop::Lost)
            } else {
                Ok(Registers {
                    return_address,
                    sp: cfa,
                    bp: at.bp,
                })
            };
        }
        if !self.is_plain() || cfa <= at.sp {
            return Err(Stop::Lost);
        }
        let return_address = slots.read(return_slot).ok_or(Stop::Lost)?;
        let bp = if self.keeps_bp() {
            at.bp
        } else {
            slots.read(return_slot.wrapping_sub(8)).ok_or(Stop::Lost)?
        };
        Ok(Registers {
            return_address: strip(return_address),
            sp: cfa,
            bp,
        })
    }

    /// Returns the slot of the caller's saved x29 in the frame `at`. Only meaningful if it is saved.
    #[inline(always)]
    pub(crate) fn bp_slot(self, at: Registers, _cfa: u64) -> u64 {
        self.cfa_and_return_slot(at).1.wrapping_sub(8)
    }

    /// Returns the slot that the return address was read from, and its content, which may be signed.
    ///
    /// # Safety
    /// A plain step by this rule has just led from `at` to `outer`.
    #[inline(always)]
    pub(crate) unsafe fn return_check(self, at: Registers, _outer: Registers) -> (u64, u64) {
        let (_, slot) = self.cfa_and_return_slot(at);
        // SAFETY: the step has read this word.
        (slot, unsafe { (slot as *const u64).read_volatile() })
    }

    /// Returns `None`: the CFA is never read from memory here.
    #[inline(always)]
    pub(crate) fn cfa_slot(self, _at: Registers, _cfa: u64) -> Option<(u64, u64)> {
        None
    }
}

/// Returns the rule for the kernel's `__kernel_rt_sigreturn` as described before Linux 5.8: the record that the kernel has
/// pushed, which leads past the interrupted function. The registers beside the record have everything.
fn signal_rule(base: u32, offset: i64, row: &DwarfRow<'_>) -> Rule {
    let places = (row.frame_pointer, row.return_address);
    match places {
        (DwarfPlace::AtCfa(0), DwarfPlace::AtCfa(8)) if base == BP && offset == 0 => Rule::SIGNAL,
        _ => Rule::UNSUPPORTED,
    }
}
