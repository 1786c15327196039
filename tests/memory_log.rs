//! The memory log in processes of their own: with and without the profiler, killed, forked, in company, where it cannot be
//! written; and beside memory_profiler's own `mprof`.
//!
//! Each scenario is this same test program, started again with `HEAPRAY_SCENARIO` set.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // clippy knows only functions marked as tests

use std::collections::BTreeSet;
use std::fs;
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use heapray_report::memory_log::MemoryLog;

const SWITCH: (&str, &str) = ("MEMRAY_PROFILER_MEMORY_LOG", "true");
const OFTEN: (&str, &str) = ("MEMRAY_PROFILER_MEMORY_INTERVAL", "0.01");
const BOTH: (&str, &str) = ("MEMRAY_PROFILER_MEMORY_CHILDREN", "both");

/// Nothing here takes this long; what does has failed.
const LIMIT: Duration = Duration::from_secs(60);

fn fresh_dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("memory-log-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// `program` with arguments that play `scenario`, in `dir`, with the memory log's variables and no others.
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
    command
        .args(["--exact", scenario, "--nocapture", "--test-threads=1"])
        .env("HEAPRAY_SCENARIO", scenario)
        .env("RUST_BACKTRACE", "0")
        .env("TMPDIR", dir)
        .env("MEMRAY_PROFILER_MEMORY_DIR", dir)
        .envs(variables.iter().copied())
        .stdin(Stdio::null());
    command
}

fn program() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// Plays `scenario` to its end.
fn run(scenario: &str, dir: &Path, variables: &[(&str, &str)]) -> Output {
    finish(playing(program(), scenario, dir, variables), scenario)
}

fn finish(mut command: Command, scenario: &str) -> Output {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let both = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{scenario}: {both}");
    assert!(
        both.contains("1 passed"),
        "{scenario} was not played: {both}"
    );
    output
}

fn plays(scenario: &str) -> bool {
    std::env::var("HEAPRAY_SCENARIO").is_ok_and(|played| played == scenario)
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|e| e == "dat"))
        .collect();
    files.sort();
    files
}

/// The only log in `dir`.
fn only_file(dir: &Path) -> PathBuf {
    let files = files(dir);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

fn read(path: &Path) -> MemoryLog {
    MemoryLog::read(&fs::read(path).unwrap()[..])
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Waits until `done` is.
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

fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let name =
        |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks
        .map(|task| name(task.unwrap()).trim().to_owned())
        .collect()
}

fn touched(mebibytes: usize) -> Vec<u8> {
    black_box(vec![1; mebibytes << 20])
}

#[test]
fn without_the_variable_there_is_no_thread_and_no_file() {
    const SCENARIO: &str = "without_the_variable_there_is_no_thread_and_no_file";
    if !plays(SCENARIO) {
        let dir = fresh_dir("off");
        run(SCENARIO, &dir, &[]);
        run(SCENARIO, &dir, &[("MEMRAY_PROFILER_MEMORY_LOG", "false")]);
        run(
            SCENARIO,
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
    const SCENARIO: &str = "the_log_alone_is_a_thread_and_a_file_and_no_hook";
    if !plays(SCENARIO) {
        let dir = fresh_dir("alone").join("made/if/missing");
        run(SCENARIO, &dir, &[SWITCH, OFTEN]);
        let file = only_file(&dir);
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with("mprofile_") && name.len() == "mprofile_20261121120000.dat".len());
        let log = read(&file);
        assert!(log.command.unwrap().contains(SCENARIO));
        let mib: Vec<f64> = log.memory.iter().map(|reading| reading.mib).collect();
        let peak = mib.iter().copied().fold(0.0, f64::max);
        // Of the 48 MiB: a kernel adds up what its processors have counted, and leaves out a little of each.
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
    // On a busy machine the first one may come late: it is to be without the block.
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
    const SCENARIO: &str = "nothing_of_the_log_is_in_a_report";
    if !plays(SCENARIO) {
        let dir = fresh_dir("quiet");
        let profiler = [
            ("MEMRAY_PROFILER", "true"),
            ("MEMRAY_PROFILER_DIR", dir.to_str().unwrap()),
        ];
        run(SCENARIO, &dir, &[SWITCH, OFTEN, profiler[0], profiler[1]]);
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
        stats.contains(SCENARIO.split_at(15).0),
        "threads have names here: {stats}"
    );
    assert!(!stats.contains("heapray-memory"), "{stats}");
    heapray::shutdown().unwrap();
}

#[test]
fn a_killed_process_leaves_a_whole_file() {
    const SCENARIO: &str = "a_killed_process_leaves_a_whole_file";
    if plays(SCENARIO) {
        heapray::init();
        let _children = [0; 3].map(|_| Sleeper::new());
        loop {
            drop(heapray::memory_span("busy"));
        }
    }
    let dir = fresh_dir("killed");
    for round in 0..8 {
        let dir = dir.join(round.to_string());
        let mut command = playing(program(), SCENARIO, &dir, &[SWITCH, OFTEN, BOTH]);
        let mut killed = command.stdout(Stdio::null()).spawn().unwrap();
        until("lines of each kind", || {
            dir.is_dir()
                && files(&dir).first().is_some_and(|file| {
                    let text = fs::read_to_string(file).unwrap();
                    text.contains("\nCHLD ") && text.contains("\nFUNC ")
                })
        });
        let children = children_of(killed.id());
        killed.kill().unwrap();
        killed.wait().unwrap();
        kill_all(&children);
        let file = only_file(&dir);
        assert!(fs::read(&file).unwrap().ends_with(b"\n"));
        let log = read(&file);
        assert!(log.cut.is_none() && log.command.is_some());
    }
}

/// A child that goes when this does.
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
        // The shell's own `kill`: a system may lack the program of that name. A child may have ended by itself.
        let script = format!("kill {}", pids.join(" "));
        let mut kill = Command::new("sh");
        kill.args(["-c", &script]).stderr(Stdio::null());
        kill.status().unwrap();
    }
}

#[test]
fn children_appear_and_vanish() {
    const SCENARIO: &str = "children_appear_and_vanish";
    if plays(SCENARIO) {
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
            SCENARIO,
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
    const SCENARIO: &str = "processes_that_start_at_one_time_have_a_file_each";
    if plays(SCENARIO) {
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
        let before = files(&dir).len();
        let all = [0; 4].map(|_| {
            let mut command = playing(program(), SCENARIO, &dir, variables);
            command.stdout(Stdio::null()).spawn().unwrap()
        });
        for mut one in all {
            assert!(one.wait().unwrap().success());
        }
        let files = files(&dir);
        assert_eq!(files.len(), before + 4, "{files:?}");
        for file in &files {
            let text = fs::read_to_string(file).unwrap();
            assert_eq!(
                text.matches("CMDLINE ").count(),
                1,
                "nobody wrote into another's file"
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
fn the_path_of_pycompss_is_a_workers() {
    const SCENARIO: &str = "the_path_of_pycompss_is_a_workers";
    if plays(SCENARIO) {
        let profiler = heapray::builder()
            .memory_role(heapray::MemoryRole::Worker)
            .init();
        assert!(profiler.memory_log().is_some());
        return;
    }
    let dir = fresh_dir("compss");
    let mut command = playing(program(), SCENARIO, &dir, &[]);
    command.env_remove("MEMRAY_PROFILER_MEMORY_DIR");
    command.env("COMPSS_WORKER_PROFILE_PATH", dir.join("workers"));
    finish(command, SCENARIO);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(
        dir.join("workers")
            .join(format!("{}.dat", host.trim()))
            .exists()
    );
}

#[test]
fn a_directory_that_cannot_be_written_to_is_told_once_and_does_no_harm() {
    const SCENARIO: &str = "a_directory_that_cannot_be_written_to_is_told_once_and_does_no_harm";
    if plays(SCENARIO) {
        assert_eq!(heapray::init().memory_log(), None);
        heapray::init();
        drop(heapray::memory_span("nothing"));
        heapray::shutdown().unwrap();
        return;
    }
    let dir = fresh_dir("blocked");
    let file = dir.join("file");
    fs::write(&file, "in the way").unwrap();
    for blocked in [file.clone(), file.join("below"), "/proc/heapray".into()] {
        let mut command = playing(program(), SCENARIO, &dir, &[SWITCH]);
        command.env("MEMRAY_PROFILER_MEMORY_DIR", &blocked);
        let told = String::from_utf8(finish(command, SCENARIO).stderr).unwrap();
        assert_eq!(told.matches("there is no memory log").count(), 1, "{told}");
        assert!(
            told.contains(blocked.to_str().unwrap()) && told.contains("names another"),
            "{told}"
        );
    }
}

#[test]
fn a_full_disk_is_told_once_and_the_log_goes_on_when_there_is_room() {
    const SCENARIO: &str = "a_full_disk_is_told_once_and_the_log_goes_on_when_there_is_room";
    if plays(SCENARIO) {
        let dir = PathBuf::from(std::env::var("MEMRAY_PROFILER_MEMORY_DIR").unwrap());
        let ballast = dir.join("ballast");
        // All but nothing of the file system.
        let mut bytes = vec![0; 60 << 10];
        while fs::write(&ballast, &bytes).is_err() && !bytes.is_empty() {
            bytes.truncate(bytes.len() - 4096);
        }
        heapray::init();
        let file = heapray::profiler().memory_log().unwrap().to_owned();
        let length = || fs::metadata(&file).unwrap().len();
        // It stands still: nothing more fits.
        until("a file that is full", || {
            let before = length();
            for n in 0..50 {
                drop(heapray::memory_span(&format!(
                    "a_name_that_fills_the_disk_soon_{n:0200}"
                )));
            }
            std::thread::sleep(Duration::from_millis(300));
            length() == before && before > 0
        });
        assert!(
            fs::read(&file).unwrap().ends_with(b"\n"),
            "no half of a line stays"
        );
        fs::remove_file(&ballast).unwrap();
        readings(3);
        heapray::shutdown().unwrap();
        assert!(read(&file).cut.is_none());
        return;
    }
    let mounted = Command::new("unshare").args(["-m", "true"]).status();
    if !mounted.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("CI").is_none(), "unshare -m needs root");
        println!("skipped: no right to mount a small tmpfs");
        return;
    }
    let dir = fresh_dir("full");
    let mut shell = Command::new("unshare");
    let script = format!(
        "mount -t tmpfs -o size=64k tmpfs {} && exec \"$0\" \"$@\"",
        dir.display()
    );
    shell
        .args(["-m", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap());
    let told = finish(playing(shell, SCENARIO, &dir, &[SWITCH, OFTEN]), SCENARIO);
    let told = String::from_utf8(told.stderr).unwrap();
    assert_eq!(told.matches("cannot be written").count(), 1, "{told}");
}

#[test]
fn a_file_that_has_grown_too_large_is_thinned_out_and_keeps_its_peak() {
    const SCENARIO: &str = "a_file_that_has_grown_too_large_is_thinned_out_and_keeps_its_peak";
    if plays(SCENARIO) {
        heapray::init();
        let file = heapray::profiler().memory_log().unwrap().to_owned();
        let block = touched(64);
        readings(3);
        drop(block);
        let (mut most, mut shrunk) = (0, 0);
        until("a file that shrinks twice", || {
            for _ in 0..300 {
                drop(heapray::memory_span("short"));
            }
            let length = fs::metadata(&file).unwrap().len();
            shrunk += u32::from(length < most);
            most = if length < most {
                length
            } else {
                most.max(length)
            };
            shrunk >= 2
        });
        heapray::shutdown().unwrap();
        return;
    }
    let dir = fresh_dir("thin");
    // A limit on files does the same as one that was set.
    for (limit, before) in [("64KiB", ""), ("1GiB", "ulimit -S -f 128;")] {
        let _ = fs::remove_dir_all(&dir);
        let mut shell = Command::new("sh");
        let script = format!("{before} exec \"$0\" \"$@\"");
        shell
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap());
        let limit = ("MEMRAY_PROFILER_MEMORY_LIMIT", limit);
        finish(
            playing(shell, SCENARIO, &dir, &[SWITCH, OFTEN, limit]),
            SCENARIO,
        );
        let log = read(&only_file(&dir));
        let peak = log
            .memory
            .iter()
            .map(|reading| reading.mib)
            .fold(0.0, f64::max);
        assert!(peak > log.memory[log.memory.len() - 1].mib + 60.0);
        assert!(log.command.is_some());
    }
}

#[test]
fn a_forked_child_writes_nothing_and_is_a_child_of_the_log() {
    const SCENARIO: &str = "a_forked_child_writes_nothing_and_is_a_child_of_the_log";
    if !plays(SCENARIO) {
        let dir = fresh_dir("forked");
        run(SCENARIO, &dir, &[SWITCH, OFTEN]);
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
    // SAFETY: the child calls nothing that needs a thread or a lock of the parent's, which is what is tested here.
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
    // SAFETY: the child's number, and a live place for its status.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
    heapray::shutdown().unwrap();
}

/// memory_profiler's command, or why there is none.
fn mprof() -> Result<PathBuf, String> {
    let named = std::env::var_os("HEAPRAY_MPROF").map(PathBuf::from);
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/python/bin/mprof");
    let mut places = named.into_iter().chain([ours]);
    let found = places.find(|path| path.is_file());
    found.ok_or_else(|| "there is no mprof: scripts/install-test-tools installs it".into())
}

macro_rules! mprof_or_skip {
    () => {
        match mprof() {
            Ok(path) => path,
            Err(reason) => {
                assert!(std::env::var_os("CI").is_none(), "{reason}");
                println!("skipped: {reason}");
                return;
            }
        }
    };
}

/// What a successful `mprof` says.
fn said(mprof: &Path, dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(mprof);
    let output = command
        .args(arguments)
        .current_dir(dir)
        .env("MPLBACKEND", "Agg")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "mprof {arguments:?}: {text}{errors}"
    );
    text
}

#[test]
fn mprof_plots_lists_and_finds_the_peak_of_our_files() {
    const SCENARIO: &str = "mprof_plots_lists_and_finds_the_peak_of_our_files";
    if plays(SCENARIO) {
        heapray::init();
        let outer = heapray::memory_span("job::load data");
        let _sleeper = Sleeper::new();
        let inner = heapray::memory_span("job::parse<T>");
        let block = touched(64);
        readings(5);
        drop((inner, block));
        readings(5);
        drop(outer);
        heapray::shutdown().unwrap();
        return;
    }
    let mprof = mprof_or_skip!();
    let dir = fresh_dir("mprof");
    run(SCENARIO, &dir, &[SWITCH, OFTEN]);
    let file = only_file(&dir);
    let name = file.file_name().unwrap().to_str().unwrap();
    let log = read(&file);
    let peak = |mib: &mut dyn Iterator<Item = f64>| mib.fold(0.0, f64::max);
    let memory = peak(&mut log.memory.iter().map(|reading| reading.mib));
    let child = &log.children[0];
    let of_child = peak(&mut child.readings.iter().map(|reading| reading.mib));
    let told = said(&mprof, &dir, &["peak", name]);
    assert!(told.contains(&format!("{name}\t{memory:.3} MiB")), "{told}");
    assert!(
        told.contains(&format!("Child {}\t\t\t{of_child:.3} MiB", child.id)),
        "{told}"
    );
    // Of one function: the readings while it ran.
    let told = said(&mprof, &dir, &["peak", "--func", "job::load_data", name]);
    assert!(told.contains(&format!("{memory:.3} MiB")), "{told}");
    let told = said(&mprof, &dir, &["list"]);
    assert!(told.starts_with(&format!("0 {name} ")), "{told}");
    for (options, picture) in [
        (&[][..], "plot.png"),
        (&["--flame"], "flame.png"),
        (&["--slope"], "slope.png"),
        (&["--title", "a title", "--window", "0,0.05"], "window.png"),
    ] {
        let mut arguments = vec!["plot", "-o", picture];
        arguments.extend(options);
        // Without a name it takes the latest.
        let told = said(&mprof, &dir, &arguments);
        assert!(told.contains("Using last profile data."), "{told}");
        let picture = fs::read(dir.join(picture)).unwrap();
        assert!(picture.starts_with(b"\x89PNG") && picture.len() > 10_000);
    }
}

/// Bytes as `mprof` counts them, of the plateau.
const OWN: usize = 96;
const CHILDS: usize = 48;

#[test]
fn mprof_run_beside_the_log_measures_the_same() {
    const SCENARIO: &str = "mprof_run_beside_the_log_measures_the_same";
    if plays(SCENARIO) {
        if std::env::var_os("HEAPRAY_CHILD").is_some() {
            let block = touched(CHILDS);
            println!("ready");
            // Until the parent goes on.
            let _ = std::io::stdin().read(&mut [0]);
            drop(block);
            return;
        }
        heapray::init();
        let mut command = program();
        command.args(["--exact", SCENARIO, "--nocapture", "--test-threads=1"]);
        command
            .env("HEAPRAY_CHILD", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut told = String::new();
        let mut out = child.stdout.take().unwrap();
        while !told.contains("ready") {
            let mut byte = [0];
            out.read_exact(&mut byte).unwrap();
            told.push(byte[0].into());
        }
        let block = touched(OWN);
        readings(12);
        std::thread::sleep(Duration::from_millis(500));
        drop(block);
        drop(child.stdin.take());
        let _ = std::io::copy(&mut out, &mut std::io::sink());
        child.wait().unwrap();
        heapray::shutdown().unwrap();
        return;
    }
    let mprof = mprof_or_skip!();
    for (ours, theirs) in [
        ("none", &[][..]),
        ("include", &["--include-children"]),
        ("each", &["--multiprocess"]),
        ("both", &["--multiprocess", "--include-children"]),
    ] {
        for (metric, backend) in [
            ("rss", "psutil"),
            ("pss", "psutil_pss"),
            ("uss", "psutil_uss"),
        ] {
            if metric != "rss" && ours != "include" {
                continue;
            }
            let dir = fresh_dir(&format!("beside-{ours}-{metric}"));
            let mut command = Command::new(&mprof);
            command.args([
                "run",
                "--output",
                "theirs",
                "--exit-code",
                "--backend",
                backend,
            ]);
            command
                .args(theirs)
                .arg(std::env::current_exe().unwrap())
                .current_dir(&dir);
            let variables = [
                SWITCH,
                ("MEMRAY_PROFILER_MEMORY_CHILDREN", ours),
                ("MEMRAY_PROFILER_MEMORY_METRIC", metric),
            ];
            finish(playing(command, SCENARIO, &dir, &variables), SCENARIO);
            let (ours, theirs) = (read(&only_file(&dir)), read(&dir.join("theirs")));
            agree(&plateau(&ours.memory), &plateau(&theirs.memory), metric);
            assert_eq!(ours.children.len(), theirs.children.len());
            for (our, their) in ours.children.iter().zip(&theirs.children) {
                assert_eq!(our.id, their.id);
                agree(&plateau(&our.readings), &plateau(&their.readings), metric);
            }
        }
    }
}

/// The middle one of the upper half of all readings: the plateau lasts for most of the run.
fn plateau(readings: &[heapray_report::memory_log::Reading]) -> f64 {
    let peak = readings
        .iter()
        .map(|reading| reading.mib)
        .fold(0.0, f64::max);
    let mut upper: Vec<f64> = readings
        .iter()
        .map(|reading| reading.mib)
        .filter(|mib| *mib > peak * 0.7)
        .collect();
    upper.sort_by(f64::total_cmp);
    upper[upper.len() / 2]
}

/// Both read the same kernel's figures of the same process at other moments: within 2 % and 1 MiB.
fn agree(ours: &f64, theirs: &f64, metric: &str) {
    assert!(
        (ours - theirs).abs() <= theirs * 0.02 + 1.0,
        "{metric}: ours {ours} MiB, mprof's {theirs} MiB"
    );
}

#[heapray::profile(full_report = false)]
fn outer(levels: u32) -> u32 {
    if levels == 0 {
        1
    } else {
        2 * inner(levels - 1)
    }
}

#[heapray::profile(full_report = false)]
fn inner(levels: u32) -> u32 {
    outer(levels)
}

#[test]
fn calls_of_profiled_functions_are_in_the_log() {
    const SCENARIO: &str = "calls_of_profiled_functions_are_in_the_log";
    if !plays(SCENARIO) {
        let dir = fresh_dir("profiled");
        run(SCENARIO, &dir, &[SWITCH, OFTEN]);
        let log = read(&only_file(&dir));
        let calls: Vec<_> = log.functions.iter().map(|f| (&*f.name, f.level)).collect();
        // The innermost ends first.
        let expected = [
            ("memory_log.outer", Some(2)),
            ("memory_log.inner", Some(1)),
            ("memory_log.outer", Some(0)),
        ];
        assert_eq!(calls, expected);
        return;
    }
    heapray::init();
    assert_eq!(outer(1), 2);
    heapray::shutdown().unwrap();
}
