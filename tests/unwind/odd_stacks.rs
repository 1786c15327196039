//! Tests of odd stacks: signal handlers, coroutines, long jumps, very deep recursion.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::unwinder::{Recorder, Stack, libgcc};
use heapray::capture::arch::registers_here;
use heapray::capture::unwind::{LEAST_DEPTH, MAX_DEPTH, StackCounts};
use heapray::collector::snapshot::RawNode;
use heapray_c_fixtures::{
    jump_out_with, jump_out_without, land_with, land_without, recurse_with, recurse_without,
};

thread_local! {
    static RECORDER: RefCell<Recorder> = RefCell::new(Recorder::new());
    static SEEN: RefCell<Vec<Stack>> = const { RefCell::new(Vec::new()) };
}

/// Captures, compares the stack with libgcc's, and stores it.
fn check() -> Stack {
    let stack = RECORDER.with_borrow_mut(Recorder::check);
    SEEN.with_borrow_mut(|seen| seen.push(stack.clone()));
    stack
}

fn last_seen() -> Stack {
    SEEN.with_borrow(|seen| seen.last().unwrap().clone())
}

fn counts() -> StackCounts {
    RECORDER.with_borrow(|recorder| recorder.unwinder.counts())
}

unsafe extern "C" fn check_callback(_: *mut c_void) {
    check();
}

#[test]
fn a_panic_that_unwinds_through_recorded_frames_leaves_nothing_stale() {
    fn down(left: u32, to_panic_at: u32) {
        let room = black_box([left; 5]);
        check();
        assert!(left != to_panic_at, "expected");
        if left > 0 {
            down(left - 1, to_panic_at);
        }
        check();
        black_box(room);
    }
    std::panic::set_hook(Box::new(|_| {}));
    for round in 0..20 {
        check();
        let outcome = std::panic::catch_unwind(|| down(20, round));
        assert!(outcome.is_err());
        check();
        down(round % 5, u32::MAX);
    }
    let _ = std::panic::take_hook();
    assert_eq!(counts(), StackCounts::default());
}

#[test]
fn a_jump_out_of_deep_frames_leaves_nothing_stale() {
    unsafe extern "C" fn jump_with(_: *mut c_void) {
        check();
        // SAFETY: called below `land_with` only.
        unsafe { jump_out_with() }
    }
    unsafe extern "C" fn jump_without(_: *mut c_void) {
        check();
        // SAFETY: called below `land_without` only.
        unsafe { jump_out_without() }
    }
    unsafe extern "C" fn deep_with(depth: *mut c_void) {
        // SAFETY: the callback takes any argument.
        unsafe { recurse_without(depth as u64, jump_with, depth) }
    }
    unsafe extern "C" fn deep_without(depth: *mut c_void) {
        // SAFETY: the callback takes any argument.
        unsafe { recurse_with(depth as u64, jump_without, depth) }
    }
    for depth in [0, 1, 30, 3, 60, 2] {
        let depth = std::ptr::without_provenance_mut::<c_void>(depth);
        // SAFETY: nothing that is jumped over needs dropping.
        unsafe {
            land_with(deep_with, check_callback, depth);
            land_without(deep_without, check_callback, depth);
            land_with(deep_with, deep_again, depth);
        }
    }
    unsafe extern "C" fn deep_again(depth: *mut c_void) {
        // SAFETY: the callback takes any argument.
        unsafe { recurse_with(depth as u64 / 2, check_callback, depth) }
    }
}

extern "C" fn on_signal(_: i32) {
    check();
    // The second capture finds the cache that the first one has filled.
    check();
}

fn install(signal: i32, flags: i32) {
    install_handler(signal, flags, on_signal);
}

fn install_handler(signal: i32, flags: i32, handler: extern "C" fn(i32)) {
    // SAFETY: a handler of the right type; the mask is empty.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(signal, &action, null_mut()), 0);
    }
}

fn raise(signal: i32) {
    // SAFETY: a handler is installed.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

#[test]
fn a_signal_handler_and_the_interrupted_code_are_one_stack() {
    unsafe extern "C" fn raise_usr1(_: *mut c_void) {
        check();
        raise(libc::SIGUSR1);
        check();
    }
    install(libc::SIGUSR1, 0);
    for depth in [0, 10, 40, 11] {
        // SAFETY: the callback takes any argument.
        unsafe { recurse_without(depth, raise_usr1, null_mut()) };
        let in_handler = SEEN.with_borrow(|seen| seen[seen.len() - 2].clone());
        assert!(in_handler.addresses.len() > last_seen().addresses.len() + 2);
        assert_eq!(in_handler.mark, None);
    }
    assert_eq!(counts(), StackCounts::default());
}

#[test]
fn a_handler_on_a_stack_of_its_own_is_marked_and_followed_to_the_interrupted_stack() {
    let mut room = vec![0u8; 256 << 10];
    let stack = libc::stack_t {
        ss_sp: room.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: room.len(),
    };
    // SAFETY: the room lives until the alternate stack is disabled below.
    assert_eq!(unsafe { libc::sigaltstack(&stack, null_mut()) }, 0);
    install(libc::SIGUSR2, libc::SA_ONSTACK);
    unsafe extern "C" fn raise_usr2(_: *mut c_void) {
        check();
        raise(libc::SIGUSR2);
        let in_handler = last_seen();
        assert_eq!(in_handler.mark, Some(RawNode::FOREIGN));
        assert_eq!(check().mark, None);
    }
    for depth in [0, 30, 3] {
        // SAFETY: the callback takes any argument.
        unsafe { recurse_with(depth, raise_usr2, null_mut()) };
    }
    let none = libc::stack_t {
        ss_sp: null_mut(),
        ss_flags: libc::SS_DISABLE,
        ss_size: 0,
    };
    // SAFETY: no handler is running.
    assert_eq!(unsafe { libc::sigaltstack(&none, null_mut()) }, 0);
    assert_eq!(counts(), StackCounts::default());
}

#[test]
fn the_stack_of_code_that_is_interrupted_anywhere_is_complete() {
    extern "C" fn on_signal(_: i32) {
        HANDLED.with(|handled| handled.set(handled.get() + 1));
        check();
    }
    thread_local! {
        static HANDLED: Cell<u32> = const { Cell::new(0) };
    }
    unsafe extern "C" fn work(_: *mut c_void) {
        let mut sorted: [u64; 300] =
            std::array::from_fn(|index| (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        black_box(&mut sorted).sort_unstable();
    }
    install_handler(libc::SIGURG, 0, on_signal);
    check();
    // SAFETY: no precondition.
    let target = unsafe { libc::pthread_self() };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Signals interrupt prologues, epilogues and leaf functions: code between calls.
            while !done.load(Ordering::Relaxed) {
                // SAFETY: the target waits for this thread.
                unsafe { libc::pthread_kill(target, libc::SIGURG) };
                std::thread::yield_now();
            }
        });
        for depth in 0.. {
            // The code here captures and allocates nothing itself, so a handler never finds the recorder in use.
            // SAFETY: the callback takes any argument.
            unsafe { recurse_without(depth % 40, work, null_mut()) };
            if HANDLED.get() > 300 {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_coroutine_is_captured_on_its_own_stack_and_leaves_the_threads_stack_kept() {
    thread_local! {
        static MAIN: Cell<*mut libc::ucontext_t> = const { Cell::new(null_mut()) };
        static OTHER: Cell<*mut libc::ucontext_t> = const { Cell::new(null_mut()) };
    }
    extern "C" fn coroutine() {
        for depth in 0.. {
            // SAFETY: the callback takes any argument.
            unsafe { recurse_without(depth % 20, check_callback, null_mut()) };
            assert_eq!(last_seen().mark, Some(RawNode::FOREIGN));
            // SAFETY: both contexts live as long as the test.
            unsafe { libc::swapcontext(OTHER.get(), MAIN.get()) };
        }
    }
    let mut stacks: Vec<Vec<u8>> = (0..3).map(|_| vec![0u8; 128 << 10]).collect();
    for stack in &mut stacks {
        // SAFETY: contexts and stack live until the coroutine is left for good.
        unsafe {
            let mut contexts: Box<[libc::ucontext_t; 2]> = Box::new(std::mem::zeroed());
            assert_eq!(libc::getcontext(&mut contexts[1]), 0);
            contexts[1].uc_stack.ss_sp = stack.as_mut_ptr().cast();
            contexts[1].uc_stack.ss_size = stack.len();
            let [main, other] = &mut *contexts;
            // The context at which the program goes on after the function: a word beyond the last frame, not a return
            // address.
            other.uc_link = main;
            MAIN.set(main);
            OTHER.set(other);
            libc::makecontext(other, coroutine, 0);
            for _ in 0..30 {
                assert_eq!(check().mark, None);
                libc::swapcontext(MAIN.get(), OTHER.get());
                assert_eq!(check().mark, None);
            }
        }
    }
    // On AArch64, glibc 2.36 does not mark a coroutine's first function as the outermost one. glibc 2.43 does.
    let expected = StackCounts {
        incomplete: if cfg!(target_arch = "aarch64") {
            counts().incomplete
        } else {
            0
        },
        cut: 0,
    };
    assert_eq!(counts(), expected);
}

#[test]
fn a_coroutine_whose_stack_was_unmapped_is_never_read_again() {
    thread_local! {
        static BACK: Cell<*mut libc::ucontext_t> = const { Cell::new(null_mut()) };
    }
    extern "C" fn once() {
        assert_eq!(check().mark, Some(RawNode::FOREIGN));
        // SAFETY: the context that started this one.
        unsafe { libc::setcontext(BACK.get()) };
    }
    check();
    for _ in 0..50 {
        const SIZE: usize = 64 << 10;
        // SAFETY: the mapping is used as a stack until it is unmapped, and then no code runs on it.
        unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let stack = libc::mmap(null_mut(), SIZE, protection, flags, -1, 0);
            assert_ne!(stack, libc::MAP_FAILED);
            let mut back: libc::ucontext_t = std::mem::zeroed();
            let mut context: libc::ucontext_t = std::mem::zeroed();
            assert_eq!(libc::getcontext(&mut context), 0);
            context.uc_stack.ss_sp = stack;
            context.uc_stack.ss_size = SIZE;
            context.uc_link = &mut back;
            BACK.set(&mut back);
            libc::makecontext(&mut context, once, 0);
            assert_eq!(libc::swapcontext(&mut back, &context), 0);
            assert_eq!(libc::munmap(stack, SIZE), 0);
        }
        assert_eq!(check().mark, None);
    }
}

/// Captures, and compares the innermost addresses with libgcc's.
fn check_cut() -> Stack {
    let registers = registers_here();
    // SAFETY: this function's own registers.
    let stack = RECORDER.with_borrow_mut(|recorder| unsafe { recorder.capture(registers) });
    let theirs = libgcc();
    let ours = &stack.addresses;
    assert_eq!(ours[1..], theirs[2..ours.len() + 1]);
    if stack.mark.is_none() {
        assert_eq!(ours.len(), theirs.len() - 1);
    }
    assert!(
        stack.mark != Some(RawNode::CUT) || ours.len() >= LEAST_DEPTH,
        "the innermost {} frames of {}",
        ours.len(),
        theirs.len()
    );
    assert_eq!(
        stack.mark == Some(RawNode::CUT),
        theirs.len() - 1 > MAX_DEPTH,
        "{} deep",
        theirs.len()
    );
    stack
}

#[test]
fn only_a_stack_that_is_too_deep_is_cut_and_marked() {
    unsafe extern "C" fn leaf(lengths: *mut c_void) {
        let stack = check_cut();
        // SAFETY: the list below.
        unsafe { &mut *lengths.cast::<Vec<usize>>() }.push(stack.addresses.len());
    }
    let run = || {
        let mut lengths: Vec<usize> = Vec::new();
        let list = (&raw mut lengths).cast();
        let depths = [
            10, 10_000, 10_001, 9_999, 2_700, 2_710, 2_720, 2_730, 4_600, 2_715, 2_650, 9_000,
            6_000, 100,
        ];
        for depth in depths {
            // SAFETY: `leaf` takes the list.
            unsafe { recurse_without(depth, leaf, list) };
        }
        assert!(
            lengths[1..4]
                .iter()
                .all(|length| (LEAST_DEPTH..=MAX_DEPTH).contains(length))
        );
        assert!(lengths[0] > 10 && lengths[13] > 100);
        assert!(counts().cut >= 6);
    };
    on_a_large_stack(run);
}

fn on_a_large_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn a_stack_that_crosses_the_limit_step_by_step_down_and_up_is_always_right() {
    fn down(left: u32) {
        let room = black_box([left; 3]);
        if left.is_multiple_of(7) {
            check_cut();
        }
        if left > 0 {
            down(left - 1);
        }
        if left.is_multiple_of(5) {
            check_cut();
        }
        black_box(room);
    }
    let run = || {
        down(6_300);
        let nodes = RECORDER.with_borrow(|recorder| recorder.tree.count());
        assert!(
            nodes < 6_300 * 20,
            "{nodes} nodes: each cut stack needs new nodes for all its frames"
        );
    };
    on_a_large_stack(run);
}

#[test]
fn an_unwinder_can_be_passed_from_thread_to_thread() {
    let mut handed = Recorder::new();
    for _ in 0..20 {
        handed = std::thread::spawn(move || {
            handed.unwinder.begin_thread();
            for _ in 0..3 {
                assert_eq!(handed.check().mark, None);
            }
            handed
        })
        .join()
        .unwrap();
    }
}
