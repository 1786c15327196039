//! Tests of stack words that change between captures: the verified stack cache never uses a stale part of the last stack.
//!
//! The stacks are synthetic: they are made in an array on the real stack, from return addresses whose rules are known. A
//! capture with a full cache must equal a capture with an empty one.

use std::collections::BTreeSet;
use std::ffi::c_void;

use crate::unwinder::{Recorder, libgcc};
use heapray::capture::arch::{Registers, registers_here};
use heapray_c_fixtures::{
    CAPTURE, FUNCTIONS, Program, recurse_carrying_with, recurse_carrying_without, recurse_with,
    recurse_without,
};
use proptest::prelude::*;

const WORDS: usize = 160;
/// Number of zeros beyond the words. They end every stack before the test's own frames, which change while the test runs.
/// The largest frame of a known function is smaller.
const ZEROS: usize = 4096;

/// A word of a synthetic stack.
#[derive(Debug, Clone, Copy)]
enum Word {
    /// One of the known return addresses of functions with small frames.
    Return(usize),
    /// Any known return address.
    AnyReturn(usize),
    /// The address of the word that is so many words further out: a frame pointer.
    Outward(usize),
    /// The address of any word.
    Slot(usize),
    /// A value that is not an address.
    Number(u64),
}

#[derive(Debug, Clone)]
struct Change {
    words: Vec<(usize, Word)>,
    leaf: usize,
    sp: usize,
    bp: Word,
}

/// Frames are aligned to 16 bytes, so a return address can be in every second word. (On AArch64, functions without a frame
/// pointer have it in the other words: they push `x30` alone, or before another register.)
fn word(index: usize) -> impl Strategy<Value = (usize, Word)> {
    let (addresses, pointers) = match index % 2 {
        1 => (40, 4),
        _ if cfg!(target_arch = "aarch64") => (34, 10),
        _ => (6, 20),
    };
    let word = prop_oneof![
        addresses => (0usize..1000).prop_map(Word::Return),
        1 => (0usize..1000).prop_map(Word::AnyReturn),
        pointers => (0usize..20).prop_map(Word::Outward),
        1 => (0..WORDS).prop_map(Word::Slot),
        1 => prop_oneof![Just(0), Just(1), any::<u64>()].prop_map(Word::Number),
    ];
    (Just(index), word)
}

/// Usually few words change, and the walk begins near its previous beginning.
fn change() -> impl Strategy<Value = Change> {
    let any_word = || (0..WORDS).prop_flat_map(word);
    let words = prop_oneof![
        6 => prop::collection::vec(any_word(), 0..3),
        1 => prop::collection::vec(any_word(), 0..40),
    ];
    let bp = prop_oneof![3 => Just(Word::Slot(40)), 2 => word(0).prop_map(|(_, word)| word)];
    let fields = (words, 0usize..4, 0usize..24, bp);
    fields.prop_map(|(words, leaf, sp, bp)| Change {
        words,
        leaf,
        sp,
        bp,
    })
}

/// Returns return addresses with all kinds of rules, from real stacks, and those of functions with small frames.
fn known_addresses() -> (Vec<u64>, Vec<u64>) {
    thread_local! {
        static FOUND: std::cell::RefCell<BTreeSet<u64>> = const { std::cell::RefCell::new(BTreeSet::new()) };
    }
    unsafe extern "C" fn leaf(_: *mut c_void) {
        FOUND.with_borrow_mut(|found| found.extend(libgcc()));
    }
    unsafe extern "C" fn capture(_: *mut Program) {
        // SAFETY: the callback takes any argument.
        unsafe { leaf(std::ptr::null_mut()) }
    }
    for recurse in [
        recurse_with,
        recurse_without,
        recurse_carrying_with,
        recurse_carrying_without,
    ] {
        // SAFETY: `leaf` takes any argument.
        unsafe { recurse(30, leaf, std::ptr::null_mut()) };
    }
    let small = FOUND.with_borrow(|found| {
        found
            .iter()
            .copied()
            .filter(|address| is_in_recursion(*address))
            .collect()
    });
    let bytes: Vec<u8> = (0..FUNCTIONS.len() as u8).chain([CAPTURE]).collect();
    let range = bytes.as_ptr_range();
    let functions = FUNCTIONS.as_ptr();
    let mut program = Program {
        next: range.start,
        end: range.end,
        functions,
        count: FUNCTIONS.len(),
        capture,
    };
    // SAFETY: the program is valid, and the functions are made to run it.
    unsafe { FUNCTIONS[0](&mut program) };
    (
        FOUND.with_borrow(|found| {
            found
                .iter()
                .copied()
                .filter(|&address| address != 0)
                .collect()
        }),
        small,
    )
}

/// Returns whether the address is in the recursive C functions.
fn is_in_recursion(address: u64) -> bool {
    let functions = [
        recurse_with as *const () as u64,
        recurse_without as *const () as u64,
        recurse_carrying_with as *const () as u64,
        recurse_carrying_without as *const () as u64,
    ];
    functions
        .iter()
        .any(|function| address.abs_diff(*function) < 0x100)
}

#[test]
fn a_cached_stack_is_never_reused_after_a_word_of_it_has_changed() {
    let (known, small) = known_addresses();
    assert!(known.len() > 30 && small.len() > 3);
    let lengths = std::cell::RefCell::new(Vec::new());
    let strategy = (
        (0..WORDS).map(word).collect::<Vec<_>>(),
        prop::collection::vec(change(), 1..60),
    );
    let config = ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let outcome = runner.run(&strategy, |(first, changes)| {
        let mut stack = [0u64; WORDS + ZEROS];
        let base = usize::from(!(stack.as_ptr() as usize).is_multiple_of(16));
        let start = &raw const stack[base] as u64;
        let value = |index: usize, word: Word| match word {
            Word::Return(number) => small[number % small.len()],
            Word::AnyReturn(number) => known[number % known.len()],
            Word::Outward(more) => start + ((index + more) & !1) as u64 * 8,
            Word::Slot(slot) => start + (slot & !1) as u64 * 8,
            Word::Number(number) => number,
        };
        for (index, word) in first {
            stack[base + index] = value(index, word);
        }
        let mut keeping = Recorder::new();
        for change in changes {
            for &(index, word) in &change.words {
                stack[base + index] = value(index, word);
            }
            let stack = std::hint::black_box(&stack);
            let registers = Registers {
                return_address: small[change.leaf % small.len()],
                sp: &raw const stack[base + (change.sp & !1)] as u64,
                bp: value(change.sp, change.bp),
            };
            let mut knowing_nothing = Recorder::new();
            // SAFETY: the synthetic frames lie in a live array of this function, above its stack pointer.
            let (kept, fresh) = unsafe {
                (
                    keeping.capture(registers),
                    knowing_nothing.capture(registers),
                )
            };
            prop_assert_eq!(&kept, &fresh);
            lengths.borrow_mut().push(fresh.addresses.len());
            knowing_nothing.release();
        }
        keeping.release();
        Ok(())
    });
    outcome.unwrap();
    // The synthetic stacks are long enough for a meaningful test.
    let lengths = lengths.into_inner();
    let long = lengths.iter().filter(|&&length| length > 8).count();
    assert!(long * 20 > lengths.len(), "{long} of {}", lengths.len());
}

#[test]
fn a_return_address_that_changes_deep_in_the_stack_is_noticed() {
    struct Scene {
        recorder: Recorder,
        others: Vec<u64>,
    }
    unsafe extern "C" fn leaf(scene: *mut c_void) {
        // SAFETY: the scene below. The registers are this function's own, which holds no return addresses itself.
        unsafe { poke(&mut *scene.cast(), registers_here()) }
    }
    #[inline(never)]
    unsafe fn poke(scene: &mut Scene, registers: Registers) {
        // SAFETY: the caller's registers.
        let before = unsafe { scene.recorder.capture(registers) };
        for depth in 1..30 {
            let address = before.addresses[depth];
            let other = *scene
                .others
                .iter()
                .find(|&&other| other != address)
                .unwrap();
            let same_before = before.addresses[1..depth]
                .iter()
                .filter(|&&inner| inner == address)
                .count();
            // SAFETY: the stack above that frame is readable.
            let slot = (0..4000)
                .map(|word| (registers.sp as *mut u64).wrapping_add(word))
                .filter(|&slot| unsafe { slot.read_volatile() == address })
                .nth(same_before)
                .unwrap();
            // SAFETY: the word is put back before anything returns through it.
            let after = unsafe {
                slot.write_volatile(other);
                let after = scene.recorder.capture(registers);
                slot.write_volatile(address);
                after
            };
            assert_eq!(before.addresses[..depth], after.addresses[..depth]);
            assert_eq!(after.addresses[depth], other);
            // SAFETY: as above.
            assert_eq!(before, unsafe { scene.recorder.capture(registers) });
        }
    }
    let mut scene = Scene {
        recorder: Recorder::new(),
        others: known_addresses().0,
    };
    // SAFETY: `leaf` takes the scene.
    unsafe { recurse_without(40, leaf, (&raw mut scene).cast()) };
}
