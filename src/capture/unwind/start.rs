//! Finds out where stacks start, and whether a frame of code without unwind information is the first one of its stack.
//!
//! A libc may have no unwind information at all (musl has none). Then the code that calls `main` or a thread's function has
//! none either, and a walk that reaches this code has found the whole stack. But the same code can lie in the middle of a
//! stack, if described code has called it, such as a libc's `qsort` that calls back. Then the frames further out are
//! missing.
//!
//! To tell the two cases apart: a call leaves a return address on the stack. If no word between the frame and the start of
//! its stack can be a return address into described code, then no described code is further out, and nothing that a report
//! could name is missing.
//!
//! ```text
//! lower addresses            the frame's stack pointer             start of the stack
//!   … described frames, leaf │ words of the code that started it │ main thread: argc, argv, environment
//!                            └ at most `MOST_WORDS` are looked at │ others: thread-local variables, control block
//! ```
//! A walk decides this once for a frame: each word that was looked at is kept, and checked like the others.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::capture::arch::{self, Rule, StackSlots};
use crate::capture::modules::published;

/// Words of a stack that its starting code uses at most. musl uses 12.
const MOST_WORDS: u64 = 128;

/// Address at which the kernel has put `argc`, above the first frame of the main thread; 0 if that is not known.
static MAIN_START: AtomicU64 = AtomicU64::new(0);

/// Bytes between the start of a thread's stack and its thread pointer.
static ABOVE_START: AtomicU64 = AtomicU64::new(0);

/// Finds the starts of stacks. Called outside of hooks, before the first session.
pub(super) fn prepare() {
    if ABOVE_START.load(Ordering::Relaxed) == 0 {
        let bytes = arch::below_control_block(program_tls());
        ABOVE_START.store(bytes.next_multiple_of(8), Ordering::Relaxed);
    }
    if MAIN_START.load(Ordering::Relaxed) == 0 {
        MAIN_START.store(main_start().unwrap_or(0), Ordering::Relaxed);
    }
}

/// Returns the end of the first frame of the calling thread's stack; 0 if that is not known.
pub(super) fn of_this_thread(is_main: bool) -> u64 {
    if is_main {
        return MAIN_START.load(Ordering::Relaxed) & !7;
    }
    (arch::thread_pointer() & !7) - ABOVE_START.load(Ordering::Relaxed)
}

/// Code further out than a frame of code without unwind information.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FurtherOut {
    /// No code that has unwind information: none of the words up to this address is a return address.
    Nothing(u64),
    /// Perhaps described code: the word in this slot may be a return address.
    Perhaps(u64),
    /// The start is too far away to tell, or not known.
    Unknown,
}

/// Looks for return addresses from `sp` to the `start` of the stack.
#[cold]
pub(super) fn further_out(sp: u64, start: u64, slots: &mut impl StackSlots) -> FurtherOut {
    if sp & 7 != 0 || sp > start || start - sp > 8 * MOST_WORDS {
        return FurtherOut::Unknown;
    }
    for slot in (sp..start).step_by(8) {
        match slots.read(slot) {
            Some(word) if is_return_address(word) => return FurtherOut::Perhaps(slot),
            Some(_) => {}
            None => return FurtherOut::Unknown,
        }
    }
    FurtherOut::Nothing(start)
}

/// Returns whether a stack word may be a return address into described code.
///
/// The beginning of a function counts as the function's address, which lies on the stack of each thread that begins with it.
/// It is a return address only if the function directly before ends with a call that never returns. A stack is misjudged
/// only if all its frames further out are such ones, and only where a thread's own function ends with such a call, in
/// undescribed code that calls back.
pub(super) fn is_return_address(word: u64) -> bool {
    let address = arch::strip(word);
    let rule = |address| published::rule_at(address).unwrap_or(Rule::NONE);
    // As in walks: the code is that of the call, one byte before.
    let is_behind_a_call = rule(address.wrapping_sub(1)).may_call();
    is_behind_a_call && {
        let rule = rule(address);
        rule == Rule::NONE || rule.may_call()
    }
}

/// Returns the bytes from the start of the program's own thread-local variables up to the control block, where the variables
/// lie below it (Drepper, "ELF Handling for Thread-Local Storage", 3.4.1; the linker relies on that): their size, and the
/// padding that aligns their end.
fn program_tls() -> u64 {
    // SAFETY: look up numbers in the auxiliary vector.
    let (headers, count) = unsafe {
        (
            libc::getauxval(libc::AT_PHDR) as *const libc::Elf64_Phdr,
            libc::getauxval(libc::AT_PHNUM) as usize,
        )
    };
    if headers.is_null() || count == 0 {
        return 0;
    }
    // SAFETY: the program's own headers, where the kernel has mapped them; they stay.
    let headers = unsafe { core::slice::from_raw_parts(headers, count) };
    headers
        .iter()
        .find(|header| header.p_type == libc::PT_TLS)
        .map_or(0, |tls| {
            let align = tls.p_align.max(1);
            let end = tls.p_memsz.saturating_add(tls.p_vaddr);
            tls.p_memsz + (end.next_multiple_of(align) - end)
        })
}

/// Returns the start of the main thread's stack, as the kernel knows it: `startstack`, field 28 of `/proc/self/stat`
/// (`proc_pid_stat(5)`).
fn main_start() -> Option<u64> {
    // 52 fields of at most 20 digits, and a name of at most 64 bytes.
    let mut text = [0u8; 1280];
    // SAFETY: opens a file, reads at most as many bytes as there is room for, and closes it.
    let length = unsafe {
        let file = libc::open(
            c"/proc/self/stat".as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        );
        if file < 0 {
            return None;
        }
        let length = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        length
    };
    start_in(text.get(..usize::try_from(length).ok()?)?)
}

/// Returns `startstack` from the text of a `/proc/…/stat`. The name, which is field 2, stands in parentheses and may contain
/// any byte.
fn start_in(text: &[u8]) -> Option<u64> {
    const FIELDS_BEFORE: usize = 28 - 3;
    let name_end = text.iter().rposition(|&byte| byte == b')')?;
    let mut fields = text[name_end + 1..]
        .split(|&byte| byte == b' ')
        .filter(|field| !field.is_empty());
    let field = core::str::from_utf8(fields.nth(FIELDS_BEFORE)?).ok()?;
    field.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::ffi::c_void;

    use super::*;
    use crate::capture::arch::registers_here;
    use crate::capture::call_tree::CallTree;
    use crate::capture::modules;
    use crate::capture::unwind::{ThreadUnwinder, mark};

    // Calls its first argument with its second one and its own stack pointer. At that place lie both arguments, which
    // nothing uses afterwards, the caller's frame pointer and the return address. This function has no unwind information.
    #[cfg(target_arch = "x86_64")]
    std::arch::global_asm!(
        ".pushsection .text",
        "nop",
        ".globl heapray_test_call_undescribed",
        "heapray_test_call_undescribed:",
        "push rbp",
        "push rsi",
        "push rdi",
        "mov ebp, 1",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rsp",
        "call rax",
        "add rsp, 16",
        "pop rbp",
        "ret",
        "nop",
        ".popsection",
    );
    #[cfg(target_arch = "aarch64")]
    std::arch::global_asm!(
        ".pushsection .text",
        ".p2align 2",
        "nop",
        ".globl heapray_test_call_undescribed",
        "heapray_test_call_undescribed:",
        "stp x0, x1, [sp, #-32]!",
        "stp x29, x30, [sp, #16]",
        "mov x29, #1",
        "mov x9, x0",
        "mov x0, x1",
        "mov x1, sp",
        "blr x9",
        "ldp x29, x30, [sp, #16]",
        "add sp, sp, #32",
        "ret",
        "nop",
        ".popsection",
    );

    unsafe extern "C" {
        #[link_name = "heapray_test_call_undescribed"]
        fn call_undescribed(
            callback: unsafe extern "C" fn(*mut c_void, *mut u64),
            argument: *mut c_void,
        );
    }

    struct Scene {
        unwinder: ThreadUnwinder,
        tree: CallTree,
        seen: Vec<bool>,
    }

    impl Scene {
        fn new() -> Scene {
            modules::refresh();
            Scene {
                unwinder: ThreadUnwinder::new().unwrap(),
                tree: CallTree::new().unwrap(),
                seen: Vec::new(),
            }
        }

        /// Remembers whether the stack here is whole.
        #[inline(never)]
        fn look(&mut self) {
            // SAFETY: this function's own registers.
            let mut node = unsafe { self.unwinder.capture(registers_here(), &mut self.tree) };
            let mut outermost = 0;
            while node != 0 {
                (node, outermost) = self.tree.nodes().node(node);
            }
            self.seen.push(outermost != mark::INCOMPLETE);
        }
    }

    #[test]
    fn a_frame_without_rules_is_the_last_if_no_word_up_to_the_start_is_a_return_address() {
        unsafe extern "C" fn callback(scene: *mut c_void, sp: *mut u64) {
            // SAFETY: the scene below.
            let scene = unsafe { &mut *scene.cast::<Scene>() };
            let address = sp as u64;
            // Up to the return address; with it; unknown; so far that no word is looked at.
            for words in [3, 4, 0, MOST_WORDS + 1, 3] {
                scene.unwinder.begin_thread();
                let start = if words == 0 { 0 } else { address + 8 * words };
                scene.unwinder.starts_at(start);
                scene.look();
                scene.look();
            }
            // Words that a kept stack depends on.
            for slot in [0, 1, 0] {
                // SAFETY: the words are the caller's, which does not use them any more.
                unsafe {
                    let before = sp.add(slot).read_volatile();
                    sp.add(slot).write_volatile(registers_here().return_address);
                    scene.look();
                    scene.look();
                    sp.add(slot).write_volatile(before);
                }
                scene.look();
                scene.look();
            }
        }
        let run = || {
            let mut scene = Scene::new();
            // SAFETY: the callback takes the scene.
            unsafe { call_undescribed(callback, (&raw mut scene).cast()) };
            let at_starts = [true, false, false, false, true];
            let expected = at_starts.into_iter().chain([false, true].repeat(3));
            let twice: Vec<_> = expected.flat_map(|is_whole| [is_whole; 2]).collect();
            assert_eq!(scene.seen, twice);
            let incomplete = twice.iter().filter(|&&is_whole| !is_whole).count();
            assert_eq!(scene.unwinder.counts().incomplete, incomplete as u64);
        };
        std::thread::spawn(run).join().unwrap();
    }

    #[test]
    fn a_functions_address_is_not_a_return_address_and_one_behind_a_call_is() {
        modules::refresh();
        assert!(is_return_address(registers_here().return_address));
        assert!(!is_return_address(Scene::look as *const () as u64));
        assert!(!is_return_address(
            call_undescribed as *const () as u64 + 16
        ));
        assert!(!is_return_address(&raw const MAIN_START as u64));
        for number in [0, 1, u64::MAX] {
            assert!(!is_return_address(number));
        }
    }

    #[test]
    fn a_threads_stack_starts_below_the_programs_thread_local_variables() {
        thread_local! {
            static VARIABLE: Cell<u64> = const { Cell::new(1) };
        }
        prepare();
        for _ in 0..3 {
            let (here, start, variable, control) = std::thread::spawn(|| {
                let variable = VARIABLE.with(|variable| variable.as_ptr() as u64);
                let here = registers_here().sp;
                (
                    here,
                    of_this_thread(false),
                    variable,
                    arch::thread_pointer(),
                )
            })
            .join()
            .unwrap();
            assert!(here < start && start <= control);
            assert!(control - start < 16 << 10);
            assert!(start <= variable);
        }
    }

    #[test]
    fn the_main_threads_stack_starts_at_the_number_of_arguments() {
        prepare();
        let start = of_this_thread(true);
        // SAFETY: the main thread's stack, which stays; nobody writes to this word.
        let arguments = unsafe { (start as *const u64).read() };
        assert_eq!(arguments, std::env::args_os().len() as u64);
    }

    #[test]
    fn the_start_is_found_behind_any_name() {
        let fields: Vec<String> = (3..=52).map(|field| (field * 1000).to_string()).collect();
        for name in ["cat", "a b) S 1 2", ") (", ""] {
            let line = format!("7 ({name}) {}\n", fields.join(" "));
            assert_eq!(start_in(line.as_bytes()), Some(28_000), "{name}");
        }
        for odd in [
            "",
            "7 (cat",
            "7 (cat) S 1 2",
            "7 (cat) S x x x x x x x x x x x x x x x x x x x x x x x x x x x x",
        ] {
            assert_eq!(start_in(odd.as_bytes()), None);
        }
    }
}
