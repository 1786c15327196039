//! Tests of forked children: they run without being recorded, and do not change the parent's capture.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use crate::support::{Dir, StopFlag, my_sites, record, sum, tally, turn};
use heapray::session::{Session, StartError};

/// Runs `child` in a forked child and returns its exit code.
fn in_child(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child allocates (glibc's malloc allows that after a fork) and leaves by `_exit`.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0);
        if pid == 0 {
            libc::alarm(20);
            libc::_exit(child());
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        assert!(
            libc::WIFEXITED(status),
            "the child was killed: status {status:#x}"
        );
        libc::WEXITSTATUS(status)
    }
}

#[test]
fn children_forked_while_others_allocate_run_and_are_not_recorded() {
    let _turn = turn();
    let stop = StopFlag::default();
    let snapshot = record("fork", || {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.is_set() {
                        for _ in 0..200 {
                            drop(black_box(vec![0_u8; 100]));
                        }
                        // Slow enough for a collector with little CPU time: no event may be lost.
                        thread::sleep(Duration::from_millis(1));
                    }
                });
            }
            let _stop = stop.guard();
            for _ in 0..100 {
                let code = in_child(|| {
                    let blocks: Vec<Vec<u8>> = (0..5000).map(|size| vec![1; size]).collect();
                    i32::from(blocks.len() == 5000) + 6
                });
                assert_eq!(code, 7);
            }
        });
    });
    assert_eq!(snapshot.lost_events, 0);
    let mine = sum(&my_sites(&snapshot), None, |site| site.allocated);
    assert!(
        mine.count < 5000,
        "the children's allocations are not in the parent's capture"
    );
}

#[test]
fn a_child_can_neither_start_nor_stop_a_capture() {
    let _turn = turn();
    let dir = Dir::new("child");
    let session = Session::start(&dir.options()).unwrap();
    let block = black_box(vec![0_u8; 4242]);
    let code = in_child(|| {
        let refused = matches!(Session::start(&dir.options()), Err(StartError::ForkedChild));
        let unknown = session.counters().is_err() && session.snapshot().is_err();
        i32::from(refused) + 2 * i32::from(unknown)
    });
    assert_eq!(code, 3);
    let snapshot = session.stop().unwrap();
    assert!(
        my_sites(&snapshot)
            .iter()
            .any(|site| site.live == tally(1, 4242))
    );
    drop(block);
}
