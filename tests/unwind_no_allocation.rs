//! Tests that a capture never calls the allocator, or a function of libc that allocates.
//!
//! Calls of Rust's global allocator are counted, and calls of `malloc` itself, which this program interposes.
//!
//! The test is a program of its own, because it has allocators of its own.
#![cfg(all(heapray_native, target_env = "gnu"))]
#![allow(clippy::unwrap_used)]

#[path = "support/unwinder.rs"]
mod unwinder;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use heapray::capture::arch::registers_here;
use heapray_c_fixtures::{recurse_with, recurse_without};
use unwinder::Recorder;

static RUST: AtomicU64 = AtomicU64::new(0);
static C: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: passes every call on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        RUST.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller guarantees it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        RUST.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller guarantees it.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
}

/// Takes the place of glibc's in the whole process.
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    C.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the real one.
    unsafe { __libc_malloc(size) }
}

/// Takes the place of glibc's in the whole process.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(block: *mut c_void) {
    C.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the real one.
    unsafe { __libc_free(block) }
}

fn counts() -> (u64, u64) {
    (RUST.load(Ordering::Relaxed), C.load(Ordering::Relaxed))
}

unsafe extern "C" fn capture(recorder: *mut c_void) {
    // SAFETY: the recorder of the test, and this function's own registers.
    unsafe {
        let recorder = &mut *recorder.cast::<Recorder>();
        let before = counts();
        for _ in 0..3 {
            black_box(
                recorder
                    .unwinder
                    .capture(registers_here(), &mut recorder.tree),
            );
        }
        assert_eq!(counts(), before, "a capture allocates nothing");
    }
}

#[test]
fn a_capture_allocates_nothing_on_any_path() {
    let before = counts();
    drop(black_box(Box::new([1u64; 4])));
    // SAFETY: a block of malloc's own.
    unsafe { libc::free(black_box(libc::malloc(10))) };
    let after = counts();
    assert!(
        after.0 >= before.0 + 2 && after.1 >= before.1 + 4,
        "the counters work"
    );

    let run = || {
        let mut recorder = Recorder::new();
        let argument = (&raw mut recorder).cast();
        // These paths include first captures, growing tables, cut stacks and new call paths.
        for depth in [0, 3, 200, 5, 5_000, 4_000, 100, 2_500] {
            // SAFETY: `capture` takes the recorder.
            unsafe {
                recurse_with(depth, capture, argument);
                recurse_without(depth, capture, argument);
            }
        }
        assert!(recorder.unwinder.counts().cut > 0);
        assert!(
            recorder.tree.count() > 3_000,
            "{} nodes",
            recorder.tree.count()
        );
    };
    std::thread::Builder::new()
        .stack_size(32 << 20)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap();
}
