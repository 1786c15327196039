//! Tests of `metric = "heap"`: the exact bytes that a call has allocated and not freed, while a session records.
use std::future::poll_fn;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use heapray::__private::line_profile::testing;
use heapray::session::{Session, SessionOptions};

use crate::support::{Dir, record, turn};

fn block(bytes: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(bytes))
}

#[heapray::profile(metric = "heap", unit = "B")]
fn straight() -> Vec<u8> {
    let mut first = block(1000);
    let second = (block(200), Box::new(1u64));
    first.reserve_exact(3000);
    drop(second);
    let last = block(64);
    let moved = std::thread::spawn(move || drop(first));
    moved.join().unwrap();
    last
}

#[heapray::profile(metric = "heap", unit = "B", full_report = false)]
fn peak() {
    drop(block(5000));
    drop(black_box(block(700)));
}

#[heapray::profile(metric = "heap", unit = "B")]
fn outer(kept: Vec<u8>) -> usize {
    let mine = block(10);
    let inner = inner();
    drop(kept);
    drop(inner);
    mine.capacity()
}

#[heapray::profile(metric = "heap", unit = "B")]
fn inner() -> Vec<u8> {
    drop(block(30));
    block(20)
}

/// Returns the lines of a table that were run: usage, increment, occurrences, allocations, text.
fn rows(printed: &str) -> Vec<(i64, i64, u64, u64, String)> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        words.next()?.parse::<u32>().ok()?;
        let bytes = |words: &mut std::str::SplitWhitespace<'_>| {
            let bytes = words.next()?.parse().ok()?;
            (words.next()? == "B").then_some(bytes)
        };
        let (usage, increment) = (bytes(&mut words)?, bytes(&mut words)?);
        let (times, allocations) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((
            usage,
            increment,
            times,
            allocations,
            words.collect::<Vec<_>>().join(" "),
        ))
    };
    printed.lines().filter_map(row).collect()
}

fn figures(printed: &str) -> Vec<(i64, i64, u64, u64)> {
    rows(printed)
        .into_iter()
        .map(|(usage, increment, times, allocations, _)| (usage, increment, times, allocations))
        .collect()
}

fn printed<R>(work: impl FnOnce() -> R) -> String {
    testing::run([], || drop(black_box(work()))).printed
}

#[test]
fn a_line_is_charged_exactly_with_its_allocations_and_frees() {
    let _turn = turn();
    let mut text = String::new();
    record("line-profile-straight", || text = printed(straight));
    let rows = rows(&text);
    assert!(
        text.contains("Occurrences  Allocations   Line Contents"),
        "{text}"
    );
    let find = |what: &str| {
        let row = rows.iter().find(|row| row.4.starts_with(what));
        row.map(|row| (row.0, row.1, row.2, row.3)).unwrap()
    };
    assert_eq!(find("#[heapray"), (0, 0, 1, 0));
    assert_eq!(find("let mut first"), (1000, 1000, 1, 1));
    assert_eq!(find("let second"), (1208, 208, 1, 2));
    assert_eq!(find("first.reserve"), (3208, 2000, 1, 1));
    assert_eq!(find("drop(second)"), (3000, -208, 1, 0));
    assert_eq!(find("let last"), (3064, 64, 1, 1));
    // A free on another thread is not counted.
    let (usage, _, _, allocations) = find("let moved");
    assert!(usage >= 3064 && allocations > 0);
}

#[test]
fn the_short_report_has_the_true_peak() {
    let _turn = turn();
    let mut text = String::new();
    record("line-profile-peak", || text = printed(peak));
    assert_eq!(text, format!("{} peak 5000 B\n", file!()));
}

#[test]
fn the_blocks_of_an_inner_call_count_for_the_outer_call_too() {
    let _turn = turn();
    let mut text = String::new();
    record("line-profile-nested", || {
        let before = block(400);
        text = printed(|| outer(before));
    });
    let (first, second) = text.split_once("\n\n\n").unwrap();
    assert_eq!(
        figures(first),
        [(0, 0, 1, 0), (0, 0, 1, 1), (20, 20, 1, 1), (20, 0, 1, 0)]
    );
    assert_eq!(
        figures(second),
        [
            (0, 0, 1, 0),
            (10, 10, 1, 1),
            (30, 20, 1, 2),
            // A block from before the call does not count.
            (30, 0, 1, 0),
            (10, -20, 1, 0),
            (10, 0, 1, 0),
            (0, -10, 1, 0),
        ]
    );
}

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

async fn pause() {
    let mut waited = false;
    poll_fn(|_| {
        if std::mem::replace(&mut waited, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

#[heapray::profile(metric = "heap", unit = "B")]
async fn task(bytes: usize) -> usize {
    let first = block(bytes);
    pause().await;
    let second = block(2 * bytes);
    pause().await;
    drop(first);
    second.capacity()
}

type Task = Pin<Box<dyn Future<Output = usize> + Send>>;

fn poll(task: &mut Task) -> bool {
    let waker = Waker::from(Arc::new(Nobody));
    task.as_mut()
        .poll(&mut Context::from_waker(&waker))
        .is_ready()
}

#[test]
fn tasks_that_take_turns_are_each_charged_with_their_own_blocks() {
    let _turn = turn();
    let mut text = String::new();
    record("line-profile-tasks", || {
        let (mut one, mut two): (Task, Task) = (Box::pin(task(100)), Box::pin(task(1000)));
        text = printed(|| {
            for _ in 0..2 {
                assert!(!poll(&mut one) && !poll(&mut two));
                // Allocated between the polls, so it is in neither table.
                drop(block(99));
            }
            assert!(poll(&mut one) && poll(&mut two));
        });
    });
    let (one, two) = text.split_once("\n\n\n").unwrap();
    for (text, n) in [(one, 100), (two, 1000)] {
        assert_eq!(
            figures(text),
            [
                (0, 0, 1, 0),
                (n, n, 1, 1),
                (n, 0, 1, 0),
                (3 * n, 2 * n, 1, 1),
                (3 * n, 0, 1, 0),
                (2 * n, -n, 1, 0),
                (2 * n, 0, 1, 0),
                (0, -2 * n, 1, 0),
            ],
            "{text}"
        );
    }
}

#[test]
fn a_task_takes_its_blocks_from_thread_to_thread() {
    let _turn = turn();
    let mut text = String::new();
    record("line-profile-moves", || {
        let mut one: Task = Box::pin(task(100));
        assert!(!poll(&mut one));
        let mut one = std::thread::spawn(move || {
            assert!(!poll(&mut one));
            one
        })
        .join()
        .unwrap();
        text = printed(|| assert!(poll(&mut one)));
    });
    assert_eq!(figures(&text).last(), Some(&(0, -200, 1, 0)), "{text}");
}

#[heapray::profile(metric = "heap", unit = "B", held = true)]
fn leaky(kept: &mut Vec<Vec<u8>>) {
    kept.push(block(300));
    kept.push(block(500));
    drop(block(7));
}

#[test]
fn blocks_that_are_live_at_the_end_are_shown_by_call_site() {
    let _turn = turn();
    let mut text = String::new();
    record("line-profile-held", || {
        let mut kept = Vec::with_capacity(2);
        text = printed(|| leaky(&mut kept));
    });
    let (_, held) = text.split_once("leaky: ").unwrap();
    let mut lines = held.lines();
    assert_eq!(
        lines.next(),
        Some("800 bytes in 2 blocks left of 807 bytes in 3 blocks; at most 807 bytes at a time")
    );
    let site = lines.next().unwrap();
    assert!(
        site.contains("800 bytes") && site.contains("2 blocks"),
        "{held}"
    );
    assert!(site.contains("line_profile::heap::block"), "{held}");
    assert!(site.contains("tests/line_profile/heap.rs:"), "{held}");
}

#[test]
fn a_scope_shows_the_blocks_that_it_leaves_live() {
    let _turn = turn();
    let mut held = None;
    record("line-profile-scope", || {
        let outer = heapray::scope("outer");
        let before = block(11);
        let scope = heapray::scope("load");
        let kept = (block(100), Box::new([0u64; 4]));
        drop(block(1000));
        drop(before);
        held = Some((scope.end(), outer.end()));
        drop(kept);
    });
    let (load, outer) = held.unwrap();
    assert_eq!(load.name(), "load");
    assert_eq!((load.live().count, load.live().bytes), (2, 132));
    assert_eq!((load.allocated().count, load.allocated().bytes), (3, 1132));
    assert_eq!((load.peak(), load.note()), (1132, None));
    assert_eq!((outer.live().count, outer.live().bytes), (2, 132));
    let sites = load.call_sites();
    let live: Vec<u64> = sites.iter().map(|site| site.live.bytes).collect();
    assert_eq!(live, [100, 32]);
    assert!(
        sites
            .iter()
            .all(|site| site.file.ends_with("line_profile/heap.rs"))
    );
}

#[test]
fn scopes_without_figures_say_why() {
    let _turn = turn();
    let nothing = heapray::scope("early").end();
    assert!(nothing.note().unwrap().contains("no session records"));
    assert_eq!(nothing.live().bytes, 0);

    let dir = Dir::new("line-profile-sampling");
    let options = SessionOptions {
        sample: 1 << 20,
        ..dir.options()
    };
    let session = Session::start(&options).unwrap();
    let text = printed(inner);
    let scope = heapray::scope("sampled").end();
    drop(session.stop().unwrap());
    assert!(scope.note().unwrap().contains("samples only"));
    assert!(
        text.contains("# the session records samples only"),
        "{text}"
    );
    assert!(!text.contains("Allocations"), "{text}");
}

#[heapray::profile(metric = "heap", unit = "B")]
fn interrupted(session: Session) -> Vec<u8> {
    let kept = block(100);
    drop(session);
    kept
}

#[test]
fn the_end_of_a_session_during_a_call_is_noted() {
    let _turn = turn();
    let dir = Dir::new("line-profile-interrupted");
    let session = Session::start(&dir.options()).unwrap();
    let text = printed(|| interrupted(session));
    assert!(text.contains("# recording ended during the call"), "{text}");
}
