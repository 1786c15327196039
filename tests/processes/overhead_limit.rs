//! Tests of the limit on the profiler's own memory: with ever new call stacks, and with ever more live blocks. Each test
//! measures the whole process's memory, so it runs in a process of its own.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::Dir;
use crate::support::process::{in_own_process, test_name};
use heapray::{Output, Profiler, State};
use heapray_report::memray;

/// Memory of the process beyond the limit, while it works and while reports are made: output before it is written to the
/// disk, and the allocator's unused memory.
const SLACK: u64 = 8 << 20;

/// Reads the process's anonymous resident memory, without allocating. Pages of files belong to the system's cache.
fn anonymous(status: &File) -> u64 {
    let mut text = [0; 4096];
    let read = status.read_at(&mut text, 0).unwrap();
    let text = std::str::from_utf8(&text[..read]).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() * 1024
}

/// A thread that reads again and again how much memory the process has.
struct Watcher {
    most: AtomicU64,
    ended: AtomicBool,
}

impl Watcher {
    fn begin() -> &'static Watcher {
        static WATCHER: Watcher = Watcher {
            most: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        };
        thread::spawn(|| {
            let status = File::open("/proc/self/status").unwrap();
            while !WATCHER.ended.load(Ordering::Relaxed) {
                WATCHER
                    .most
                    .fetch_max(anonymous(&status), Ordering::Relaxed);
                thread::sleep(Duration::from_micros(500));
            }
        });
        while WATCHER.most.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        &WATCHER
    }

    /// Runs `work`, and returns the process's maximum memory meanwhile, beyond `before`.
    fn height<R>(&self, what: &str, before: u64, work: impl FnOnce() -> R) -> (R, u64) {
        self.most.store(0, Ordering::Relaxed);
        let result = work();
        let height = self.most.load(Ordering::Relaxed).saturating_sub(before);
        println!("{what}: {} KiB at its height", height >> 10);
        (result, height)
    }
}

fn record_in(dir: &Dir, limit: u64) -> Profiler {
    let builder = heapray::builder().ignore_environment().enabled(true);
    builder
        .dir(&dir.0)
        .overhead_limit(limit)
        .try_init()
        .unwrap()
}

/// Makes a tree of calls. Each call has a call stack of its own, and passes a new block to `keep`.
#[inline(never)]
fn descend(depth: u32, keep: &mut impl FnMut(Vec<u8>)) -> u64 {
    keep(black_box(Vec::with_capacity(100)));
    if depth == 0 {
        return 1;
    }
    let left = descend(depth - 1, keep);
    let right = descend(depth - 1, keep);
    black_box(left + right + 1)
}

fn number(variable: &str, default: u64) -> u64 {
    let text = std::env::var(variable).ok();
    text.map_or(default, |text| text.parse().unwrap())
}

#[test]
fn ever_new_call_stacks_stay_below_the_limit_and_sums_stay_exact() {
    in_own_process(test_name!(), ever_new_call_stacks);
}

fn ever_new_call_stacks() {
    // Other values can be set to measure with.
    let limit = number("LIMIT_MIB", 64) << 20;
    let depth = number("DEPTH", 18) as u32;
    let dir = Dir::new("stacks");
    let watcher = Watcher::begin();
    let before = watcher.most.load(Ordering::Relaxed);
    let profiler = record_in(&dir, limit);
    let (mut live, mut largest) = (Vec::new(), 0);
    let mut number = 0_u64;
    let (calls, _) = watcher.height("recording", before, || {
        descend(depth, &mut |block| {
            number += 1;
            // Every thousandth block stays live until the end.
            if number.is_multiple_of(1000) {
                live.push(block);
            }
            if number.is_multiple_of(10_000) {
                largest = largest.max(profiler.status().overhead.memory_bytes);
            }
        })
    });
    assert_eq!(calls, number);
    let status = profiler.status();
    println!("{:?}", (&status.stacks_bounded, status.allocated, largest));
    let (_, stopping) = watcher.height("stopping", before, || profiler.stop().unwrap());
    let (_, page) = watcher.height("page", before, || profiler.flamegraph().unwrap());
    let (_, stats) = watcher.height("stats", before, || profiler.stats().unwrap());
    watcher.ended.store(true, Ordering::Relaxed);
    assert!(largest < limit, "{largest}");
    let most = limit + SLACK + live.len() as u64 * 128;
    for height in [stopping, page, stats] {
        assert!(height < most, "{height}");
    }

    let status = profiler.status();
    let report = memray::read_file(report(&profiler)).unwrap().report;
    if depth >= 18 && limit < 128 << 20 {
        assert!(status.stacks_bounded.as_ref().unwrap().contains("OVERHEAD"));
        let notes = &report.conditions.notes;
        assert!(
            notes.iter().any(|note| note.contains("OVERHEAD")),
            "{notes:?}"
        );
    }
    assert_eq!(status.lost_events, 0);
    // Other threads allocate a little, and so does the vector.
    let of_size = report.sites.iter();
    let sum = of_size.fold((0, 0), |(count, live), site| {
        (count + site.allocated.count, live + site.live.count)
    });
    assert_eq!(sum.0, report.totals.allocated.count);
    assert_eq!(sum.1, report.totals.live.count);
    let others = report.totals.allocated.count - calls;
    assert!(others < 500, "{others}");
    let others = report.totals.live.count - live.len() as u64;
    assert!(others < 100, "{others}");
}

fn report(profiler: &Profiler) -> Output {
    profiler.report().unwrap()
}

#[test]
fn more_live_blocks_than_fit_end_the_recording_with_a_report() {
    in_own_process(test_name!(), ever_more_live_blocks);
}

fn ever_more_live_blocks() {
    let limit = 64 << 20;
    let dir = Dir::new("blocks");
    let watcher = Watcher::begin();
    let before = watcher.most.load(Ordering::Relaxed);
    let profiler = record_in(&dir, limit);
    let mut held: Vec<Box<u64>> = Vec::with_capacity(4 << 20);
    while held.len() < held.capacity() && profiler.status().state == State::Recording {
        held.extend((0..10_000).map(|number| black_box(Box::new(number))));
    }
    let service = (held.len() * (32 + 8)) as u64;
    // The reason and the report follow shortly after the end.
    while profiler.status().trouble.is_none() || profiler.kept_reports().unwrap().is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(profiler.status().state, State::Stopped);
    let trouble = profiler.status().trouble.unwrap();
    assert!(trouble.contains("OVERHEAD_LIMIT"), "{trouble}");
    let most = limit + SLACK + service;
    let height = watcher.most.load(Ordering::Relaxed) - before;
    println!("{} blocks: {} KiB at its height", held.len(), height >> 10);
    assert!(height < most, "{height}");
    let kept = &profiler.kept_reports().unwrap()[0];
    assert_eq!(
        kept.trigger.as_ref().unwrap().kind,
        heapray::TriggerKind::Overhead
    );
    let report = memray::read_file(report(&profiler)).unwrap().report;
    let live = report.totals.live;
    // The figures are exact up to the end. With the event log, it would have come at 600,000 blocks.
    let without_log = report.conditions.log_given_up.unwrap();
    assert!(without_log.contains("OVERHEAD_LIMIT"), "{without_log}");
    assert!(live.count > 900_000 && live.count < held.len() as u64 + 500);
    let sum: u64 = report.sites.iter().map(|site| site.live.count).sum();
    assert_eq!(sum, live.count);
    // The service goes on, and may record again.
    drop(held);
    profiler.start().unwrap();
    assert_eq!(profiler.status().state, State::Recording);
}
