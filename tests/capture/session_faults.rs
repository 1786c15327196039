//! Tests of sessions under faults: a thread that stops in the middle of an event, disks that refuse writes, races, forks.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;

use crate::support::process::{in_own_process, test_name};
use crate::support::{Dir, churn, my_sites, sum, tally, turn};
use heapray::capture::event::Kind;
use heapray::capture::thread::{Busy, state, with_local};
use heapray::capture::{clock, hook};
use heapray::session::{Session, StartError};

#[test]
fn a_thread_that_stops_in_the_middle_of_an_event_loses_only_that_event() {
    in_own_process(test_name!(), stop_in_the_midst_of_an_event);
}

fn stop_in_the_midst_of_an_event() {
    let dir = Dir::new("window");
    let session = Session::start(&dir.options()).unwrap();
    let (opened, is_open) = mpsc::channel::<()>();
    let (close, may_close) = mpsc::channel::<()>();
    let writer = thread::spawn(move || {
        drop(black_box(vec![0_u8; 99]));
        let _busy = Busy::enter();
        with_local(|local| {
            let (state, _borrowed) = state(local).unwrap();
            let stamp = || {
                opened.send(()).unwrap();
                may_close.recv().unwrap();
                clock::stamp()
            };
            // SAFETY: the state is this thread's own, which is busy; `reserve` comes first.
            unsafe {
                assert!(state.ring.reserve());
                state.ring.push(Kind::Free, 1, 0, 0, stamp);
            }
        });
    });
    is_open.recv().unwrap();
    let mine = black_box(vec![0_u8; 777]);
    let snapshot = session.stop().unwrap();
    close.send(()).unwrap();
    writer.join().unwrap();
    let found = my_sites(&snapshot);
    assert!(
        found.iter().any(|site| site.live == tally(1, 777)),
        "{found:?}"
    );
    assert_eq!(snapshot.lost_events, 1, "the event that was never finished");

    let next = Session::start(&dir.options()).unwrap().stop().unwrap();
    assert_eq!((next.lost_events, next.totals.unknown_frees), (0, 0));
    drop(mine);
}

#[test]
fn of_many_starts_at_once_one_succeeds_and_the_others_are_refused() {
    let _turn = turn();
    let dir = Dir::new("starts");
    let before = hook::got::values();
    for _ in 0..50 {
        let (together, refused) = (Barrier::new(4), AtomicUsize::new(0));
        let started: Vec<Session> = thread::scope(|scope| {
            let starts: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        together.wait();
                        Session::start(&dir.options())
                            .inspect_err(|error| {
                                assert!(matches!(error, StartError::AlreadyRecording));
                                refused.fetch_add(1, Ordering::Relaxed);
                            })
                            .ok()
                    })
                })
                .collect();
            starts
                .into_iter()
                .filter_map(|start| start.join().unwrap())
                .collect()
        });
        assert_eq!((started.len(), refused.into_inner()), (1, 3));
    }
    assert_eq!(hook::got::values(), before);
    assert_eq!(
        std::fs::read_dir(&dir.0).unwrap().count(),
        0,
        "no log is left"
    );
}

#[test]
fn the_log_goes_on_after_its_directory_is_removed() {
    let _turn = turn();
    let dir = Dir::new("gone");
    let mut options = dir.options();
    options.spool_dir.push("inner");
    std::fs::create_dir(&options.spool_dir).unwrap();
    let session = Session::start(&options).unwrap();
    std::fs::remove_dir_all(&options.spool_dir).unwrap();
    churn(10_000);
    let snapshot = session.stop().unwrap();
    assert_eq!(
        snapshot.log_given_up, None,
        "the open file can be written without its name"
    );
    assert!(snapshot.log.unwrap().events >= 20_000);
}

fn limit_files_to(bytes: u64) {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the limit lives until the call returns.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    assert_eq!(set, 0);
}

#[test]
fn the_file_size_limit_ends_the_log_and_not_the_service() {
    in_own_process(test_name!(), record_beyond_the_file_size_limit);
}

fn record_beyond_the_file_size_limit() {
    let dir = Dir::new("limit");
    let session = Session::start(&dir.options()).unwrap();
    // Set after the start, so that the profiler cannot know this limit. The log's own limit is far above.
    limit_files_to(64 << 10);
    churn(100_000);
    let snapshot = session.stop().unwrap();
    assert_eq!(
        snapshot.log_given_up.as_deref(),
        Some("the file is larger than the system allows")
    );
    assert!(snapshot.log.is_none());
    let mine = sum(&my_sites(&snapshot), None, |site| site.allocated);
    assert_eq!((mine.count, snapshot.lost_events), (100_000, 0));

    // The pending signal ended with the collector's thread. A thread that does not block the signal is killed, so the limit
    // was in force.
    // SAFETY: the child writes one file and ends by `_exit`.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let written = std::fs::write(dir.0.join("large"), vec![1; 65 << 10]);
            libc::_exit(i32::from(written.is_ok()));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGXFSZ);
    }
    limit_files_to(libc::RLIM_INFINITY);
}

#[test]
fn a_forked_child_may_stop_or_drop_the_session_it_inherited() {
    let _turn = turn();
    let dir = Dir::new("inherited");
    for stops in [true, false] {
        let session = Session::start(&dir.options()).unwrap();
        // SAFETY: the child allocates, which glibc allows after a fork, and ends by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                if stops {
                    session.stop().is_err()
                } else {
                    drop(session);
                    true
                }
            }));
            // SAFETY: no precondition.
            unsafe { libc::_exit(if matches!(ended, Ok(true)) { 7 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: a child of this process, and a place for its status.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7,
            "status {status:#x}"
        );
        assert!(
            session.spool().unwrap().exists(),
            "the child leaves the parent's log in place"
        );
        let mine = black_box(vec![0_u8; 555]);
        let snapshot = session.stop().unwrap();
        assert!(
            my_sites(&snapshot)
                .iter()
                .any(|site| site.live == tally(1, 555))
        );
        drop(mine);
    }
}
