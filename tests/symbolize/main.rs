//! Snapshots of this very process, resolved and compared with what other symbolizers say.

#![allow(clippy::unwrap_used)] // helpers of tests count as no test

mod process;

use heapray::symbolize::{ReportOptions, resolve};
use process::{backtrace_frames, here, snapshot_of, stack_frames};

#[inline(never)]
fn outermost() -> Vec<u64> {
    let stack = middle();
    std::hint::black_box(stack)
}

fn middle() -> Vec<u64> {
    generic(7u8, || std::hint::black_box(here()))
}

#[inline(always)]
fn generic<T, R>(value: T, call: impl Fn() -> R) -> R {
    let result = call();
    std::hint::black_box(&value);
    result
}

#[test]
fn a_real_call_stack_resolves_as_the_backtrace_crate_does() {
    let stack = outermost();
    let snapshot = snapshot_of(&stack);
    let resolved = resolve(
        &snapshot,
        &ReportOptions {
            full: true,
            ..ReportOptions::default()
        },
    );
    let ours = stack_frames(&resolved.report, resolved.report.sites[0].stack);
    let theirs = backtrace_frames(&stack);
    assert_eq!(ours, theirs);
    assert!(ours.len() > 10, "{ours:?}");
}
