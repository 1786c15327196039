//! Tests with a collector that fails, and with a collector that stalls.

use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Request, Session, SessionOptions};
use crate::capture::room::LONGEST_WAIT_MS;
use crate::capture::{control, hook};

/// Held by each test, because a process has one session at a time.
static TURN: Mutex<()> = Mutex::new(());

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let name = format!("heapray-session-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    fn options(&self) -> SessionOptions {
        SessionOptions {
            spool_dir: self.0.clone(),
            log_limit: 1 << 20,
            overhead_limit: u64::MAX,
            sample: 0,
        }
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn a_panic_of_the_collector_ends_the_capture_and_not_the_service() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = Dir::new("panic");
    let session = Session::start(&dir.options()).unwrap();
    session.collector.requests().send(Request::Panic).unwrap();
    control::wake_collector();
    while session.counters().is_ok() {}
    assert_eq!((control::session(), hook::patched()), (0, 0));
    assert!(session.snapshot().is_err());
    assert!(session.stop().is_err());

    let next = Session::start(&dir.options()).unwrap();
    assert!(next.counters().is_ok());
    assert!(next.stop().is_ok());
}

const THREADS: usize = 4;
/// More than fit into a ring.
const PAIRS: usize = 20_000;
/// Pairs of each thread before the collector stalls, and after it goes on: few enough that no ring becomes full.
const FEW: usize = 50;

/// Allocates and frees. Returns the duration of the longest call in milliseconds.
fn churn(pairs: usize) -> u64 {
    let mut longest = 0;
    for number in 0..pairs {
        let before = Instant::now();
        drop(black_box(vec![0_u8; 1 + number % 500]));
        longest = longest.max(before.elapsed().as_millis() as u64);
    }
    longest
}

/// Runs a test of this module in a process of its own, so that other tests lose no events, and it none of theirs.
fn alone(name: &str, test: impl FnOnce()) {
    if std::env::var_os("HEAPRAY_ALONE").is_some() {
        return test();
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("session::tests::{name}"), "--nocapture"])
        .env("HEAPRAY_ALONE", name)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&child.stderr)
    );
}

/// If a thread waited at each event while its ring is full, this test would take hours. If a thread waited for the
/// collector, it would never end.
#[test]
fn if_the_collector_stalls_each_thread_waits_once_and_then_counts_lost_events() {
    alone(
        "if_the_collector_stalls_each_thread_waits_once_and_then_counts_lost_events",
        stalled,
    );
}

fn stalled() {
    let dir = Dir::new("stall");
    let (phase, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let longest = AtomicU64::new(0);
    let wait = |word: &AtomicUsize, least| {
        while word.load(Ordering::Acquire) < least {
            thread::yield_now();
        }
    };
    let session = Session::start(&dir.options()).unwrap();
    let (snapshot, before, after, counters) = thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for (number, pairs) in [FEW, PAIRS, FEW].into_iter().enumerate() {
                    wait(&phase, number + 1);
                    longest.fetch_max(churn(pairs), Ordering::Relaxed);
                    done.fetch_add(1, Ordering::Release);
                }
                // The end of a thread is an event, too.
                wait(&phase, 4);
            });
        }
        phase.store(1, Ordering::Release);
        wait(&done, THREADS);
        let before = session.mark("before").unwrap().unwrap();
        assert_eq!(before.live.count, session.counters().unwrap().live.count);
        assert_eq!(session.counters().unwrap().lost_since_ms, None);
        let (release, stall) = sync_channel(0);
        session
            .collector
            .requests()
            .send(Request::Stall(stall))
            .unwrap();
        control::wake_collector();
        phase.store(2, Ordering::Release);
        wait(&done, 2 * THREADS);
        // All threads have finished while the collector stalls. It may go on now.
        drop(release);
        let after = session.mark("after").unwrap().unwrap();
        phase.store(3, Ordering::Release);
        wait(&done, 3 * THREADS);
        let counters = session.counters().unwrap();
        let snapshot = session.stop().unwrap();
        phase.store(4, Ordering::Release);
        (snapshot, before, after, counters)
    });
    let made = (THREADS * (PAIRS + 2 * FEW) * 2) as u64;
    assert!(snapshot.lost_events > made / 2, "{snapshot:?}");
    // Every event is either recorded or counted as lost. The test itself makes a few.
    let sum = snapshot.totals.events + snapshot.lost_events;
    assert!((made..made + 500).contains(&sum), "{sum} of {made}");
    let since = snapshot.lost_since_ms.unwrap();
    assert!(
        (before.at_ms..=after.at_ms).contains(&since),
        "{before:?} {since} {after:?}"
    );
    // No event was lost after the collector went on.
    assert_eq!(counters.lost_events, snapshot.lost_events);
    assert_eq!(counters.lost_since_ms, snapshot.lost_since_ms);
    println!(
        "{} of {made} events lost since {since} ms; the longest call took {} ms, the bound is {LONGEST_WAIT_MS}",
        snapshot.lost_events,
        longest.into_inner()
    );
}

#[test]
fn threads_wait_for_a_collector_that_is_at_work() {
    alone("threads_wait_for_a_collector_that_is_at_work", || {
        let dir = Dir::new("work");
        let session = Session::start(&dir.options()).unwrap();
        let (release, work) = sync_channel(0);
        let request = Request::Work(work);
        session.collector.requests().send(request).unwrap();
        control::wake_collector();
        thread::scope(|scope| {
            scope.spawn(|| churn(PAIRS));
            thread::sleep(Duration::from_millis(2 * LONGEST_WAIT_MS));
            drop(release);
        });
        assert_eq!(session.stop().unwrap().lost_events, 0);
    });
}

/// Starts a session whose event log is not written until the returned sender is dropped.
fn start_with_stalled_log(dir: &Dir) -> (Session, SyncSender<()>) {
    let options = SessionOptions {
        log_limit: u64::MAX,
        ..dir.options()
    };
    let session = Session::start(&options).unwrap();
    let (release, stall) = sync_channel(0);
    let request = Request::StallLog(stall);
    session.collector.requests().send(request).unwrap();
    control::wake_collector();
    (session, release)
}

#[test]
fn a_disk_that_stalls_loses_no_event() {
    alone("a_disk_that_stalls_loses_no_event", || {
        let dir = Dir::new("stalled-disk");
        let (session, release) = start_with_stalled_log(&dir);
        churn(10 * PAIRS);
        thread::sleep(Duration::from_millis(2 * LONGEST_WAIT_MS));
        churn(PAIRS);
        drop(release);
        let snapshot = session.stop().unwrap();
        assert_eq!(snapshot.lost_events, 0);
        let logged = snapshot.log.unwrap().events;
        assert!(logged >= (11 * PAIRS * 2) as u64, "{logged}");
    });
}

/// The events of this test do not fit into the log's queue.
#[test]
fn a_disk_that_does_not_answer_costs_the_log_and_no_event() {
    alone(
        "a_disk_that_does_not_answer_costs_the_log_and_no_event",
        || {
            let dir = Dir::new("dead-disk");
            let (session, _release) = start_with_stalled_log(&dir);
            let pairs = 500 * PAIRS;
            let longest = churn(pairs);
            let snapshot = session.stop().unwrap();
            assert_eq!(snapshot.lost_events, 0, "a call took {longest} ms");
            assert!(snapshot.totals.events >= (pairs * 2) as u64);
            assert!(snapshot.log.is_none());
            let reason = snapshot.log_given_up.unwrap();
            assert!(reason.contains("too slow"), "{reason}");
        },
    );
}

/// Reading all full rings once takes longer than a thread waits for a collector that does nothing.
#[test]
fn hundreds_of_busy_threads_lose_nothing() {
    alone("hundreds_of_busy_threads_lose_nothing", || {
        let dir = Dir::new("crowd");
        let session = Session::start(&dir.options()).unwrap();
        thread::scope(|scope| {
            for _ in 0..200 {
                scope.spawn(|| churn(PAIRS));
            }
        });
        let snapshot = session.stop().unwrap();
        assert_eq!(snapshot.lost_events, 0);
        let made = (200 * PAIRS * 2) as u64;
        assert!(snapshot.totals.events >= made, "{snapshot:?}");
    });
}
