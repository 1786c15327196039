//! Tests of symbolization: stacks of real processes are resolved and compared with other symbolizers.
//!
//! The tests are a program of their own, because it has a global allocator, and because tests read its code at random, and
//! strip and replace its file.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // clippy does not count helpers of tests as tests

mod allocations;
mod child;
mod later;
mod modes;
mod oracles;
mod process;

use std::hint::black_box;

use heapray::symbolize::{NameMode, ReportOptions, resolve};

use process::{here, modules, stack_frames, stack_table};

/// All frames, with the names that other symbolizers use.
const FULL: ReportOptions = ReportOptions::new().full(true).names(NameMode::Full);

/// The line of each call in the functions below, counted from here.
const ANCHOR: u32 = line!();

#[inline(never)]
fn deepest() -> Vec<u64> {
    black_box(here())
}

#[inline(always)]
fn inlined<T>(value: T, call: impl Fn() -> Vec<u64>) -> Vec<u64> {
    let stack = call();
    black_box(&value);
    stack
}

#[inline(never)]
fn caller() -> Vec<u64> {
    let stack = inlined("a type", || black_box(deepest()));
    black_box(stack)
}

#[test]
fn every_frame_of_a_real_call_stack_has_its_function_file_and_line() {
    let stack = caller();
    let options = FULL.names(NameMode::Plain);
    let resolved = resolve(
        &stack_table(modules(), std::slice::from_ref(&stack)),
        &options,
    );
    let report = &resolved.report;
    let ours = stack_frames(report, report.sites[0].stack);
    let expected = [
        ("symbolize::deepest", 4),
        ("symbolize::caller::{closure}", 16),
        ("symbolize::inlined", 9),
        ("symbolize::caller", 16),
    ];
    for ((function, file, line), (expected, below)) in ours.iter().zip(expected) {
        assert_eq!(function, expected);
        assert!(file.ends_with("/tests/symbolize/main.rs"), "{file}");
        assert_eq!(*line, ANCHOR + below, "{function}");
    }
    assert!(
        ours.len() > 10,
        "the stack ends with the thread's first function: {ours:?}"
    );
    assert!(
        report.conditions.notes.is_empty(),
        "{:?}",
        report.conditions.notes
    );
}
