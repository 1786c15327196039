//! Tests of start and stop: any number of times, under load, and without anything left behind.

use std::hint::black_box;
use std::thread;

use crate::support::process::{in_own_process, is_alone, only, passed, test_name};
use crate::support::{Dir, StopFlag, my_sites, record, sum, tally, turn};
use heapray::capture::hook;
use heapray::session::{Session, StartError};

#[test]
fn after_a_stop_the_original_pointers_are_back() {
    let _turn = turn();
    let dir = Dir::new("originals");
    assert_eq!(hook::patched(), 0);
    let before = hook::got::values();
    assert!(!before.is_empty());
    let session = Session::start(&dir.options()).unwrap();
    assert!(hook::patched() > 0);
    assert_ne!(hook::got::values(), before);
    session.stop().unwrap();
    assert_eq!(hook::got::values(), before);
}

#[test]
fn start_and_stop_return_to_the_same_live_bytes() {
    // glibc counts blocks in its threads' caches as live, so the test runs in a process without these caches.
    const TUNABLES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0");
    let _turn = turn();
    let test = test_name!();
    if !is_alone(test) {
        let mut again = only(test);
        again.env(TUNABLES.0, TUNABLES.1);
        passed(again);
        return;
    }
    let dir = Dir::new("live-bytes");
    let cycle = || {
        drop(Session::start(&dir.options()).unwrap());
        // SAFETY: no precondition; the call reads the allocator's statistics.
        unsafe { libc::mallinfo2() }.uordblks
    };
    // The first cycles allocate memory that stays: the modules' tables, and the standard library's own.
    for _ in 0..20 {
        cycle();
    }
    // The harness's other threads allocate now and then, so the minimum over some cycles is taken.
    let fewest = || (0..10).map(|_| cycle()).min().unwrap();
    let before = fewest();
    for _ in 0..300 {
        cycle();
    }
    let after = fewest();
    assert!(
        after <= before,
        "{before} bytes live before 300 cycles, {after} after"
    );
}

#[test]
fn a_second_start_is_refused_and_the_session_goes_on() {
    let _turn = turn();
    let dir = Dir::new("second");
    let session = Session::start(&dir.options()).unwrap();
    assert!(matches!(
        Session::start(&dir.options()),
        Err(StartError::AlreadyRecording)
    ));
    drop(black_box(vec![1_u8; 4321]));
    let snapshot = session.stop().unwrap();
    assert!(
        my_sites(&snapshot)
            .iter()
            .any(|site| site.allocated == tally(1, 4321))
    );
    drop(Session::start(&dir.options()).unwrap());
    assert_eq!(hook::patched(), 0);
    assert_eq!(
        std::fs::read_dir(&dir.0).unwrap().count(),
        1,
        "the dropped session's spool is removed"
    );
}

#[test]
fn a_missing_directory_fails_the_start_before_anything_is_hooked() {
    let _turn = turn();
    let dir = Dir::new("missing");
    let mut options = dir.options();
    options.spool_dir.push("nowhere");
    let error = Session::start(&options).unwrap_err();
    assert!(matches!(error, StartError::Spool { .. }));
    let text = error.to_string();
    assert!(
        text.contains("nowhere") && text.contains("MEMRAY_PROFILER_DIR"),
        "{text}"
    );
    assert_eq!(hook::patched(), 0);
    drop(Session::start(&dir.options()).unwrap());
}

#[test]
fn blocks_from_before_the_start_are_unknown_and_their_frees_are_ignored() {
    in_own_process(test_name!(), blocks_of_before_the_start);
}

fn blocks_of_before_the_start() {
    let early = black_box(vec![0_u8; 1111]);
    let mut late = Vec::new();
    let first = record("before", || {
        drop(early);
        late = black_box(vec![0_u8; 2222]);
    });
    assert_eq!(
        sum(&my_sites(&first), None, |site| site.live),
        tally(1, 2222)
    );
    assert!(first.totals.unknown_frees >= 1);
    let second = record("after", || drop(late));
    assert_eq!(
        sum(&my_sites(&second), None, |site| site.allocated),
        tally(0, 0)
    );
    assert_eq!(second.totals.live, tally(0, 0));
}

#[test]
fn a_snapshot_while_recording_is_consistent_and_goes_on() {
    in_own_process(test_name!(), snapshot_while_recording);
}

fn snapshot_while_recording() {
    let dir = Dir::new("snapshot");
    let session = Session::start(&dir.options()).unwrap();
    let first = black_box(vec![0_u8; 3000]);
    let middle = session.snapshot().unwrap();
    let second = black_box(vec![0_u8; 5000]);
    let counters = session.counters().unwrap();
    let end = session.stop().unwrap();
    assert!(middle.still_recording && !end.still_recording);
    assert_eq!(
        sum(&my_sites(&middle), None, |site| site.live),
        tally(1, 3000)
    );
    assert!(counters.live.bytes >= 8000);
    assert_eq!(sum(&my_sites(&end), None, |site| site.live), tally(2, 8000));
    assert_eq!(end.totals.high_water, end.totals.live);
    drop((first, second));
}

#[test]
fn three_hundred_cycles_under_load_from_eight_threads() {
    let _turn = turn();
    let dir = Dir::new("cycles");
    let stop = StopFlag::default();
    thread::scope(|scope| {
        for seed in 0..8_usize {
            let stop = &stop;
            scope.spawn(move || {
                let mut kept = Vec::new();
                let mut turn = seed;
                while !stop.is_set() {
                    turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    kept.push(vec![0_u8; turn >> 54]);
                    if kept.len() > 100 {
                        kept.swap_remove(turn % 100);
                    }
                    if turn % 64 == 0 {
                        kept.clear();
                    }
                }
            });
        }
        let _stop = stop.guard();
        let mut lossy = 0;
        for cycle in 0..300 {
            let session = Session::start(&dir.options()).unwrap();
            let mine = black_box(vec![0_u8; 777]);
            let snapshot = session.stop().unwrap();
            // On a busy machine a thread may wait too long for room. Then events are lost, and the snapshot says so.
            lossy += u32::from(snapshot.lost_events > 0);
            if snapshot.lost_events == 0 {
                let mine_alone = sum(&my_sites(&snapshot), None, |site| site.live);
                assert_eq!(mine_alone, tally(1, 777), "cycle {cycle}");
            }
            let totals = &snapshot.totals;
            assert_eq!(
                totals.allocated.count - totals.freed.count,
                totals.live.count,
                "cycle {cycle}"
            );
            assert_eq!(
                totals.allocated.bytes - totals.freed.bytes,
                totals.live.bytes,
                "cycle {cycle}"
            );
            drop(mine);
            for entry in std::fs::read_dir(&dir.0).unwrap() {
                std::fs::remove_file(entry.unwrap().path()).unwrap();
            }
        }
        assert!(lossy < 30, "events were lost in {lossy} of 300 cycles");
    });
    assert_eq!(hook::patched(), 0);
}
