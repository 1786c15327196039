//! Tests of processes that are killed at random moments under load: the last report is complete, and the event log has every
//! flushed event.
//!
//! `HEAPRAY_KILLS=200 cargo test --test recovery killed::` kills 200 times in each test. The default is 10. `HEAPRAY_SEED`
//! determines the moments.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::process::{only, test_name};
use crate::support::{Dir, turn};
use heapray::session::Session;
use heapray::{RecoverError, ReportOptions, Version, recover};
use heapray_report::memray;
use heapray_report::model::Event;

/// Set in the child process, which is this program again: the directory of its reports.
const CHILD: &str = "HEAPRAY_TEST_KILLED_DIR";

/// Returns the moments at which to kill, after the child has begun its work. `range` is in microseconds.
fn moments(range: Range<u64>) -> impl Iterator<Item = Duration> {
    let number =
        |name, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let kills = number("HEAPRAY_KILLS", 10);
    let mut state = number("HEAPRAY_SEED", 1);
    (0..kills).map(move |_| {
        // splitmix64
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        Duration::from_micros(range.start + mixed % (range.end - range.start))
    })
}

/// Writes reports, starts again and allocates, until the process is killed.
fn work_until_killed(dir: &Path) -> ! {
    let builder = heapray::builder().ignore_environment().enabled(true);
    let profiler = builder.dir(dir).keep(2).try_init().unwrap();
    black_box(Box::leak(vec![1u8; 1000].into_boxed_slice()));
    // So a complete report exists at the first kill.
    profiler.stop().unwrap();
    profiler.start().unwrap();
    println!("ready");
    put_under_load();
    loop {
        thread::sleep(Duration::from_millis(60));
        profiler.stop().unwrap();
        profiler.start().unwrap();
    }
}

/// Starts two threads that allocate until the process is killed.
fn put_under_load() {
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
}

/// Starts the child, waits until it works, and returns it with its further output.
fn begin(test: &str, dir: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = only(test)
        .env(CHILD, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.ends_with("ready\n") {
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "{line}");
    }
    (child, output)
}

/// Checks that the last report and all kept reports are complete. Returns their number.
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

/// Checks the log, if one is left. Returns whether it had events.
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
fn after_a_kill_at_any_moment_reports_are_complete_and_the_log_is_read() {
    let _turn = turn();
    if let Some(dir) = std::env::var_os(CHILD) {
        work_until_killed(dir.as_ref());
    }
    let dir = Dir::new("killed");
    let (mut kills, mut reports, mut logs) = (0, 0, 0);
    for moment in moments(50_000..950_000) {
        let (mut child, output) = begin(test_name!(), &dir.0);
        thread::sleep(moment);
        child.kill().unwrap();
        child.wait().unwrap();
        drop(output);
        kills += 1;
        reports += check_reports(&dir.0);
        logs += u32::from(check_log(&dir.0));
    }
    println!("{kills} kills: {reports} reports were whole, {logs} logs were read");
    assert!(reports > 0 && logs > 0, "{reports} reports, {logs} logs");
}

/// The size of a block, which nothing else in the process has, and the number of blocks between two flushes.
const MARKED: u64 = 77_777;
const AT_ONCE: u64 = 10;

/// Prints after each flush how many blocks the log has.
fn flush_until_killed(dir: PathBuf) -> ! {
    let mut options = Dir::new("flushed-child").options();
    options.spool_dir = dir;
    let session = Session::start(&options).unwrap();
    put_under_load();
    println!("ready");
    for round in 1.. {
        for _ in 0..AT_ONCE {
            drop(black_box(vec![0_u8; MARKED as usize]));
        }
        // A snapshot flushes the log, which otherwise happens once a second.
        session.snapshot().unwrap();
        println!("{}", round * AT_ONCE);
    }
    unreachable!()
}

#[test]
fn all_flushed_blocks_are_recovered_after_the_kill_and_no_others() {
    let _turn = turn();
    if let Some(dir) = std::env::var_os(CHILD) {
        flush_until_killed(dir.into());
    }
    let dir = Dir::new("flushed");
    let (mut kills, mut found_in_all) = (0, 0);
    for moment in moments(20_000..400_000) {
        let (mut child, output) = begin(test_name!(), &dir.0);
        let reader = thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            lines.filter_map(|line| line.parse::<u64>().ok()).last()
        });
        thread::sleep(moment);
        child.kill().unwrap();
        child.wait().unwrap();
        let flushed = reader.join().unwrap().unwrap_or(0);
        let spool = dir.0.read_dir().unwrap().next().unwrap().unwrap().path();
        let found = match recover(&spool, &ReportOptions::default()) {
            Ok(recovered) => {
                let events = recovered.events().map(Result::unwrap);
                events
                    .filter(|event| matches!(event, Event::Allocation { size: MARKED, .. }))
                    .count() as u64
            }
            Err(RecoverError::Empty | RecoverError::NoLog(_)) => 0,
            Err(error) => panic!("{error}"),
        };
        // The last flush may not have been printed yet.
        assert!(
            (flushed..=flushed + AT_ONCE).contains(&found),
            "{found} blocks found, {flushed} had been flushed"
        );
        std::fs::remove_file(spool).unwrap();
        kills += 1;
        found_in_all += found;
    }
    println!("{kills} kills: {found_in_all} blocks found, none that was flushed is missing");
    assert!(found_in_all > 0);
}
