//! Tests of the memory log: with and without the profiler, in processes that are killed or forked, with several processes,
//! with files that cannot be written, and beside memory_profiler's own `mprof`.
//!
//! A process has one memory log, so each test starts this program again with itself alone.
#![cfg(target_os = "linux")]

mod company;
mod files;
mod mprof;

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use heapray_report::memory_log::MemoryLog;

use crate::support::process::{is_alone, passed, play, test_name, this_program};
use crate::support::threads;

const SWITCH: (&str, &str) = ("MEMRAY_PROFILER_MEMORY_LOG", "true");
const OFTEN: (&str, &str) = ("MEMRAY_PROFILER_MEMORY_INTERVAL", "0.01");
const BOTH: (&str, &str) = ("MEMRAY_PROFILER_MEMORY_CHILDREN", "both");

/// A wait that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(60);

fn fresh_dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("memory-log-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Returns `program` with arguments that run the test `scenario`, in `dir`, with the memory log's variables and no others.
fn playing(
    mut command: Command,
    scenario: &str,
    dir: &Path,
    variables: &[(&str, &str)],
) -> Command {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("MEMRAY_") || name.starts_with("COMPSS_") || name.starts_with("JOB_") {
            command.env_remove(&*name);
        }
    }
    play(&mut command, scenario);
    command
        .env("RUST_BACKTRACE", "0")
        .env("TMPDIR", dir)
        .env("MEMRAY_PROFILER_MEMORY_DIR", dir)
        .envs(variables.iter().copied())
        .stdin(Stdio::null());
    command
}

/// Runs the test `scenario` to its end.
fn run(scenario: &str, dir: &Path, variables: &[(&str, &str)]) -> Output {
    passed(playing(this_program(), scenario, dir, variables))
}

fn files_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|e| e == "dat"))
        .collect();
    files.sort();
    files
}

/// Returns the only log in `dir`.
fn only_file(dir: &Path) -> PathBuf {
    let files = files_in(dir);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

fn read(path: &Path) -> MemoryLog {
    MemoryLog::read(&fs::read(path).unwrap()[..])
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Waits until `done` returns true.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for `count` further readings of this process's own log.
fn readings(count: usize) {
    let path = heapray::profiler().memory_log().unwrap().to_owned();
    let before = read(&path).memory.len();
    until("further readings", || {
        read(&path).memory.len() >= before + count
    });
}

fn touched(mebibytes: usize) -> Vec<u8> {
    black_box(vec![1; mebibytes << 20])
}

#[test]
fn without_the_variable_no_thread_and_no_file_is_made() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        let dir = fresh_dir("off");
        run(scenario, &dir, &[]);
        run(scenario, &dir, &[("MEMRAY_PROFILER_MEMORY_LOG", "false")]);
        run(
            scenario,
            &dir,
            &[("COMPSS_WORKER_PROFILE_PATH", dir.to_str().unwrap())],
        );
        assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
        return;
    }
    let before = threads().len();
    assert_eq!(heapray::init().memory_log(), None);
    drop(heapray::memory_span("nothing"));
    assert_eq!(threads().len(), before);
    heapray::shutdown().unwrap();
}

#[test]
fn the_log_alone_is_a_thread_and_a_file_and_no_hook() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        let dir = fresh_dir("alone").join("made/if/missing");
        run(scenario, &dir, &[SWITCH, OFTEN]);
        let file = only_file(&dir);
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with("mprofile_") && name.len() == "mprofile_20261121120000.dat".len());
        let log = read(&file);
        assert!(log.command.unwrap().contains(scenario));
        let mib: Vec<f64> = log.memory.iter().map(|reading| reading.mib).collect();
        let peak = mib.iter().copied().fold(0.0, f64::max);
        // Less than 48 MiB: a kernel sums its processors' counters, and leaves out a little of each.
        assert!(
            peak > mib[0] + 24.0 && peak > mib[mib.len() - 1] + 24.0,
            "{mib:?}"
        );
        assert!(
            log.memory
                .is_sorted_by_key(|reading| (reading.at * 1e4) as u64)
        );
        assert_eq!(log.functions.len(), 1);
        return;
    }
    let before = threads().len();
    let profiler = heapray::init();
    assert!(!profiler.is_enabled());
    assert_eq!(threads().len(), before + 1);
    assert_eq!(heapray::capture::hook::patched(), 0);
    // On a busy machine the first reading may come late, and it must not include the block.
    readings(1);
    let span = heapray::memory_span("hold");
    let block = touched(48);
    readings(2);
    drop(block);
    drop(span);
    assert!(matches!(heapray::start(), Err(heapray::Error::Disabled)));
    readings(2);
    heapray::shutdown().unwrap();
    assert_eq!(threads().len(), before);
    heapray::shutdown().unwrap();
    drop(heapray::memory_span("after the end"));
}

#[test]
fn nothing_of_the_log_is_in_a_report() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        let dir = fresh_dir("quiet");
        let profiler = [
            ("MEMRAY_PROFILER", "true"),
            ("MEMRAY_PROFILER_DIR", dir.to_str().unwrap()),
        ];
        run(scenario, &dir, &[SWITCH, OFTEN, profiler[0], profiler[1]]);
        assert_eq!(read(&only_file(&dir)).functions.len(), 2_000);
        return;
    }
    let profiler = heapray::init();
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    readings(3);
    let before = profiler.status().allocated.count;
    for n in 0..2_000 {
        drop(heapray::memory_span(if n % 2 == 0 {
            "even"
        } else {
            "odd"
        }));
    }
    std::thread::sleep(Duration::from_millis(300));
    let recorded = profiler.status().allocated.count - before;
    assert!(
        recorded < 200,
        "{recorded} allocations of 2,000 spans and 30 readings are recorded"
    );
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let stats = profiler.stats().unwrap();
    assert!(
        stats.contains(scenario.split_at(15).0),
        "threads have names here: {stats}"
    );
    assert!(!stats.contains("heapray-memory"), "{stats}");
    heapray::shutdown().unwrap();
}

/// A child process that is killed when the value is dropped.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Sleeper {
        Sleeper(Command::new("sleep").arg("600").spawn().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn children_of(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let children = tasks
        .map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
    let words = children.collect::<String>();
    words.split_whitespace().map(str::to_owned).collect()
}

fn kill_all(pids: &[String]) {
    if !pids.is_empty() {
        // The shell's own `kill`, since a system may lack the program. A child may have ended by itself.
        let script = format!("kill {}", pids.join(" "));
        let mut kill = Command::new("sh");
        kill.args(["-c", &script]).stderr(Stdio::null());
        kill.status().unwrap();
    }
}

#[test]
fn the_path_of_pycompss_is_a_workers() {
    let scenario = test_name!();
    if is_alone(scenario) {
        let profiler = heapray::builder()
            .memory_role(heapray::MemoryRole::Worker)
            .init();
        assert!(profiler.memory_log().is_some());
        return;
    }
    let dir = fresh_dir("compss");
    let mut command = playing(this_program(), scenario, &dir, &[]);
    command.env_remove("MEMRAY_PROFILER_MEMORY_DIR");
    command.env("COMPSS_WORKER_PROFILE_PATH", dir.join("workers"));
    passed(command);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(
        dir.join("workers")
            .join(format!("{}.dat", host.trim()))
            .exists()
    );
}

#[cfg(feature = "macros")]
#[heapray::profile(full_report = false)]
fn outer(levels: u32) -> u32 {
    if levels == 0 {
        1
    } else {
        2 * inner(levels - 1)
    }
}

#[cfg(feature = "macros")]
#[heapray::profile(full_report = false)]
fn inner(levels: u32) -> u32 {
    outer(levels)
}

#[cfg(feature = "macros")]
#[test]
fn calls_of_profiled_functions_are_in_the_log() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        let dir = fresh_dir("profiled");
        run(scenario, &dir, &[SWITCH, OFTEN]);
        let log = read(&only_file(&dir));
        let calls: Vec<_> = log.functions.iter().map(|f| (&*f.name, f.level)).collect();
        // The innermost call ends first.
        let expected = [
            ("processes.memory_log.outer", Some(2)),
            ("processes.memory_log.inner", Some(1)),
            ("processes.memory_log.outer", Some(0)),
        ];
        assert_eq!(calls, expected);
        return;
    }
    heapray::init();
    assert_eq!(outer(1), 2);
    heapray::shutdown().unwrap();
}
