//! Models of the real code, with loom's atomics instead of the processor's (`shared`). They run every order in which hooks,
//! ending threads, the collector and a stop can run, with every value that these may see then.
//!
//! `scripts/loom` runs them and describes them.

use core::sync::atomic::Ordering;
use std::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, AtomicUsize};
use loom::thread::spawn;

use super::event::{Kind, RunEnd};
use super::thread::{self, Local};
use super::{clock, control, record, state, sys, thread_end};
use crate::collector::merge::Merge;
use crate::collector::recording::Recording;
use crate::collector::{Clock, Counters, Tables};

/// Longest wait. No model waits: an event that is missing when all threads have run will never come.
const LONGEST: Duration = Duration::from_secs(60);

fn explore(run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(4));
    builder.max_branches = 50_000;
    builder.check(move || {
        // Made before the other threads, so that they synchronize with nothing here.
        control::open_session(1);
        clock::stamp();
        assert_eq!(record::lost() + thread::states().count() as u64, 0);
        run();
        // SAFETY: each run joins its threads and drops its collectors.
        unsafe { state::release() };
    });
}

fn recording() -> Recording {
    Recording::new(Tables::new(Clock {
        start_stamp: 0,
        ticks_per_ms: 1.0,
    }))
}

/// Does what the hook of `malloc` does, except for the call stack.
fn allocate(local: &Local, address: u64, size: u64) {
    if record::wants_allocation(local) {
        local.set_busy(true);
        let (state, _borrowed) = thread::state(local).unwrap();
        record::publish(local, state, Kind::Malloc, address, size, 0);
        local.set_busy(false);
    }
}

fn free(local: &Local, address: u64) {
    if record::wants_free(local) {
        local.set_busy(true);
        record::free_block(local, address as usize);
        local.set_busy(false);
    }
}

/// Returns what a new collector records of session `number` when all hooks have finished.
fn recorded(number: u32) -> Recording {
    let (mut recording, mut merge) = (recording(), Merge::new(number));
    assert_eq!(merge.drain(&mut recording, LONGEST), 0);
    recording
}

/// Returns the events of [`recorded`].
fn collect(number: u32) -> Counters {
    recorded(number).session().counters()
}

#[test]
fn what_a_thread_frees_was_allocated_before_on_whichever_thread() {
    explore(|| {
        let passed_on = Arc::new(AtomicU64::new(0));
        let giver = {
            let passed_on = Arc::clone(&passed_on);
            spawn(move || {
                let local = Local::new();
                allocate(&local, 0x1000, 8);
                passed_on.store(0x1000, Ordering::Release);
            })
        };
        let taker = spawn(move || {
            let local = Local::new();
            let block = passed_on.load(Ordering::Acquire);
            if block != 0 {
                free(&local, block);
            }
            block != 0
        });
        let (mut recording, mut merge) = (recording(), Merge::new(1));
        merge.pass(&mut recording);
        giver.join().unwrap();
        let freed = taker.join().unwrap();
        assert_eq!(merge.drain(&mut recording, LONGEST), 0);
        let sums = recording.session().counters();
        assert_eq!(sums.unknown_frees, 0, "the free came before the allocation");
        assert_eq!(sums.events, 1 + u64::from(freed));
        assert_eq!(sums.live.count, u64::from(!freed));
    });
}

#[test]
fn a_state_belongs_to_one_thread_at_a_time_and_the_next_thread_finds_it_whole() {
    explore(|| {
        let threads: Vec<_> = [1, 2]
            .into_iter()
            .map(|number| {
                spawn(move || {
                    let local = Local::new();
                    allocate(&local, number << 12, number);
                    thread_end::end(&local);
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let sums = collect(1);
        assert_eq!((sums.events, sums.allocated.bytes), (2, 3));
        assert_eq!(record::lost(), 0);
        let states = thread::states().count();
        assert!((1..=2).contains(&states), "{states}");
    });
}

#[test]
fn threads_whose_end_was_noticed_borrow_a_state_for_each_event() {
    explore(|| {
        let late = || {
            let local = Local::new();
            allocate(&local, 0x1000, 1);
            thread_end::end(&local);
            // Another destructor of the thread.
            free(&local, 0x1000);
        };
        let one = spawn(late);
        let other = spawn(|| {
            let local = Local::new();
            allocate(&local, 0x2000, 2);
        });
        one.join().unwrap();
        other.join().unwrap();
        let sums = collect(1);
        assert_eq!((sums.events, sums.unknown_frees), (3, 0));
        assert_eq!(sums.live.bytes, 2);
    });
}

/// Sizes are powers of two, so that their sum says which of the events were seen.
fn stop_and_start(begin_anew: bool) {
    explore(move || {
        // Number of finished hooks; the open session.
        let through = Arc::new(AtomicUsize::new(0));
        let open = Arc::new(AtomicUsize::new(1));
        let service = {
            let (through, open) = (Arc::clone(&through), Arc::clone(&open));
            spawn(move || {
                let local = Local::new();
                let mut in_second = 0;
                for size in [1, 2] {
                    if open.load(Ordering::Acquire) == 2 {
                        in_second += size;
                    }
                    allocate(&local, size << 12, size);
                    through.fetch_add(1, Ordering::Release);
                }
                in_second
            })
        };
        let (mut recording, mut merge) = (recording(), Merge::new(1));
        let before = through.load(Ordering::Acquire);
        // Like `Session::stop`, and then the collector.
        control::close_session();
        sys::heavy_barrier();
        assert_eq!(merge.drain(&mut recording, LONGEST), 0);
        drop(merge);
        let first = recording.session().counters().allocated.bytes;
        if begin_anew {
            control::open_session(2);
            open.store(2, Ordering::Release);
        }
        let in_second = service.join().unwrap();
        let second = collect(2).allocated.bytes;
        let sure = [0, 1, 3][before];
        assert_eq!(
            first & sure,
            sure,
            "{first:b} lacks what was through before the stop"
        );
        assert_ne!(first, 2, "an event without the one before it");
        assert_eq!(first & second, 0, "an event of both sessions");
        assert_eq!(
            second & in_second,
            in_second,
            "{second:b} lacks what came after its start"
        );
        assert!(begin_anew || second == 0, "an event of no session");
    });
}

#[test]
fn a_stop_has_every_event_that_was_through_before_it() {
    stop_and_start(false);
}

#[test]
fn a_stop_and_a_start_have_no_event_in_common_and_lack_none() {
    stop_and_start(true);
}

/// Allocates a block of `size` bytes in `context`.
fn allocate_in(local: &Local, context: u32, size: u64) {
    local.change_context(context);
    allocate(local, size << 12, size);
}

#[test]
fn a_block_is_counted_under_its_context_on_whichever_state_it_is_recorded() {
    explore(|| {
        let (local, earlier) = (Local::new(), Local::new());
        allocate(&earlier, 8 << 12, 8);
        allocate(&local, 16 << 12, 16);
        thread_end::end(&local);
        thread_end::end(&earlier);
        // There are two states now, and each event takes the one that was last made, if it is free.
        allocate_in(&local, 1, 1);
        let other = spawn(|| {
            let local = Local::new();
            local.set_busy(true);
            // Holds a state for a while, without an event.
            drop(thread::state(&local));
            thread_end::end(&local);
        });
        allocate_in(&local, 2, 2);
        allocate_in(&local, 1, 4);
        other.join().unwrap();
        let sums = recorded(1).session().sums_by_context();
        let bytes: Vec<_> = sums
            .iter()
            .map(|(&of, sums)| (of, sums.live.bytes))
            .collect();
        assert_eq!(bytes, [(0, 24), (1, 5), (2, 2)]);
    });
}

#[test]
fn a_run_that_moves_between_threads_is_added_up_from_all_of_them() {
    explore(|| {
        let passed_on = Arc::new(AtomicU64::new(0));
        let first = {
            let passed_on = Arc::clone(&passed_on);
            spawn(move || {
                let local = Local::new();
                local.change_run(1, 5);
                allocate_in(&local, 5, 4);
                local.change_run(0, 0);
                allocate_in(&local, 0, 8);
                passed_on.store(1, Ordering::Release);
            })
        };
        let second = spawn(move || {
            let local = Local::new();
            let has_moved = passed_on.load(Ordering::Acquire) != 0;
            if has_moved {
                local.change_run(1, 5);
                allocate_in(&local, 5, 1);
                free(&local, 4 << 12);
                local.set_busy(true);
                record::run_end(
                    &local,
                    1,
                    RunEnd {
                        context: 5,
                        metered: None,
                        is_traced: false,
                    },
                    None,
                );
                local.set_busy(false);
            }
            has_moved
        });
        let (mut recording, mut merge) = (recording(), Merge::new(1));
        merge.pass(&mut recording);
        first.join().unwrap();
        let has_ended = second.join().unwrap();
        assert_eq!(merge.drain(&mut recording, LONGEST), 0);
        let sums = recording.session().sums_by_context();
        assert_eq!(sums[&0].allocated.bytes, 8);
        let runs = &sums[&5].runs;
        if has_ended {
            assert_eq!((runs.count(), runs.allocated_bytes.sum()), (1, 5));
            assert_eq!(
                (runs.most_bytes.sum(), runs.held_bytes.sum()),
                (5, 1),
                "the parts are in the order in which they happened"
            );
        } else {
            assert_eq!(runs.count(), 0, "the run has not ended");
        }
    });
}
