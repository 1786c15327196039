//! Tests with several processes: children, forked children, processes that start at once, and processes that are killed.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use super::{
    BOTH, OFTEN, SWITCH, Sleeper, children_of, files_in, fresh_dir, kill_all, only_file, playing,
    read, readings, run, until,
};
use crate::support::process::{is_alone, test_name, this_program};

/// The page size of every supported system is a multiple of this.
const LEAST_PAGE: usize = 4096;

#[test]
fn a_killed_process_leaves_whole_lines() {
    let scenario = test_name!();
    if is_alone(scenario) {
        heapray::init();
        let _children = [0; 3].map(|_| Sleeper::new());
        loop {
            drop(heapray::memory_span("busy"));
        }
    }
    let dir = fresh_dir("killed");
    for round in 0..8 {
        let dir = dir.join(round.to_string());
        let mut command = playing(this_program(), scenario, &dir, &[SWITCH, OFTEN, BOTH]);
        let mut killed = command.stdout(Stdio::null()).spawn().unwrap();
        until("lines of each kind", || {
            dir.is_dir()
                && files_in(&dir).first().is_some_and(|file| {
                    let text = fs::read_to_string(file).unwrap();
                    text.contains("\nCHLD ") && text.contains("\nFUNC ")
                })
        });
        let children = children_of(killed.id());
        killed.kill().unwrap();
        killed.wait().unwrap();
        kill_all(&children);
        let file = only_file(&dir);
        let bytes = fs::read(&file).unwrap();
        let log = read(&file);
        assert!(log.command.is_some());
        // Linux checks for a fatal signal where the file's next page begins, which may be in the middle of a line.
        let may_be_cut = bytes.len().is_multiple_of(LEAST_PAGE);
        assert!(
            bytes.ends_with(b"\n") || may_be_cut,
            "{} bytes",
            bytes.len()
        );
        assert!(log.cut.is_none() || may_be_cut);
    }
}

#[test]
fn children_appear_and_vanish() {
    let scenario = test_name!();
    if is_alone(scenario) {
        heapray::init();
        readings(2);
        let first = Sleeper::new();
        readings(3);
        let second = Sleeper::new();
        readings(3);
        println!("children {} {}", first.0.id(), second.0.id());
        drop(first);
        readings(3);
        drop(second);
        readings(3);
        heapray::shutdown().unwrap();
        return;
    }
    for (children, lines) in [
        ("none", false),
        ("include", false),
        ("each", true),
        ("both", true),
    ] {
        let dir = fresh_dir(&format!("children-{children}"));
        let output = run(
            scenario,
            &dir,
            &[SWITCH, OFTEN, ("MEMRAY_PROFILER_MEMORY_CHILDREN", children)],
        );
        let log = read(&only_file(&dir));
        if !lines {
            assert!(log.children.is_empty());
            continue;
        }
        let told = String::from_utf8(output.stdout).unwrap();
        let ids = told
            .split_once("children ")
            .unwrap()
            .1
            .lines()
            .next()
            .unwrap();
        let seen: Vec<_> = log.children.iter().map(|child| child.id.as_str()).collect();
        assert_eq!(seen.join(" "), ids);
        let [first, second] = &log.children[..] else {
            panic!()
        };
        let span = |at: &[heapray_report::memory_log::Reading]| (at[0].at, at[at.len() - 1].at);
        let ((begins, ends), (second_begins, second_ends)) =
            (span(&first.readings), span(&second.readings));
        let (start, end) = span(&log.memory);
        assert!(start < begins && begins < second_begins && second_begins < ends);
        assert!(ends < second_ends && second_ends < end);
        // A sleeping process has some hundred pages.
        assert!(
            first
                .readings
                .iter()
                .skip(1)
                .all(|reading| reading.mib > 0.1 && reading.mib < 100.0)
        );
    }
}

#[test]
fn processes_that_start_at_one_time_have_a_file_each() {
    let scenario = test_name!();
    if is_alone(scenario) {
        heapray::init();
        readings(1);
        heapray::shutdown().unwrap();
        return;
    }
    let dir = fresh_dir("company");
    for (variables, prefix) in [
        (&[SWITCH][..], "mprofile_"),
        (&[SWITCH, ("MEMRAY_PROFILER_MEMORY_ROLE", "worker")], ""),
    ] {
        let before = files_in(&dir).len();
        let all = [0; 4].map(|_| {
            let mut command = playing(this_program(), scenario, &dir, variables);
            command.stdout(Stdio::null()).spawn().unwrap()
        });
        for mut one in all {
            assert!(one.wait().unwrap().success());
        }
        let files = files_in(&dir);
        assert_eq!(files.len(), before + 4, "{files:?}");
        for file in &files {
            let text = fs::read_to_string(file).unwrap();
            assert_eq!(
                text.matches("CMDLINE ").count(),
                1,
                "each file has the lines of one process"
            );
        }
        let names = files.iter().filter(|file| {
            file.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with(prefix)
        });
        assert!(names.count() >= 4);
    }
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(dir.join(format!("{}.dat", host.trim())).exists());
    assert!(dir.join(format!("{}-4.dat", host.trim())).exists());
}

#[test]
fn a_forked_child_writes_nothing_and_is_a_child_of_the_log() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        let dir = fresh_dir("forked");
        run(scenario, &dir, &[SWITCH, OFTEN]);
        let log = read(&only_file(&dir));
        assert_eq!(log.children.len(), 1);
        let names: BTreeSet<_> = log
            .functions
            .iter()
            .map(|call| call.name.as_str())
            .collect();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["across", "parent"]);
        return;
    }
    let profiler = heapray::init();
    let across = heapray::memory_span("across");
    // SAFETY: the child calls nothing that needs a thread or a lock of the parent's. That is what this tests.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(heapray::memory_span("child"));
        drop(across);
        let ended = profiler.shutdown().is_ok();
        let init = heapray::init().memory_log().is_some();
        std::thread::sleep(Duration::from_millis(200));
        // SAFETY: ends the child at once, without the harness's own exit.
        unsafe { libc::_exit(if ended && init { 0 } else { 1 }) };
    }
    drop(heapray::memory_span("parent"));
    drop(across);
    readings(5);
    let mut status = 0;
    // SAFETY: the child's number, and a variable for its status.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
    heapray::shutdown().unwrap();
}
