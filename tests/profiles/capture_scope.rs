//! Tests of capture scopes: with and without a session at the same time.

use std::fs::{self, File};
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::support::{Dir, turn};
use heapray::{CaptureScope, CaptureScopeReport, Profiler, capture_scope, capture_scope_async};
use heapray_report::memray;

const MIB: u64 = 1 << 20;

#[inline(never)]
fn hold_for_a_while(bytes: u64) -> u64 {
    let held = black_box(vec![1_u8; bytes as usize]);
    held.len() as u64
}

#[inline(never)]
fn keep(bytes: u64) -> Vec<u8> {
    black_box(vec![2_u8; bytes as usize])
}

/// Checks a sum, which may include a little from the test harness.
fn about(bytes: u64, expected: u64) {
    let near = expected..expected + MIB / 4;
    assert!(near.contains(&bytes), "{bytes} is not about {expected}");
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn recording(dir: &Path, sample: u64) -> Profiler {
    let builder = heapray::builder().ignore_environment().enabled(true);
    builder.dir(dir).sample(sample).build().unwrap()
}

/// Checks that all files exist and agree.
fn check(report: &CaptureScopeReport, hog: &str) {
    let index = text(&report.index);
    assert!(index.contains(hog) && index.ends_with("</html>\n"));
    assert_eq!(index.matches("<svg ").count(), 2);
    for svg in [&report.svg, &report.reversed_svg] {
        let svg = text(svg);
        assert!(svg.starts_with("<?xml") && svg.ends_with("</svg>\n"));
        assert!(svg.contains(hog));
    }
    assert!(text(&report.flamegraph).ends_with("</html>\n"));
    let folded = text(&report.collapsed);
    let bytes = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    assert_eq!(
        folded.lines().map(bytes).sum::<u64>(),
        report.high_water.bytes
    );
    let largest = folded.lines().max_by_key(|line| bytes(line)).unwrap();
    assert!(
        largest.contains(hog) && largest.contains("scope.rs:"),
        "{largest}"
    );
    let read = memray::read(File::open(&report.report).unwrap()).unwrap();
    assert_eq!(read.report.totals.high_water.bytes, report.high_water.bytes);
}

#[test]
fn without_a_session_a_scope_records_for_itself() {
    let _turn = turn();
    let dir = Dir::new("scope-own");
    let before = keep(4 * MIB);
    let (result, report) = capture_scope(dir.0.join("new/dir"), || {
        let kept = keep(MIB);
        hold_for_a_while(30 * MIB) + kept.len() as u64
    });
    drop(before);
    let after = keep(40 * MIB);
    assert_eq!(result, 31 * MIB);
    let report = report.unwrap();
    about(report.high_water.bytes, 31 * MIB);
    about(report.live.bytes, 0);
    check(&report, "capture_scope::hold_for_a_while");
    assert_eq!(heapray::status().state, heapray::State::Disabled);
    // The scope has ended its session, so a profiler can start one.
    let profiler = recording(&dir.0, 0);
    profiler.shutdown().unwrap();
    drop(after);
}

#[test]
fn scopes_in_a_session_have_their_own_marks_and_leave_the_session_alone() {
    let _turn = turn();
    let dir = Dir::new("scope-beside");
    let profiler = recording(&dir.0, 0);
    hold_for_a_while(50 * MIB);
    let before = keep(3 * MIB);
    let ((inner, kept), outer) = capture_scope(dir.0.join("outer"), || {
        drop(before);
        hold_for_a_while(8 * MIB);
        let kept = keep(2 * MIB);
        let ((), inner) = capture_scope(dir.0.join("inner"), || {
            hold_for_a_while(4 * MIB);
        });
        (inner.unwrap(), kept)
    });
    let (outer, status) = (outer.unwrap(), profiler.status());
    about(outer.high_water.bytes, 8 * MIB);
    about(outer.live.bytes, 2 * MIB);
    about(inner.high_water.bytes, 4 * MIB);
    about(inner.allocated.bytes, 4 * MIB);
    check(&outer, "capture_scope::hold_for_a_while");
    check(&inner, "capture_scope::hold_for_a_while");
    assert_eq!(status.state, heapray::State::Recording);
    assert!(status.high_water.bytes >= 50 * MIB);
    profiler.shutdown().unwrap();
    drop(kept);
}

#[test]
fn a_scope_whose_session_stops_during_it_has_everything_recorded_until_then() {
    let _turn = turn();
    let dir = Dir::new("scope-cut");
    let profiler = recording(&dir.0, 0);
    let ((), report) = capture_scope(dir.0.join("cut"), || {
        hold_for_a_while(5 * MIB);
        profiler.shutdown().unwrap();
        hold_for_a_while(20 * MIB);
    });
    let report = report.unwrap();
    about(report.high_water.bytes, 5 * MIB);
    assert!(text(&report.index).contains("the part ended early"));
}

#[test]
fn a_panic_goes_on_after_the_report_is_written() {
    let _turn = turn();
    let dir = Dir::new("scope-panic");
    let run = || {
        capture_scope(dir.0.clone(), || {
            hold_for_a_while(3 * MIB);
            std::panic::resume_unwind(Box::new("on purpose"));
        })
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).map(drop).unwrap_err();
    assert_eq!(*panic.downcast_ref::<&str>().unwrap(), "on purpose");
    assert!(text(&dir.0.join("index.html")).contains("hold_for_a_while"));
}

#[test]
fn the_result_is_returned_even_if_the_report_cannot_be_written() {
    let _turn = turn();
    let dir = Dir::new("scope-file");
    let file = dir.0.join("file");
    fs::write(&file, "").unwrap();
    let (result, report) = capture_scope(file.join("below"), || 7);
    assert_eq!(result, 7);
    let error = report.unwrap_err().to_string();
    assert!(error.contains("can't be written to"), "{error}");
}

#[test]
fn one_thread_alone_can_be_counted() {
    let _turn = turn();
    let dir = Dir::new("scope-thread");
    let ((), report) = CaptureScope::new(&dir.0).this_thread_only().run(|| {
        let mine = keep(2 * MIB);
        thread::scope(|scope| {
            scope.spawn(|| {
                hold_for_a_while(16 * MIB);
                drop(mine);
            });
        });
    });
    let report = report.unwrap();
    about(report.high_water.bytes, 2 * MIB);
    about(report.live.bytes, 0);
}

#[test]
fn a_scope_of_a_sampling_session_is_an_estimate_and_says_so() {
    let _turn = turn();
    let dir = Dir::new("scope-sampled");
    let profiler = recording(&dir.0, 64 << 10);
    let (kept, report) = capture_scope(dir.0.join("scope"), || {
        (0..2000).map(|_| keep(10_000)).collect::<Vec<_>>()
    });
    profiler.shutdown().unwrap();
    let report = report.unwrap();
    let sampling = report.sampling.unwrap();
    let exact = 20_000_000;
    assert!(
        report.high_water.bytes.abs_diff(exact) <= 2 * sampling.high_water_margin.bytes,
        "{report:?}"
    );
    assert!(text(&report.index).contains("all sums are estimates"));
    assert!(text(&report.svg).contains("≈"));
    drop(kept);
}

#[test]
fn a_future_has_a_scope_over_its_awaits() {
    let _turn = turn();
    let dir = Dir::new("scope-async");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let path = dir.0.clone();
    let (result, report) = runtime.block_on(async move {
        let work = async {
            let kept = keep(MIB);
            let other = tokio::spawn(async { hold_for_a_while(6 * MIB) });
            tokio::task::yield_now().await;
            other.await.unwrap() + kept.len() as u64
        };
        capture_scope_async(path, work).await
    });
    assert_eq!(result, 7 * MIB);
    let report = report.unwrap();
    about(report.high_water.bytes, 7 * MIB);
    check(&report, "capture_scope::hold_for_a_while");
}

#[test]
fn memray_opens_the_report() {
    let _turn = turn();
    let Some(memray) = crate::support::tool("memray") else {
        println!("skipped: memray is not installed");
        return;
    };
    let dir = Dir::new("scope-memray");
    let ((), report) = capture_scope(&dir.0, || {
        hold_for_a_while(9 * MIB);
    });
    let report = report.unwrap();
    let html = dir.0.join("theirs.html");
    let output = Command::new(&memray)
        .args(["flamegraph", "-o"])
        .arg(&html)
        .arg(&report.report)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(text(&html).contains("hold_for_a_while"));
}
