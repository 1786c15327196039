//! Tests of threads that start and end, and of allocations at their ends.

use std::cell::RefCell;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::thread;

use crate::support::process::{in_own_process, test_name};
use crate::support::{Dir, my_tid, record, sites_of_thread, sum, tally, turn};
use heapray::capture::event::Kind;
use heapray::capture::memory;
use heapray::session::Session;

#[test]
fn ten_thousand_short_lived_threads_cost_as_much_as_those_that_live_at_once() {
    in_own_process(test_name!(), ten_thousand_short_lived_threads);
}

fn ten_thousand_short_lived_threads() {
    let dir = Dir::new("short-lived");
    let session = Session::start(&dir.options()).unwrap();
    let before = memory::own_bytes();
    for _ in 0..625 {
        thread::scope(|scope| {
            for _ in 0..16 {
                thread::Builder::new()
                    .name("brief".to_owned())
                    .spawn_scoped(scope, || black_box(vec![1_u8; 1234]).len())
                    .unwrap();
            }
        });
    }
    let grown = memory::own_bytes() - before;
    let snapshot = session.stop().unwrap();
    assert_eq!(snapshot.lost_events, 0);
    let theirs: u64 = snapshot
        .stacks
        .sites
        .iter()
        .filter(|site| {
            site.kind == Kind::Malloc && site.allocated.bytes == 1234 * site.allocated.count
        })
        .map(|site| site.allocated.count)
        .sum();
    assert_eq!(theirs, 10_000);
    let threads: u32 = snapshot
        .stacks
        .threads
        .iter()
        .map(|thread| thread.threads)
        .sum();
    assert!((10_000..10_100).contains(&threads), "{threads} threads");
    assert!(snapshot.stacks.threads.len() < 1024 + 64);
    assert!(
        snapshot
            .notes
            .iter()
            .any(|note| note.contains("more than 1,024 threads"))
    );
    // Some may have ended before their names were read, and their last events may not have been read yet.
    let brief: u32 = snapshot
        .stacks
        .threads
        .iter()
        .filter(|thread| thread.name == "brief")
        .map(|thread| thread.threads)
        .sum();
    println!("{brief} of {threads} threads were counted by their name");
    assert!(brief > 1024);
    assert!(grown < 8 << 20, "{grown} bytes for 16 threads at a time");
}

struct AllocatesWhenDropped(&'static str);

impl Drop for AllocatesWhenDropped {
    fn drop(&mut self) {
        // Leaked: the report must show it as live.
        black_box(Box::leak(vec![0_u8; self.0.len()].into_boxed_slice()));
    }
}

thread_local! {
    static LATE: RefCell<Vec<AllocatesWhenDropped>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn allocations_of_thread_local_destructors_are_recorded() {
    let _turn = turn();
    let mut tid = 0;
    let snapshot = record("tls", || {
        tid = thread::spawn(|| {
            LATE.with_borrow_mut(|late| late.push(AllocatesWhenDropped("seventeen letters")));
            my_tid()
        })
        .join()
        .unwrap();
    });
    let live = sites_of_thread(&snapshot, tid);
    assert!(
        live.iter().any(|site| site.live == tally(1, 17)),
        "{live:?}"
    );
}

unsafe extern "C" fn late_key(value: *mut libc::c_void) {
    // SAFETY: leaked on purpose; the value is the length.
    black_box(unsafe { libc::malloc(value as usize) });
}

#[test]
fn allocations_after_a_threads_end_was_noticed_are_recorded_and_leave_no_state() {
    // The key is made after heapray's, so its destructor runs after heapray has noticed the thread's end.
    in_own_process(test_name!(), allocations_after_the_end_was_noticed);
}

fn allocations_after_the_end_was_noticed() {
    drop(record("prepare", || {}));
    let mut key = 0;
    // SAFETY: a valid address; the destructor is a C function.
    let result = unsafe { libc::pthread_key_create(&raw mut key, Some(late_key)) };
    assert_eq!(result, 0);
    let mut tids = Vec::new();
    let snapshot = record("late-key", || {
        for _ in 0..100 {
            tids.push(
                thread::spawn(move || {
                    // SAFETY: the key exists; the value is never followed.
                    unsafe { libc::pthread_setspecific(key, 4567 as *const libc::c_void) };
                    my_tid()
                })
                .join()
                .unwrap(),
            );
        }
    });
    let live: u64 = snapshot
        .stacks
        .sites
        .iter()
        .filter(|site| site.live.bytes == 4567)
        .map(|site| site.live.count)
        .sum();
    assert_eq!(live, 100);
    assert!(heapray::capture::thread::states().count() < 40);
    // SAFETY: no thread uses it any more.
    unsafe { libc::pthread_key_delete(key) };
}

#[test]
fn pthread_getattr_np_works_on_a_recorded_thread() {
    let _turn = turn();
    let snapshot = record("getattr", || {
        thread::spawn(|| {
            let _seen = black_box(vec![0_u8; 100]);
            let mut attributes = MaybeUninit::<libc::pthread_attr_t>::zeroed();
            // SAFETY: the attributes are initialized by one call and destroyed by the other.
            unsafe {
                assert_eq!(
                    libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()),
                    0
                );
                assert_eq!(libc::pthread_attr_destroy(attributes.as_mut_ptr()), 0);
            }
        })
        .join()
        .unwrap();
    });
    assert_eq!(snapshot.lost_events, 0);
}

#[test]
fn living_and_ended_threads_are_named() {
    let _turn = turn();
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel::<()>();
    let mut living = None;
    let snapshot = record("names", || {
        thread::Builder::new()
            .name("short".to_owned())
            .spawn(|| drop(black_box(vec![0_u8; 10])))
            .unwrap()
            .join()
            .unwrap();
        living = Some(
            thread::Builder::new()
                .name("living".to_owned())
                .spawn(move || {
                    drop(black_box(vec![0_u8; 10]));
                    ready.send(()).unwrap();
                    receiver.recv().unwrap_err();
                })
                .unwrap(),
        );
        is_ready.recv().unwrap();
    });
    drop(sender);
    living.unwrap().join().unwrap();
    let names: Vec<&str> = snapshot
        .stacks
        .threads
        .iter()
        .map(|thread| thread.name.as_str())
        .collect();
    assert!(
        names.contains(&"short") && names.contains(&"living"),
        "{names:?}"
    );
}

#[test]
fn a_block_freed_by_another_thread_is_no_longer_live() {
    let _turn = turn();
    let snapshot = record("cross", || {
        for _ in 0..1000 {
            let block = black_box(vec![0_u8; 999]);
            thread::scope(|scope| scope.spawn(move || drop(block)).join().unwrap());
        }
    });
    let mine = sites_of_thread(&snapshot, my_tid());
    let blocks: Vec<_> = mine
        .iter()
        .filter(|site| site.allocated.bytes == 999 * site.allocated.count)
        .collect();
    assert_eq!(
        blocks.iter().map(|site| site.allocated.count).sum::<u64>(),
        1000
    );
    assert_eq!(blocks.iter().map(|site| site.live.count).sum::<u64>(), 0);
    assert_eq!(
        sum(&mine, None, |site| site.temporary).count,
        0,
        "freed by another thread is not temporary"
    );
}
