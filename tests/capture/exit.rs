//! Tests the end of a process during a session: `atexit` handlers allocate, and nothing hangs or crashes.

use std::hint::black_box;

use crate::support::process::{only, test_name};
use crate::support::{Dir, turn};
use heapray::session::Session;

/// Set in the child process: the directory of its capture.
const CHILD: &str = "HEAPRAY_TEST_EXIT_DIR";

extern "C" fn at_exit() {
    let blocks: Vec<Vec<u8>> = (0..1000).map(|size| black_box(vec![1; size])).collect();
    // Written with a system call: the standard output's lock may be destroyed already.
    let text = format!("{} blocks at exit\n", blocks.len());
    // SAFETY: the length is the text's.
    unsafe { libc::write(1, text.as_ptr().cast(), text.len()) };
}

#[test]
fn allocations_of_atexit_handlers_are_recorded_without_harm() {
    let _turn = turn();
    if let Some(dir) = std::env::var_os(CHILD) {
        let mut options = Dir::new("exit-child").options();
        options.spool_dir = dir.into();
        // The session is neither stopped nor dropped: the process ends while it records.
        let session = Box::leak(Box::new(Session::start(&options).unwrap()));
        session.counters().unwrap();
        // SAFETY: a C function without preconditions.
        let registered = unsafe { libc::atexit(at_exit) };
        assert_eq!(registered, 0);
        std::process::exit(17);
    }
    let dir = Dir::new("exit");
    for _ in 0..10 {
        let child = only(test_name!()).env(CHILD, &dir.0).output().unwrap();
        assert_eq!(child.status.code(), Some(17), "{child:?}");
        assert!(
            String::from_utf8_lossy(&child.stdout).contains("1000 blocks at exit"),
            "{child:?}"
        );
    }
}
