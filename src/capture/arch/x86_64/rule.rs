//! The unwind rule of x86-64: how to step from a frame to its caller, in one word.
//!
//! ```text
//! bits  31 .................. 11 | 10 ........ 3 | 2..0
//! ENDS  which of them                             | 0
//! SP    CFA = rsp + 8 × this     | rbp's slot k  | 1
//! BP    CFA = rbp + 8 × this     | rbp's slot k  | 2      k = 0: rbp is still in the register
//! LOAD  see `load`               | rbp's slot k  | 3, 4   else it is at CFA − 8k; 255: at rbp + 0
//! PLT   threshold                | 0             | 5
//! ```
//! The return address is always at CFA − 8 (psABI 3.2.2). A row that does not fit is marked as unsupported, never
//! approximated.

use super::super::{DwarfCfa, DwarfPlace, DwarfRow, Registers, StackSlots, Stop};

/// Unwind rule: how to step from a frame to its caller. `Rule::NONE` where no module has a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Rule(u32);

const ENDS: u32 = 0;
const SP: u32 = 1;
const BP: u32 = 2;
const LOAD_SP: u32 = 3;
const LOAD_BP: u32 = 4;
const PLT: u32 = 5;

const SP_NUMBER: u16 = 7;
const BP_NUMBER: u16 = 6;
/// Value of k for `rbp + 0`, where gcc saves rbp in functions that realign their stack.
const SLOT_AT_BP: u32 = 255;

impl Rule {
    /// No unwind information.
    pub const NONE: Rule = Rule::end(0);
    /// The outermost frame: its return address is undefined.
    pub const OUTERMOST: Rule = Rule::end(1);
    /// Unwind information of an unsupported kind.
    pub const UNSUPPORTED: Rule = Rule::end(2);
    /// A signal trampoline: the interrupted registers lie in the kernel's `ucontext` at `rsp`.
    pub const SIGNAL: Rule = Rule::end(3);
    /// A frame that begins with `push rbp; mov rbp, rsp`.
    pub const FRAME_POINTER: Rule = Rule(BP | 2 << 3 | 2 << 11);

    const fn end(which: u32) -> Rule {
        Rule(ENDS | which << 11)
    }

    /// Returns the rule with the CFA at `base` + `offset`, and rbp at CFA - 8 × `slot`, or unchanged if `slot` is 0.
    fn frame(base: u32, offset: i64, slot: u32) -> Rule {
        match u32::try_from(offset / 8) {
            Ok(words) if offset % 8 == 0 && offset > 0 && words < 1 << 21 && slot < SLOT_AT_BP => {
                Rule(base | slot << 3 | words << 11)
            }
            _ => Rule::UNSUPPORTED,
        }
    }

    /// Returns the rule with the CFA = the word at `base` + `offset`, + `plus`. Bits 11..20 hold `plus` / 8, bits 20..32
    /// `offset` / 8, signed.
    fn load(base: u32, offset: i64, plus: i64, slot: u32) -> Rule {
        let fits = offset % 8 == 0
            && (-2048..2048).contains(&(offset / 8))
            && plus % 8 == 0
            && (0..512).contains(&(plus / 8));
        if !fits {
            return Rule::UNSUPPORTED;
        }
        let offset = ((offset / 8) as i32 as u32) << 20;
        Rule(base | slot << 3 | ((plus / 8) as u32) << 11 | offset)
    }

    const fn kind(self) -> u32 {
        self.0 & 7
    }

    const fn slot(self) -> u32 {
        self.0 >> 3 & 255
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

    /// Returns whether the step uses rbp, apart from passing it on.
    #[inline(always)]
    pub(crate) const fn uses_bp(self) -> bool {
        if self.is_plain() {
            return self.kind() == BP;
        }
        self.kind() == LOAD_BP || self.slot() == SLOT_AT_BP
    }

    /// Returns whether the caller's rbp is the frame's own.
    #[inline(always)]
    pub(crate) const fn keeps_bp(self) -> bool {
        self.slot() == 0
    }

    /// Returns whether a call can end here: at every call the stack pointer is a multiple of 16 (psABI 3.2.2), and the CFA
    /// always is. At a function's first and last instruction the stack pointer is not.
    pub(crate) const fn may_call(self) -> bool {
        match self.kind() {
            SP => self.0 >> 11 & 1 == 0,
            PLT => false,
            _ => self.0 != Rule::NONE.0,
        }
    }

    /// Returns the rule that `row` describes.
    #[must_use]
    pub fn from_dwarf(row: &DwarfRow<'_>) -> Rule {
        if row.is_signal_frame {
            return signal_rule(row);
        }
        match row.return_address {
            DwarfPlace::Undefined | DwarfPlace::Unspecified => return Rule::OUTERMOST,
            DwarfPlace::AtCfa(-8) => {}
            _ => return Rule::UNSUPPORTED,
        }
        let slot = match row.frame_pointer {
            DwarfPlace::Unspecified | DwarfPlace::Unchanged | DwarfPlace::Undefined => 0,
            DwarfPlace::AtCfa(offset) if offset % 8 == 0 && (-8 * 254..0).contains(&offset) => {
                (offset / -8) as u32
            }
            DwarfPlace::AtExpression(expression) if is_at_bp(expression) => SLOT_AT_BP,
            _ => return Rule::UNSUPPORTED,
        };
        let is_expression = matches!(row.cfa, DwarfCfa::Expression(_));
        if slot == SLOT_AT_BP && !is_expression {
            return Rule::UNSUPPORTED;
        }
        match row.cfa {
            DwarfCfa::Register {
                number: SP_NUMBER,
                offset,
            } => Rule::frame(SP, offset, slot),
            DwarfCfa::Register {
                number: BP_NUMBER,
                offset,
            } => Rule::frame(BP, offset, slot),
            DwarfCfa::Register { .. } => Rule::UNSUPPORTED,
            DwarfCfa::Expression(expression) => match parse_cfa(expression) {
                Some(CfaForm::Load { base, offset, plus }) => Rule::load(base, offset, plus, slot),
                Some(CfaForm::Plt { threshold }) if slot == 0 => Rule(PLT | threshold << 11),
                _ => Rule::UNSUPPORTED,
            },
        }
    }

    /// Returns whether [`plain_step`](Rule::plain_step) can be taken, as for nearly all code.
    #[inline(always)]
    pub(crate) const fn is_plain(self) -> bool {
        self.kind().wrapping_sub(SP) <= BP - SP
    }

    /// Takes one step outward by a plain rule, with few branches, on a stack that is readable from `at.sp` to `high`.
    /// Returns `None` if the step leaves that range.
    ///
    /// # Safety
    /// All memory from `at.sp` to `high` is mapped; both are multiples of 8.
    #[inline(always)]
    pub(crate) unsafe fn plain_step(self, at: Registers, high: u64) -> Option<Registers> {
        let base = if self.kind() == SP { at.sp } else { at.bp };
        let sp = base.wrapping_add(u64::from(self.0 >> 11) * 8);
        let slot = u64::from(self.slot());
        // Without a slot, the return address is read a second time, and rbp is kept.
        let bp_slot = sp.wrapping_sub(slot.max(1) * 8);
        let inside = sp > at.sp && sp <= high && sp & 7 == 0 && bp_slot >= at.sp;
        if !inside {
            return None;
        }
        // SAFETY: aligned words between `at.sp` and `high`. Volatile: they belong to frames of other functions.
        let (return_address, saved_bp) = unsafe {
            (
                ((sp - 8) as *const u64).read_volatile(),
                (bp_slot as *const u64).read_volatile(),
            )
        };
        let bp = if slot == 0 { at.bp } else { saved_bp };
        Some(Registers {
            return_address,
            sp,
            bp,
        })
    }

    /// Takes one step outward from the frame `at`, whose code has this rule. `pc` is the address at which the code was
    /// looked up.
    pub(crate) fn step(
        self,
        at: Registers,
        pc: u64,
        _link: Option<u64>,
        slots: &mut impl StackSlots,
    ) -> Result<Registers, Stop> {
        let cfa = match self.kind() {
            SP => at.sp.wrapping_add(u64::from(self.0 >> 11) * 8),
            BP => at.bp.wrapping_add(u64::from(self.0 >> 11) * 8),
            LOAD_SP | LOAD_BP => {
                let plus = u64::from(self.0 >> 11 & 511) * 8;
                slots
                    .read(self.loaded_from(at))
                    .ok_or(Stop::Lost)?
                    .wrapping_add(plus)
            }
            PLT => {
                let pushed = u64::from(pc & 15 >= u64::from(self.0 >> 11));
                at.sp.wrapping_add(8 + 8 * pushed)
            }
            _ if self == Rule::OUTERMOST => return Err(Stop::Outermost),
            _ if self == Rule::SIGNAL => return interrupted(at.sp, slots).ok_or(Stop::Lost),
            _ => return Err(Stop::Lost),
        };
        if cfa <= at.sp {
            return Err(Stop::Lost);
        }
        let return_address = slots.read(cfa - 8).ok_or(Stop::Lost)?;
        let bp = match self.slot() {
            0 => at.bp,
            _ => slots.read(self.bp_slot(at, cfa)).ok_or(Stop::Lost)?,
        };
        Ok(Registers {
            return_address,
            sp: cfa,
            bp,
        })
    }

    /// Returns the slot of the caller's saved rbp in the frame `at` whose CFA is `cfa`. Only meaningful if it is saved.
    #[inline(always)]
    pub(crate) fn bp_slot(self, at: Registers, cfa: u64) -> u64 {
        match self.slot() {
            SLOT_AT_BP => at.bp,
            slot => cfa.wrapping_sub(u64::from(slot) * 8),
        }
    }

    /// Returns the slot that the return address was read from, and its content.
    ///
    /// # Safety
    /// A step by this rule has just led from a frame to `outer`.
    #[inline(always)]
    pub(crate) unsafe fn return_check(self, _at: Registers, outer: Registers) -> (u64, u64) {
        (outer.sp - 8, outer.return_address)
    }

    fn loaded_from(self, at: Registers) -> u64 {
        let base = if self.kind() == LOAD_SP { at.sp } else { at.bp };
        base.wrapping_add_signed(i64::from(self.0 as i32 >> 20) * 8)
    }

    /// Returns the slot that the CFA itself was read from and its content, for a step that led from `at` to `cfa`.
    #[inline(always)]
    pub(crate) fn cfa_slot(self, at: Registers, cfa: u64) -> Option<(u64, u64)> {
        if self.kind() < LOAD_SP || self.kind() == PLT {
            return None;
        }
        Some((
            self.loaded_from(at),
            cfa.wrapping_sub(u64::from(self.0 >> 11 & 511) * 8),
        ))
    }
}

/// Returns the rule for the signal frame that glibc's `__restore_rt` describes: every register of the caller is in the
/// `ucontext` at rsp.
fn signal_rule(row: &DwarfRow<'_>) -> Rule {
    let cfa_is_saved_sp = matches!(row.cfa, DwarfCfa::Expression(e)
        if at_sp_offset(e).is_some_and(|(offset, rest)| offset == UCONTEXT_RSP && rest == [op::DEREF]));
    let is_at = |place, wanted| {
        matches!(place, DwarfPlace::AtExpression(e)
            if at_sp_offset(e).is_some_and(|(offset, rest)| offset == wanted && rest.is_empty()))
    };
    if cfa_is_saved_sp
        && is_at(row.return_address, UCONTEXT_RIP)
        && is_at(row.frame_pointer, UCONTEXT_RBP)
    {
        Rule::SIGNAL
    } else {
        Rule::UNSUPPORTED
    }
}

/// Offsets in the kernel's `struct ucontext` (`arch/x86/include/uapi/asm/sigcontext.h`): the general registers follow
/// `uc_flags`, `uc_link` and `uc_stack`.
const UCONTEXT_RBP: i64 = 120;
const UCONTEXT_RSP: i64 = 160;
const UCONTEXT_RIP: i64 = 168;

/// Returns the registers of the code that a signal interrupted, from the `ucontext` at `context`.
pub(crate) fn interrupted(context: u64, slots: &mut impl StackSlots) -> Option<Registers> {
    Some(Registers {
        bp: slots.read(context + UCONTEXT_RBP as u64)?,
        sp: slots.read(context + UCONTEXT_RSP as u64)?,
        return_address: slots.read(context + UCONTEXT_RIP as u64)?,
    })
}

/// DWARF 5, section 7.7.1.
mod op {
    pub(super) const DEREF: u8 = 0x06;
    pub(super) const AND: u8 = 0x1a;
    pub(super) const PLUS: u8 = 0x22;
    pub(super) const PLUS_UCONST: u8 = 0x23;
    pub(super) const SHL: u8 = 0x24;
    pub(super) const GE: u8 = 0x2a;
    pub(super) const LIT0: u8 = 0x30;
    pub(super) const BREG6: u8 = 0x76;
    pub(super) const BREG7: u8 = 0x77;
    pub(super) const BREG16: u8 = 0x80;
}

enum CfaForm {
    /// The word at a register and an offset, plus a constant: functions that realign their stack.
    Load { base: u32, offset: i64, plus: i64 },
    /// rsp + 8, and 8 more from the byte `threshold` of every 16 on: the linker's lazy procedure linkage table.
    Plt { threshold: u32 },
}

fn parse_cfa(expression: &[u8]) -> Option<CfaForm> {
    let (&register, rest) = expression.split_first()?;
    let (offset, rest) = signed_leb128(rest)?;
    let base = match register {
        op::BREG6 => LOAD_BP,
        op::BREG7 => LOAD_SP,
        _ => return None,
    };
    match rest {
        [op::DEREF] => Some(CfaForm::Load {
            base,
            offset,
            plus: 0,
        }),
        [op::DEREF, op::PLUS_UCONST, plus] if *plus < 128 => Some(CfaForm::Load {
            base,
            offset,
            plus: i64::from(*plus),
        }),
        // rsp + 8 + ((rip & 15) >= threshold) << 3
        [
            op::BREG16,
            0,
            fifteen,
            op::AND,
            threshold,
            op::GE,
            three,
            op::SHL,
            op::PLUS,
        ] if register == op::BREG7
            && offset == 8
            && *fifteen == op::LIT0 + 15
            && *three == op::LIT0 + 3
            && (op::LIT0..op::LIT0 + 16).contains(threshold) =>
        {
            Some(CfaForm::Plt {
                threshold: u32::from(threshold - op::LIT0),
            })
        }
        _ => None,
    }
}

fn is_at_bp(expression: &[u8]) -> bool {
    expression == [op::BREG6, 0]
}

fn at_sp_offset(expression: &[u8]) -> Option<(i64, &[u8])> {
    match expression.split_first()? {
        (&op::BREG7, rest) => signed_leb128(rest),
        _ => None,
    }
}

/// Returns a signed LEB128 number (DWARF 5, section 7.6) of at most nine bytes, and the bytes after it.
fn signed_leb128(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut value = 0i64;
    for (index, &byte) in bytes.iter().enumerate().take(9) {
        value |= i64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let unused = 64 - 7 * (index as u32 + 1);
            return Some((value << unused >> unused, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    struct Memory(HashMap<u64, u64>);

    impl StackSlots for Memory {
        fn read(&mut self, address: u64) -> Option<u64> {
            self.0.get(&address).copied()
        }
    }

    fn row<'a>(cfa: DwarfCfa<'a>, frame_pointer: DwarfPlace<'a>) -> DwarfRow<'a> {
        DwarfRow {
            cfa,
            frame_pointer,
            return_address: DwarfPlace::AtCfa(-8),
            is_signal_frame: false,
        }
    }

    fn step(rule: Rule, at: Registers, memory: &[(u64, u64)]) -> Result<Registers, Stop> {
        rule.step(
            at,
            at.return_address - 1,
            None,
            &mut Memory(memory.iter().copied().collect()),
        )
    }

    const AT: Registers = Registers {
        return_address: 0x5000,
        sp: 0x1000,
        bp: 0x2000,
    };

    #[test]
    fn a_frame_without_a_frame_pointer_is_found_from_rsp() {
        let rule = Rule::from_dwarf(&row(
            DwarfCfa::Register {
                number: 7,
                offset: 0x100,
            },
            DwarfPlace::AtCfa(-24),
        ));
        let caller = step(rule, AT, &[(0x10f8, 77), (0x10e8, 88)]);
        assert_eq!(
            caller,
            Ok(Registers {
                return_address: 77,
                sp: 0x1100,
                bp: 88
            })
        );
        assert!(!rule.uses_bp() && !rule.keeps_bp());
    }

    #[test]
    fn a_frame_with_a_frame_pointer_is_found_from_rbp() {
        let rule = Rule::from_dwarf(&row(
            DwarfCfa::Register {
                number: 6,
                offset: 16,
            },
            DwarfPlace::AtCfa(-16),
        ));
        assert_eq!(rule, Rule::FRAME_POINTER);
        let caller = step(rule, AT, &[(0x2008, 77), (0x2000, 88)]);
        assert_eq!(
            caller,
            Ok(Registers {
                return_address: 77,
                sp: 0x2010,
                bp: 88
            })
        );
        assert!(rule.uses_bp() && !rule.keeps_bp());
    }

    #[test]
    fn a_walk_never_goes_inward() {
        let at = Registers { bp: 0x800, ..AT };
        assert_eq!(
            step(Rule::FRAME_POINTER, at, &[(0x808, 77), (0x800, 88)]),
            Err(Stop::Lost)
        );
    }

    #[test]
    fn a_function_that_realigns_its_stack_is_followed() {
        // gcc: DW_CFA_def_cfa_expression (DW_OP_breg6 -8; DW_OP_deref), rbp at (DW_OP_breg6 0).
        let rule = Rule::from_dwarf(&row(
            DwarfCfa::Expression(&[0x76, 0x78, 0x06]),
            DwarfPlace::AtExpression(&[0x76, 0]),
        ));
        let caller = step(rule, AT, &[(0x1ff8, 0x3000), (0x2ff8, 77), (0x2000, 88)]);
        assert_eq!(
            caller,
            Ok(Registers {
                return_address: 77,
                sp: 0x3000,
                bp: 88
            })
        );
        assert_eq!(rule.cfa_slot(AT, 0x3000), Some((0x1ff8, 0x3000)));
        assert!(rule.uses_bp() && !rule.keeps_bp());
    }

    #[test]
    fn a_saved_stack_pointer_plus_a_constant_is_followed() {
        // OpenSSL: DW_CFA_def_cfa_expression (DW_OP_breg7 +0x90; DW_OP_deref; DW_OP_plus_uconst 8).
        let rule = Rule::from_dwarf(&row(
            DwarfCfa::Expression(&[0x77, 0x90, 0x01, 0x06, 0x23, 8]),
            DwarfPlace::AtCfa(-16),
        ));
        let caller = step(rule, AT, &[(0x1090, 0x3000), (0x3000, 77), (0x2ff8, 88)]);
        assert_eq!(
            caller,
            Ok(Registers {
                return_address: 77,
                sp: 0x3008,
                bp: 88
            })
        );
    }

    #[test]
    fn a_lazy_linkage_stub_has_one_word_more_once_it_has_pushed() {
        // ld: breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        let rule = Rule::from_dwarf(&row(DwarfCfa::Expression(&plt), DwarfPlace::Unspecified));
        let mut memory = Memory([(0x1000, 1), (0x1008, 2)].into());
        assert_eq!(
            rule.step(AT, 0x502a, None, &mut memory)
                .unwrap()
                .return_address,
            1
        );
        assert_eq!(
            rule.step(AT, 0x502b, None, &mut memory)
                .unwrap()
                .return_address,
            2
        );
    }

    #[test]
    fn what_does_not_fit_is_marked() {
        for cfa in [
            DwarfCfa::Register {
                number: 3,
                offset: 16,
            },
            DwarfCfa::Register {
                number: 7,
                offset: 12,
            },
            DwarfCfa::Register {
                number: 7,
                offset: 0,
            },
            DwarfCfa::Register {
                number: 6,
                offset: -16,
            },
            DwarfCfa::Register {
                number: 7,
                offset: 1 << 30,
            },
            DwarfCfa::Expression(&[0x77, 8]),
            DwarfCfa::Expression(&[0x76, 0x80]),
        ] {
            assert_eq!(
                Rule::from_dwarf(&row(cfa, DwarfPlace::Unspecified)),
                Rule::UNSUPPORTED,
                "{cfa:?}"
            );
        }
        let sp = DwarfCfa::Register {
            number: 7,
            offset: 16,
        };
        for place in [
            DwarfPlace::AtCfa(8),
            DwarfPlace::AtCfa(-4096),
            DwarfPlace::Elsewhere,
        ] {
            assert_eq!(
                Rule::from_dwarf(&row(sp, place)),
                Rule::UNSUPPORTED,
                "{place:?}"
            );
        }
        assert_eq!(step(Rule::UNSUPPORTED, AT, &[]), Err(Stop::Lost));
        assert_eq!(step(Rule::NONE, AT, &[]), Err(Stop::Lost));
        assert_eq!(step(Rule::OUTERMOST, AT, &[]), Err(Stop::Outermost));
    }

    #[test]
    fn a_memory_that_cannot_be_read_ends_the_walk() {
        assert_eq!(
            step(Rule::FRAME_POINTER, AT, &[(0x2008, 77)]),
            Err(Stop::Lost)
        );
    }
}
