//! Tests of logs that cannot be written, on a full disk, or that have grown too large.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::{OFTEN, SWITCH, fresh_dir, only_file, playing, read, readings, touched, until};
use crate::support::process::{is_alone, passed, test_name, this_program};

#[test]
fn a_directory_that_cannot_be_written_to_is_reported_once_and_does_no_harm() {
    let scenario = test_name!();
    if is_alone(scenario) {
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
        let mut command = playing(this_program(), scenario, &dir, &[SWITCH]);
        command.env("MEMRAY_PROFILER_MEMORY_DIR", &blocked);
        let told = String::from_utf8(passed(command).stderr).unwrap();
        assert_eq!(told.matches("there is no memory log").count(), 1, "{told}");
        assert!(
            told.contains(blocked.to_str().unwrap()) && told.contains("names another"),
            "{told}"
        );
    }
}

#[test]
fn a_full_disk_is_reported_once_and_the_log_goes_on_when_there_is_room() {
    let scenario = test_name!();
    if is_alone(scenario) {
        let dir = PathBuf::from(std::env::var("MEMRAY_PROFILER_MEMORY_DIR").unwrap());
        let ballast = dir.join("ballast");
        // Nearly the whole file system.
        let mut bytes = vec![0; 60 << 10];
        while fs::write(&ballast, &bytes).is_err() && !bytes.is_empty() {
            bytes.truncate(bytes.len() - 4096);
        }
        heapray::init();
        let file = heapray::profiler().memory_log().unwrap().to_owned();
        let length = || fs::metadata(&file).unwrap().len();
        // The file no longer grows: nothing more fits.
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
        // Half a line may be in the file for a moment, until it is cut off again.
        until("no half of a line stays", || {
            fs::read(&file).unwrap().ends_with(b"\n")
        });
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
    let told = passed(playing(shell, scenario, &dir, &[SWITCH, OFTEN]));
    let told = String::from_utf8(told.stderr).unwrap();
    assert_eq!(told.matches("cannot be written").count(), 1, "{told}");
}

#[test]
fn a_file_that_has_grown_too_large_is_thinned_out_and_keeps_its_peak() {
    let scenario = test_name!();
    if is_alone(scenario) {
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
            // Less means that half a line was cut off.
            let thinned = length < most / 8 * 7;
            shrunk += u32::from(thinned);
            most = if thinned { length } else { most.max(length) };
            shrunk >= 2
        });
        heapray::shutdown().unwrap();
        return;
    }
    let dir = fresh_dir("thin");
    // A system's limit on files has the same effect as a configured limit.
    for (limit, before) in [("64KiB", ""), ("1GiB", "ulimit -S -f 128;")] {
        let _ = fs::remove_dir_all(&dir);
        let mut shell = Command::new("sh");
        let script = format!("{before} exec \"$0\" \"$@\"");
        shell
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap());
        let limit = ("MEMRAY_PROFILER_MEMORY_LIMIT", limit);
        passed(playing(shell, scenario, &dir, &[SWITCH, OFTEN, limit]));
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
