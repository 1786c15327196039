//! Tests that another process can make the report of a killed process from its event log.

use std::hint::black_box;
use std::path::PathBuf;

use crate::support::process::{left_by_killed, test_name, wait_to_be_killed};
use crate::support::{Dir, turn};
use heapray::session::Session;
use heapray::{RecoverError, ReportOptions, Version, recover};
use heapray_report::memray;

/// Set in the child process, which is this program again: the directory of its event log.
const CHILD: &str = "HEAPRAY_TEST_RECOVER_DIR";

const BLOCKS: usize = 300;
const BYTES: usize = 10_007;

#[inline(never)]
fn leak_until_killed() {
    for _ in 0..BLOCKS {
        black_box(Box::leak(vec![1u8; BYTES].into_boxed_slice()));
    }
}

fn record_until_killed(dir: PathBuf) -> ! {
    let mut options = Dir::new("recover-child").options();
    options.spool_dir = dir;
    let session = Session::start(&options).unwrap();
    std::thread::Builder::new()
        .name("leaker".into())
        .spawn(leak_until_killed)
        .unwrap()
        .join()
        .unwrap();
    session.mark("leaked").unwrap().unwrap();
    // A snapshot flushes the log, which otherwise happens once a second.
    session.snapshot().unwrap();
    wait_to_be_killed()
}

#[test]
fn a_killed_process_leaves_its_report() {
    let _turn = turn();
    if let Some(dir) = std::env::var_os(CHILD) {
        record_until_killed(dir.into());
    }
    let dir = Dir::new("recover");
    let spool = left_by_killed(test_name!(), CHILD, &dir.0);

    let recovered = recover(&spool, &ReportOptions::default()).unwrap();
    let report = recovered.report();
    assert_eq!(report.marks.len(), 1);
    assert_eq!(report.marks[0].name, "leaked");
    assert_ne!(report.about.pid, std::process::id());
    assert!(
        report
            .about
            .command_line
            .contains("a_killed_process_leaves")
    );
    assert!(report.conditions.notes[0].contains("recovered"));
    let leaks: Vec<_> = report
        .sites
        .iter()
        .filter(|site| site.live.bytes == (BLOCKS * BYTES) as u64)
        .collect();
    assert_eq!(leaks.len(), 1, "{:?}", report.sites);
    assert_eq!(leaks[0].live.count, BLOCKS as u64);
    let thread = report.threads[leaks[0].thread.0 as usize];
    assert_eq!(report.strings.get(thread.name), "leaker");
    let leaf = report.stacks.node(leaks[0].stack).unwrap().frame;
    let leaf = report.frames[leaf.0 as usize];
    assert_eq!(
        report.strings.get(leaf.function),
        "recovery::recover::leak_until_killed"
    );
    assert!(
        report
            .strings
            .get(leaf.file)
            .ends_with("tests/recovery/recover.rs")
    );

    let mut file = Vec::new();
    recovered.write(Version::V13, &mut file).unwrap();
    let capture = memray::read(&file[..]).unwrap();
    assert!(capture.complete);
    assert_eq!(capture.report.totals, report.totals);

    // A log that is cut anywhere gives its complete part, and nothing panics.
    let whole = std::fs::read(&spool).unwrap();
    for length in (0..whole.len()).step_by(whole.len() / 50) {
        std::fs::write(&spool, &whole[..length]).unwrap();
        match recover(&spool, &ReportOptions::default()) {
            Ok(part) => {
                assert!(part.report().totals.allocated.count <= report.totals.allocated.count)
            }
            Err(RecoverError::Empty | RecoverError::NoLog(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(matches!(
        recover(&dir.0, &ReportOptions::default()),
        Err(RecoverError::NoLog(_) | RecoverError::Io(_))
    ));
}
