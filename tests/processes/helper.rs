//! Tests of the helper process, from the service's point of view.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use std::fs;
use std::hint::black_box;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::Dir;
use crate::support::process::{in_own_process, is_alone, only, passed, test_name};
use heapray::{Format, OutputKey, OutputKind, Profiler};

/// What looks may take of the service's memory.
const BUDGET: u64 = 3 << 20;

/// Returns the bytes of the process's memory that no file backs.
fn anonymous() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kilobytes = line.unwrap().split_ascii_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() << 10
}

fn children() -> String {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let of = |task: fs::DirEntry| fs::read_to_string(task.path().join("children"));
    tasks.filter_map(|task| of(task.ok()?).ok()).collect()
}

fn record_in(dir: &Dir, helper: bool) -> Profiler {
    let builder = heapray::builder().ignore_environment().enabled(true);
    builder.dir(&dir.0).helper(helper).try_init().unwrap()
}

/// Looks at the session in every way. Returns the growth of the process's memory.
fn look(profiler: &Profiler) -> u64 {
    let held: Vec<String> = (0..1000).map(|number| format!("{number:64}")).collect();
    let before = anonymous();
    let stats = profiler.stats().unwrap();
    assert!(stats.contains("helper.rs"), "{stats}");
    for kind in [
        OutputKind::Flamegraph,
        OutputKind::Report,
        OutputKind::Table,
        OutputKind::File(Format::Pprof),
    ] {
        profiler.output(OutputKey::new(kind)).unwrap();
    }
    black_box(held);
    anonymous().saturating_sub(before)
}

#[test]
fn looks_take_no_memory_of_the_service() {
    in_own_process(test_name!(), || {
        let dir = Dir::new("looks");
        let profiler = record_in(&dir, true);
        let grown = look(&profiler);
        profiler.stop().unwrap();
        let again = look(&profiler);
        println!("grown by {grown} and {again} bytes");
        assert!(grown + again < BUDGET, "grown by {grown} and {again} bytes");
        let id = profiler.kept_reports().unwrap()[0].id.clone();
        let before = anonymous();
        let id = heapray::ReportId::parse(&id).unwrap();
        let key = OutputKey::new(OutputKind::Table);
        profiler.kept_output(id, key).unwrap();
        assert!(anonymous() < before + BUDGET / 2);
        assert_eq!(children(), "");
    });
}

#[test]
fn without_a_helper_the_service_looks_itself() {
    in_own_process(test_name!(), || {
        let dir = Dir::new("looks-itself");
        let grown = look(&record_in(&dir, false));
        // The control of the test above: its looks are some that take memory.
        assert!(grown > 2 * BUDGET, "grown by {grown} bytes");
    });
}

#[test]
fn a_service_may_leave_its_children_to_the_system() {
    in_own_process(test_name!(), || {
        // SAFETY: no handler, but the system's own.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        let dir = Dir::new("ignores-children");
        let profiler = record_in(&dir, true);
        assert!(look(&profiler) < BUDGET);
        profiler.stop().unwrap();
        assert!(look(&profiler) < BUDGET);
    });
}

#[test]
fn a_service_may_wait_for_every_child() {
    in_own_process(test_name!(), || {
        let dir = Dir::new("waits-for-children");
        let profiler = record_in(&dir, true);
        let is_over = AtomicBool::new(false);
        let reaped = thread::scope(|scope| {
            let reaper = scope.spawn(|| {
                let mut reaped = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let mut status = 0;
                    // SAFETY: a live place for the status.
                    if unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } > 0 {
                        reaped += 1;
                    }
                    thread::yield_now();
                }
                reaped
            });
            for _ in 0..5 {
                look(&profiler);
            }
            profiler.stop().unwrap();
            look(&profiler);
            is_over.store(true, Ordering::Relaxed);
            reaper.join().unwrap()
        });
        println!("{reaped} helpers were waited for by the service");
    });
}

#[test]
fn a_variable_alone_makes_no_helper() {
    let test = test_name!();
    if !is_alone(test) {
        let mut command = only(test);
        command.env("HEAPRAY_HELPER", "1").stdin(Stdio::null());
        passed(command);
    }
}

#[test]
fn helpers_are_not_in_the_memory_log() {
    in_own_process(test_name!(), || {
        let dir = Dir::new("helpers-unlogged");
        let builder = heapray::builder().ignore_environment().enabled(true);
        let builder = builder.dir(&dir.0).memory_log(true).memory_dir(&dir.0);
        let profiler = builder
            .memory_interval(Duration::from_millis(10))
            .try_init()
            .unwrap();
        for _ in 0..5 {
            look(&profiler);
        }
        profiler.shutdown().unwrap();
        let path = profiler.memory_log().unwrap();
        let log = fs::read_to_string(path).unwrap();
        assert!(log.contains("\nMEM "), "{log}");
        assert!(!log.contains("CHLD"), "{log}");
    });
}
