//! Tests of `heapray recover`, which makes a capture from the event log of a killed service.
#![allow(clippy::unwrap_used)] // tests may panic
#![cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_os = "linux",
    target_env = "gnu"
))]

mod support;

use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use heapray::session::{Session, SessionOptions};
use support::{Folder, err, out, run};

/// Set in the child process, which is this program again: the directory of its event log.
const CHILD: &str = "HEAPRAY_TEST_KILLED_IN";

#[allow(clippy::print_stdout)] // the child prints for its parent
fn record_until_killed(dir: &Path) -> ! {
    let options = SessionOptions {
        spool_dir: dir.to_owned(),
        log_limit: 1 << 20,
        overhead_limit: u64::MAX,
        sample: 0,
    };
    let session = Session::start(&options).unwrap();
    for _ in 0..7 {
        black_box(Box::leak(vec![1u8; 1_000_000].into_boxed_slice()));
    }
    session.mark("leaked").unwrap().unwrap();
    // A snapshot flushes the log, which otherwise happens once a second.
    session.snapshot().unwrap();
    println!("ready");
    loop {
        std::thread::park();
    }
}

fn killed_process_leaves_a_log_in(folder: &Folder) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "a_killed_service_still_has_its_capture",
            "--nocapture",
        ])
        .env(CHILD, folder.path("."))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    assert!(output.lines().any(|line| line.unwrap().ends_with("ready")));
    child.kill().unwrap();
    child.wait().unwrap();
    let files = folder.files();
    assert_eq!(files.len(), 1, "{files:?}");
    folder.path(&files[0]).to_str().unwrap().to_owned()
}

#[test]
fn a_killed_service_still_has_its_capture() {
    if let Some(dir) = std::env::var_os(CHILD) {
        record_until_killed(dir.as_ref());
    }
    let folder = Folder::new();
    let log = killed_process_leaves_a_log_in(&folder);
    let capture = folder.path("memray-report.bin");
    let capture = capture.to_str().unwrap();

    let made = run(&["recover", &log, "-o", capture]);
    assert!(made.status.success(), "{}", err(&made));
    assert!(out(&made).contains("memray-report.bin"));
    let table = run(&["table", "--leaks", capture]);
    assert!(
        out(&table).contains("record_until_killed"),
        "{}",
        out(&table)
    );
    assert!(out(&table).contains("7.000MB"), "{}", out(&table));
    let facts = run(&["info", capture]);
    assert!(
        out(&facts).contains("recovered from the event log"),
        "{}",
        out(&facts)
    );
}

#[test]
fn a_file_that_is_not_an_event_log_is_refused_with_one_line() {
    let folder = Folder::new();
    let text = folder.put("notes.spool", b"some notes that somebody took");
    let refused = run(&["recover", &text]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(err(&refused).lines().count(), 1, "{}", err(&refused));
    assert!(
        err(&refused).contains("not a heapray event log"),
        "{}",
        err(&refused)
    );
    let gone = run(&["recover", "/nowhere/x.spool"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(err(&gone).contains("/nowhere/x.spool"), "{}", err(&gone));
}
