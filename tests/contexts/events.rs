//! Tests that the events of a session know their contexts: in its file, and in the log of a process that was killed.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::PathBuf;

use heapray::session::Session;
use heapray::{ReportOptions, context, inherit, recover};
use heapray_report::Report;
use heapray_report::memray::{self, MemoryLimit};
use heapray_report::model::{Site, Tally};
use heapray_report::views::in_range;

use crate::support::process::{left_by_killed, test_name, wait_to_be_killed};
use crate::support::{Dir, turn};
use crate::{block, of};

/// Set in the child process, which is this program again: the directory of its event log.
const CHILD: &str = "HEAPRAY_TEST_CONTEXTS_DIR";

/// Allocates in contexts, on two threads, and returns what stays live.
fn work() -> Vec<Vec<u8>> {
    let mut kept = vec![block(0)];
    for route in ["GET /a", "GET /b"] {
        let route = context([("route", route)]);
        for _ in 0..3 {
            kept.push(route.run(|| block(0)));
            black_box(route.run(|| vec![1_u8; 100]));
        }
        let there = route.run(|| std::thread::spawn(inherit(|| (block(0), vec![1_u8; 100]))));
        kept.push(there.join().unwrap().0);
    }
    let tenant = context([("tenant", "acme")]);
    kept.push(tenant.run(|| block(0)));
    kept
}

/// Returns the sums of call sites by context, thread, call stack and allocator.
fn sums(report: &Report, tally: fn(&Site) -> Tally) -> BTreeMap<String, Tally> {
    let mut sums: BTreeMap<String, Tally> = BTreeMap::new();
    for site in &report.sites {
        let labels = &report.contexts[site.context.0 as usize].labels;
        let thread = &report.threads[site.thread.0 as usize];
        let frames = report.stacks.leaf_to_root(site.stack);
        let frames = frames.map(|frame| report.frames[frame.0 as usize]);
        let frames = frames.map(|frame| (report.strings.get(frame.function), frame.line));
        let frames: Vec<_> = frames.collect();
        let key = format!("{labels:?} {} {:?} {frames:?}", thread.tid, site.allocator);
        *sums.entry(key).or_default() += tally(site);
    }
    sums.retain(|_, tally| tally.count > 0);
    sums
}

/// Returns the live blocks of at least `SIZE` by context.
fn large_by_context(report: &Report) -> BTreeMap<String, Tally> {
    let mut sums: BTreeMap<String, Tally> = BTreeMap::new();
    for site in &report.sites {
        if site.live.count > 0 && site.live.bytes >= site.live.count * of(1).bytes {
            let labels = &report.contexts[site.context.0 as usize].labels;
            let labels: Vec<String> = labels.iter().map(|(key, v)| format!("{key}={v}")).collect();
            *sums.entry(labels.join(" ")).or_default() += site.live;
        }
    }
    sums
}

fn expected() -> BTreeMap<String, Tally> {
    let routes = [
        ("route=GET /a", of(4)),
        ("route=GET /b", of(4)),
        ("route=background", of(1)),
        ("tenant=acme", of(1)),
    ];
    routes.map(|(name, tally)| (name.to_owned(), tally)).into()
}

/// Checks that a capture has the contexts of the work, and that the sums of its events are those of its call sites.
fn check(capture: &[u8]) {
    let read = memray::read(capture).unwrap();
    assert!(read.complete);
    assert_eq!(large_by_context(&read.report), expected());
    let events = memray::events(capture).unwrap();
    let whole = u64::MAX;
    let part = in_range(&read.report, events, 0, whole, whole, MemoryLimit::NONE).unwrap();
    for tally in [|site: &Site| site.allocated, |site: &Site| site.live] {
        assert_eq!(sums(&part, tally), sums(&read.report, tally));
    }
}

#[test]
fn the_events_of_a_session_have_the_contexts_of_its_call_sites() {
    let _turn = turn();
    let dir = Dir::new("contexts-events");
    let builder = heapray::builder().ignore_environment().enabled(true);
    let profiler = builder.wait_for_start().dir(&dir.0).build().unwrap();
    profiler.start().unwrap();
    let kept = work();
    profiler.stop().unwrap();
    drop(kept);
    profiler.shutdown().unwrap();

    check(&std::fs::read(dir.0.join("memray-report.bin")).unwrap());
}

fn record_until_killed(dir: PathBuf) -> ! {
    let mut options = Dir::new("contexts-child").options();
    options.spool_dir = dir;
    let session = Session::start(&options).unwrap();
    // Its blocks stay live until the end.
    black_box(work().leak());
    // A snapshot flushes the log, which otherwise happens once a second.
    session.snapshot().unwrap();
    wait_to_be_killed()
}

#[test]
fn the_report_of_a_killed_process_has_its_contexts() {
    let _turn = turn();
    if let Some(dir) = std::env::var_os(CHILD) {
        record_until_killed(dir.into());
    }
    let dir = Dir::new("contexts-killed");
    let spool = left_by_killed(test_name!(), CHILD, &dir.0);
    let recovered = recover(&spool, &ReportOptions::default()).unwrap();
    assert_eq!(large_by_context(recovered.report()), expected());
    let mut file = Vec::new();
    recovered.write(heapray::Version::V13, &mut file).unwrap();
    check(&file);
}
