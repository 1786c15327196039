//! Killed at a random moment under load: the former report is whole, and the event log gives what was flushed.
//!
//! `HEAPRAY_KILLS=200 cargo test --test killed` kills 200 times; 8 by default.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test's failure; the child talks to its parent
mod common;

use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{Dir, turn};
use heapray::{RecoverError, ReportOptions, Version, recover};
use heapray_report::memray;

/// Set in the child process, which is this program again: where its reports go.
const CHILD: &str = "HEAPRAY_TEST_KILLED_DIR";

const NAME: &str = "at_whatever_moment_it_is_killed_reports_stay_whole_and_the_log_is_read";

/// Reports, restarts and allocates for ever, on three threads.
fn work_until_killed(dir: &Path) -> ! {
    let builder = heapray::builder().ignore_environment().enabled(true);
    let profiler = builder.dir(dir).keep(2).try_init().unwrap();
    black_box(Box::leak(vec![1u8; 1000].into_boxed_slice()));
    // The former report, for whoever looks after the first kill.
    profiler.stop().unwrap();
    profiler.start().unwrap();
    println!("ready");
    for _ in 0..2 {
        thread::spawn(|| {
            let mut kept = Vec::new();
            for round in 0usize.. {
                kept.push(vec![1u8; 100 + round % 1000]);
                if kept.len() > 10_000 {
                    kept.clear();
                }
                black_box(&kept);
            }
        });
    }
    loop {
        thread::sleep(Duration::from_millis(60));
        profiler.stop().unwrap();
        profiler.start().unwrap();
    }
}

fn begin(dir: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(CHILD, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.ends_with("ready\n") {
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "{line}");
    }
    // What it prints from now on goes nowhere, and does not stop it.
    thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    child
}

/// Files that are whole reports, by name: the last one, and those that are kept.
fn check_reports(dir: &Path) -> usize {
    let kept = dir.join("heapray-reports");
    let files = [dir, &kept]
        .into_iter()
        .filter_map(|dir| dir.read_dir().ok());
    let files = files.flatten().map(|entry| entry.unwrap().path());
    let reports = files.filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        !name.starts_with('.') && name.ends_with(".bin")
    });
    reports
        .map(|path| {
            let capture = memray::read(File::open(&path).unwrap()).unwrap();
            assert!(capture.complete, "{}", path.display());
            assert!(!capture.report.sites.is_empty());
        })
        .count()
}

/// Whether the log that was left, if one was, had anything to tell.
fn check_log(dir: &Path) -> bool {
    let files = dir.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let spools = files.filter(|path| path.extension().is_some_and(|end| end == "spool"));
    let mut told = false;
    for spool in spools {
        match recover(&spool, &ReportOptions::default()) {
            Ok(recovered) => {
                let mut file = Vec::new();
                recovered.write(Version::V13, &mut file).unwrap();
                let capture = memray::read(&file[..]).unwrap();
                assert!(capture.complete);
                assert_eq!(capture.report.totals, recovered.report().totals);
                let sums = &capture.report.totals;
                assert_eq!(
                    sums.allocated.bytes - sums.freed.bytes,
                    sums.live.bytes,
                    "{sums:?}"
                );
                told = true;
            }
            // Killed before the first block was written.
            Err(RecoverError::Empty | RecoverError::NoLog(_)) => {}
            Err(error) => panic!("{}: {error}", spool.display()),
        }
        std::fs::remove_file(spool).unwrap();
    }
    told
}

#[test]
fn at_whatever_moment_it_is_killed_reports_stay_whole_and_the_log_is_read() {
    let _turn = turn();
    if let Some(dir) = std::env::var_os(CHILD) {
        work_until_killed(dir.as_ref());
    }
    let kills = std::env::var("HEAPRAY_KILLS").map_or(8, |kills| kills.parse().unwrap());
    let dir = Dir::new("killed");
    let (mut reports, mut logs) = (0, 0);
    for kill in 0..kills {
        let mut child = begin(&dir.0);
        // No two at the same moment of its work.
        thread::sleep(Duration::from_micros(50_000 + kill * 79_193 % 900_000));
        child.kill().unwrap();
        child.wait().unwrap();
        reports += check_reports(&dir.0);
        logs += u32::from(check_log(&dir.0));
    }
    println!("{kills} kills: {reports} reports were whole, {logs} logs were read");
    assert!(reports > 0 && logs > 0, "{reports} reports, {logs} logs");
}
