//! Tests a program whose start code has no unwind information, as with musl: its stacks are complete, and gaps in them are
//! still found.

use std::ffi::c_void;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use crate::support::turn;
use crate::unwinder::{Recorder, Stack};
use heapray::capture::arch::{is_main_thread, registers_here};
use heapray::capture::modules;
use heapray::collector::snapshot::RawNode;

// These functions have no unwind information. The first does the same as glibc's `_start`, with a `main` of this file. The
// second calls its first argument with its second one. Both leave 1 in the frame pointer, as musl leaves the number of
// arguments.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text",
    ".globl start_undescribed",
    ".p2align 4",
    "nop",
    "start_undescribed:",
    "mov ebp, 1",
    "mov r9, rdx",
    "pop rsi",
    "mov rdx, rsp",
    "and rsp, -16",
    "push 0",
    "push rsp",
    "xor r8d, r8d",
    "xor ecx, ecx",
    "lea rdi, [rip + main_undescribed]",
    "call [rip + __libc_start_main@GOTPCREL]",
    "hlt",
    ".globl call_undescribed",
    "call_undescribed:",
    "push rbp",
    "mov ebp, 1",
    "mov rax, rdi",
    "mov rdi, rsi",
    "call rax",
    "pop rbp",
    "ret",
    "nop",
    ".popsection",
);
#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".pushsection .text",
    ".globl start_undescribed",
    ".p2align 4",
    "nop",
    "start_undescribed:",
    "mov x29, #1",
    "mov x30, #0",
    "mov x5, x0",
    "ldr x1, [sp]",
    "add x2, sp, #8",
    "mov x6, sp",
    "adrp x0, main_undescribed",
    "add x0, x0, :lo12:main_undescribed",
    "mov x3, #0",
    "mov x4, #0",
    "bl __libc_start_main",
    "brk #1",
    ".globl call_undescribed",
    "call_undescribed:",
    "stp x29, x30, [sp, #-16]!",
    "mov x29, #1",
    "mov x9, x0",
    "mov x0, x1",
    "blr x9",
    "ldp x29, x30, [sp], #16",
    "ret",
    "nop",
    ".popsection",
);

unsafe extern "C" {
    fn start_undescribed();
    fn call_undescribed(callback: unsafe extern "C" fn(*mut c_void), argument: *mut c_void);
}

/// Offset of the program's start address in the file's header (gABI, "ELF Header": `e_entry`).
const ENTRY: u64 = 24;
/// The copy's exit status, which nothing else uses.
const AS_EXPECTED: i32 = 43;

struct Scene {
    recorder: Recorder,
    stack: Stack,
}

unsafe extern "C" fn capture(scene: *mut c_void) {
    // SAFETY: the scene of the test, and this function's own registers.
    unsafe {
        let scene = &mut *scene.cast::<Scene>();
        scene.stack = scene.recorder.capture(registers_here());
    }
}

fn scene() -> Scene {
    Scene {
        recorder: Recorder::new(),
        stack: Stack::default(),
    }
}

#[test]
fn a_program_without_unwind_information_at_its_start_has_complete_stacks_and_its_gaps_are_found() {
    // Waits for the turn: a process that another test starts at this moment would hold the copy open for writing.
    let _turn = turn();
    modules::refresh();
    let history = modules::history();
    let program = history.iter().find(|module| module.is_main).unwrap();
    let entry = start_undescribed as *const () as u64 - program.load_bias;
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("starts-undescribed-{}", std::process::id()));
    std::fs::copy(&program.path, &copy).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&copy).unwrap();
    file.write_all_at(&entry.to_ne_bytes(), ENTRY).unwrap();
    drop(file);
    let output = Command::new(&copy).output();
    std::fs::remove_file(&copy).unwrap();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(AS_EXPECTED), "{output:?}");
}

/// The copy's `main`. A panic ends the process.
#[unsafe(no_mangle)]
extern "C" fn main_undescribed() -> i32 {
    assert!(is_main_thread());
    let mut scene = scene();
    for _ in 0..3 {
        // SAFETY: `capture` takes the scene.
        unsafe { capture((&raw mut scene).cast()) };
        assert_eq!(scene.stack.mark, None);
        let start = start_undescribed as *const () as u64;
        let outermost = *scene.stack.addresses.last().unwrap();
        assert!((start..start + 64).contains(&outermost), "{outermost:#x}");
    }
    assert_eq!(scene.recorder.unwinder.counts().incomplete, 0);
    calls_through_a_gap();
    AS_EXPECTED
}

/// Checks complete stacks before and after a gap, and incomplete ones inside it.
fn calls_through_a_gap() {
    let mut scene = scene();
    let place = (&raw mut scene).cast();
    for round in 1..4 {
        // SAFETY: `capture` takes the scene.
        unsafe {
            capture(place);
            assert_eq!(scene.stack.mark, None);
            call_undescribed(capture, place);
            assert_eq!(scene.stack.mark, Some(RawNode::INCOMPLETE));
            assert_eq!(scene.stack.addresses.len(), 2);
        }
        assert_eq!(scene.recorder.unwinder.counts().incomplete, round);
    }
}

#[test]
fn code_without_unwind_information_in_the_middle_of_a_threads_stack_is_a_gap() {
    std::thread::spawn(calls_through_a_gap).join().unwrap();
}
