//! Tests of the rules on frames that are made by hand, and on a stack that was recorded in a real process. They run on every
//! host.

use std::collections::HashMap;

use super::super::{DwarfCfa, DwarfPlace, DwarfRow, Registers, StackSlots, Stop};
use super::pointer::{interrupted_link, strip};
use super::rule::Rule;

struct Memory(HashMap<u64, u64>);

impl StackSlots for Memory {
    fn read(&mut self, address: u64) -> Option<u64> {
        self.0.get(&address).copied()
    }
}

fn row<'a>(
    number: u16,
    offset: i64,
    frame_pointer: DwarfPlace<'a>,
    return_address: DwarfPlace<'a>,
) -> DwarfRow<'a> {
    DwarfRow {
        cfa: DwarfCfa::Register { number, offset },
        frame_pointer,
        return_address,
        is_signal_frame: false,
    }
}

const SP: u16 = 31;
const X29: u16 = 29;
const SIGNATURE: u64 = 0x0079_0000_0000_0000;

/// Frames at 0x1000, x29 at 0x1020.
const AT: Registers = Registers {
    return_address: 0x5000,
    sp: 0x1000,
    bp: 0x1020,
};

/// A row of each shape that compilers make, the slot of the return address, and the slot of the caller's x29 if it is saved.
const SHAPES: [(DwarfRow<'static>, u64, u64, Option<u64>); 9] = {
    use DwarfPlace::{AtCfa, Unchanged, Unspecified};
    const fn shape(
        number: u16,
        offset: i64,
        frame_pointer: DwarfPlace<'static>,
        return_address: i64,
    ) -> DwarfRow<'static> {
        DwarfRow {
            cfa: DwarfCfa::Register { number, offset },
            frame_pointer,
            return_address: AtCfa(return_address),
            is_signal_frame: false,
        }
    }
    [
        // stp x29, x30, [sp, -64]!
        (shape(SP, 64, AtCfa(-64), -56), 0x1040, 0x1008, Some(0x1000)),
        // sub sp, sp, 64; stp x29, x30, [sp, 48]
        (shape(SP, 64, AtCfa(-16), -8), 0x1040, 0x1038, Some(0x1030)),
        // … add x29, sp, 32
        (
            shape(X29, 32, AtCfa(-32), -24),
            0x1040,
            0x1028,
            Some(0x1020),
        ),
        // the same, with registers saved between the record and the CFA, and the record elsewhere
        (shape(X29, 32, AtCfa(-16), -8), 0x1040, 0x1038, Some(0x1030)),
        // str x30, [sp, -16]!
        (shape(SP, 16, Unspecified, -16), 0x1010, 0x1000, None),
        (shape(SP, 48, Unchanged, -8), 0x1030, 0x1028, None),
        // 200,000 bytes of locals below the record, as LLVM does it, or above, as GCC does
        (
            shape(SP, 200_000, AtCfa(-32), -24),
            0x1000 + 200_000,
            0x1000 + 200_000 - 24,
            Some(0x1000 + 200_000 - 32),
        ),
        (
            shape(SP, 200_000, AtCfa(-200_000), 8 - 200_000),
            0x1000 + 200_000,
            0x1008,
            Some(0x1000),
        ),
        (
            shape(SP, 20_032, Unspecified, -20_016),
            0x1000 + 20_032,
            0x1010,
            None,
        ),
    ]
};

#[test]
fn a_frame_of_each_shape_is_followed_to_its_caller() {
    for (row, cfa, return_slot, bp_slot) in SHAPES {
        let rule = Rule::from_dwarf(&row);
        let mut memory = Memory([(return_slot, SIGNATURE | 0x7777)].into());
        memory.0.extend(bp_slot.map(|slot| (slot, 88)));
        let caller = rule.step(AT, 0, None, &mut memory);
        let expected = Registers {
            return_address: 0x7777,
            sp: cfa,
            bp: if bp_slot.is_some() { 88 } else { AT.bp },
        };
        assert_eq!(caller, Ok(expected), "{row:?}");
        assert!(rule.is_plain());
        assert_eq!(rule.keeps_bp(), bp_slot.is_none(), "{row:?}");
        let from_bp = matches!(row.cfa, DwarfCfa::Register { number: X29, .. });
        assert_eq!(rule.uses_bp(), from_bp, "{row:?}");
        if let Some(slot) = bp_slot {
            assert_eq!(rule.bp_slot(AT, cfa), slot, "{row:?}");
        }
        memory.0.remove(&return_slot);
        assert_eq!(rule.step(AT, 0, None, &mut memory), Err(Stop::Lost));
    }
}

#[test]
fn the_quick_step_takes_what_the_careful_one_takes_and_checks_what_memory_holds() {
    // Every word is its own address, signed.
    let stack: Vec<u64> = (0..26_000).map(|index| SIGNATURE | index << 4).collect();
    let (low, high) = (stack.as_ptr() as u64, stack.as_ptr_range().end as u64);
    let at = Registers {
        return_address: 0x5000,
        sp: low,
        bp: low + 0x20,
    };
    let mut memory = Memory(HashMap::new());
    for (index, &word) in stack.iter().enumerate() {
        memory.0.insert(low + 8 * index as u64, word);
    }
    for (row, ..) in SHAPES {
        let rule = Rule::from_dwarf(&row);
        let careful = rule.step(at, 0, None, &mut memory).unwrap();
        // SAFETY: the buffer.
        let quick = unsafe { rule.plain_step(at, high) }.unwrap();
        assert_eq!(quick, careful, "{row:?}");
        // SAFETY: the step was taken just now.
        let (slot, value) = unsafe { rule.return_check(at, quick) };
        assert_eq!(strip(value), quick.return_address);
        assert_eq!(memory.0[&slot], value, "{row:?}");
        assert_ne!(
            value, quick.return_address,
            "the signature is part of the word"
        );
        // SAFETY: the buffer, of which less is given.
        assert_eq!(unsafe { rule.plain_step(at, quick.sp - 8) }, None);
    }
    for bp in [0, low - 64, high - 24, low + 0x21, u64::MAX, u64::MAX - 40] {
        for (row, ..) in &SHAPES[2..4] {
            let rule = Rule::from_dwarf(row);
            // SAFETY: the buffer, with an x29 that may be anything.
            let step = unsafe { rule.plain_step(Registers { bp, ..at }, high) };
            assert_eq!(step, None, "{bp:#x}");
        }
    }
}

#[test]
fn a_return_address_in_the_link_register_is_good_for_interrupted_code_alone() {
    use DwarfPlace::Unspecified;
    for (offset, cfa) in [(0, 0x1000), (96, 0x1060)] {
        let leaf = Rule::from_dwarf(&row(SP, offset, Unspecified, Unspecified));
        assert!(!leaf.is_plain() && !leaf.uses_bp() && leaf.keeps_bp());
        let mut memory = Memory(HashMap::new());
        assert_eq!(leaf.step(AT, 0, None, &mut memory), Err(Stop::Lost));
        assert_eq!(
            leaf.step(AT, 0, Some(SIGNATURE | 0x6000), &mut memory),
            Ok(Registers {
                return_address: 0x6000,
                sp: cfa,
                bp: AT.bp
            })
        );
    }
}

#[test]
fn a_walk_never_goes_inward() {
    let mut memory = Memory([(0x808, 77), (0x800, 88)].into());
    let at = Registers { bp: 0x800, ..AT };
    let step = Rule::FRAME_POINTER.step(at, 0, None, &mut memory);
    assert_eq!(step, Err(Stop::Lost));
}

#[test]
fn what_does_not_fit_is_marked() {
    use DwarfPlace::{AtCfa, AtExpression, Elsewhere, Undefined, Unspecified};
    let record = (AtCfa(-16), AtCfa(-8));
    for (number, offset, (x29, x30)) in [
        // `setcontext`: the CFA is in another register
        (0, 0, record),
        (SP, 20, record),
        (SP, 0, record),
        (SP, -16, record),
        (SP, 8, record),
        (SP, 80_000, (Unspecified, AtCfa(-40_000))),
        (SP, 1 << 40, record),
        (SP, 1 << 24, record),
        (SP, 1 << 33, (AtCfa(-(1 << 33)), AtCfa(8 - (1 << 33)))),
        // beside each other, but the other way round; apart; above the CFA
        (SP, 32, (AtCfa(-8), AtCfa(-16))),
        (SP, 64, (AtCfa(-64), AtCfa(-8))),
        (SP, 64, (Unspecified, AtCfa(8))),
        (SP, 64, (Unspecified, AtCfa(0))),
        (SP, 64, (Unspecified, AtCfa(-12))),
        // an epilogue that has restored one of them
        (X29, 32, (AtCfa(-32), Unspecified)),
        (X29, 32, (Unspecified, Unspecified)),
        (SP, 32, (Unspecified, Elsewhere)),
        (SP, 32, (Undefined, AtCfa(-8))),
        (SP, 32, (AtExpression(&[]), AtCfa(-8))),
    ] {
        let row = row(number, offset, x29, x30);
        assert_eq!(Rule::from_dwarf(&row), Rule::UNSUPPORTED, "{row:?}");
    }
    let expression = DwarfRow {
        cfa: DwarfCfa::Expression(&[0x8f, 0]),
        ..row(SP, 16, record.0, record.1)
    };
    assert_eq!(Rule::from_dwarf(&expression), Rule::UNSUPPORTED);
    let start = row(SP, 0, Unspecified, Undefined);
    assert_eq!(Rule::from_dwarf(&start), Rule::OUTERMOST);
    let mut memory = Memory(HashMap::new());
    for (rule, stop) in [
        (Rule::UNSUPPORTED, Stop::Lost),
        (Rule::NONE, Stop::Lost),
        (Rule::OUTERMOST, Stop::Outermost),
        (Rule::SIGNAL, Stop::Lost),
    ] {
        assert!(!rule.is_plain());
        assert_eq!(rule.step(AT, 0, None, &mut memory), Err(stop));
    }
}

#[test]
fn an_old_kernels_signal_trampoline_is_known_by_its_row() {
    use DwarfPlace::AtCfa;
    let old = DwarfRow {
        is_signal_frame: true,
        ..row(X29, 0, AtCfa(0), AtCfa(8))
    };
    assert_eq!(Rule::from_dwarf(&old), Rule::SIGNAL);
    let other = DwarfRow {
        is_signal_frame: true,
        ..row(SP, 16, AtCfa(-16), AtCfa(-8))
    };
    assert_eq!(Rule::from_dwarf(&other), Rule::UNSUPPORTED);
}

/// Rules of all frames, and the result of the walk.
#[allow(clippy::unwrap_used)] // a test's helper
fn recorded() -> (Vec<(Rule, Registers)>, Memory) {
    let (mut frames, mut memory) = (Vec::new(), Memory(HashMap::new()));
    for line in include_str!("recorded.txt").lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let hex = |index: usize| u64::from_str_radix(fields[index], 16).unwrap();
        let place = |field: &str| match field {
            "-" => DwarfPlace::Unspecified,
            "undefined" => DwarfPlace::Undefined,
            offset => DwarfPlace::AtCfa(offset.parse().unwrap()),
        };
        match fields[0] {
            "word" => {
                memory.0.insert(hex(1), hex(2));
            }
            "frame" => {
                let rule = if fields[4] == "signal" {
                    Rule::SIGNAL
                } else {
                    Rule::from_dwarf(&row(
                        fields[4].parse().unwrap(),
                        fields[5].parse().unwrap(),
                        place(fields[6]),
                        place(fields[7]),
                    ))
                };
                let at = Registers {
                    return_address: hex(1),
                    sp: hex(2),
                    bp: hex(3),
                };
                frames.push((rule, at));
            }
            comment => assert_eq!(comment, "#"),
        }
    }
    (frames, memory)
}

#[test]
fn a_recorded_stack_is_walked_to_its_root_as_libgcc_walked_it() {
    let (frames, mut memory) = recorded();
    let (mut at, mut link, mut links) = (frames[0].1, None, 0);
    for (index, &(rule, expected)) in frames.iter().enumerate() {
        assert_eq!(at, expected, "frame {index}");
        let next = rule.step(at, 0, link, &mut memory);
        link = None;
        if rule == Rule::SIGNAL {
            link = interrupted_link(at.sp, &mut memory);
            links += 1;
            assert!(!frames[index + 1].0.is_plain(), "it has interrupted a leaf");
        }
        if index + 1 == frames.len() {
            assert_eq!(next, Err(Stop::Outermost));
        } else {
            at = next.unwrap();
        }
    }
    assert_eq!((frames.len(), links), (17, 1));
    let signed = memory.0.values().filter(|&&word| word >> 48 != 0);
    assert!(signed.count() >= 10, "the recording has signatures");
}
