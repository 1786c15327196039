//! Tasks: intervals of time, kept by the thread on which they ran.
//!
//! While nothing is profiled, a task costs one relaxed load. Otherwise its beginning is kept on the thread, and its end
//! appends an interval to a list that only this thread appends to. The list's lock is only there for the reader, at the end.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::capture::arch;
use crate::capture::untracked;

/// Largest number of intervals in a profile.
pub(super) const MOST: u64 = 500_000;

/// Set while a profile keeps tasks.
static WANTED: AtomicBool = AtomicBool::new(false);
/// Number of intervals since the profile began.
static TAKEN: AtomicU64 = AtomicU64::new(0);
/// Number of the profile.
static PROFILE: AtomicU64 = AtomicU64::new(0);
static THREADS: Mutex<Vec<Arc<Thread>>> = Mutex::new(Vec::new());
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

type Name = Cow<'static, str>;

/// Thread that tasks ran on.
#[derive(Debug)]
struct Thread {
    tid: u32,
    name: String,
    intervals: Mutex<Vec<Interval>>,
}

#[derive(Debug)]
struct Interval {
    name: Name,
    start_ns: u64,
    end_ns: u64,
    depth: u32,
}

/// Interval as a page has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) tid: u32,
    pub(super) name: u32,
    pub(super) depth: u32,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

/// All intervals of a profile.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) names: Vec<String>,
    pub(super) ran: Vec<Ran>,
    /// Threads by their numbers.
    pub(super) threads: HashMap<u32, String>,
    pub(super) dropped: u64,
}

/// Tasks that a thread has begun.
struct Own {
    thread: Arc<Thread>,
    open: Vec<Open>,
    /// The profile in which the last of them began.
    profile: u64,
}

struct Open {
    name: Name,
    span: Option<u64>,
    start_ns: u64,
}

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // The lists are whole at any moment.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the nanoseconds of the clock of all intervals.
pub(super) fn now_ns() -> u64 {
    u64::try_from(EPOCH.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Begins to keep intervals.
pub(super) fn begin_recording() {
    LazyLock::force(&EPOCH);
    TAKEN.store(0, Ordering::Relaxed);
    PROFILE.fetch_add(1, Ordering::Relaxed);
    for thread in lock(&THREADS).iter() {
        lock(&thread.intervals).clear();
    }
    WANTED.store(true, Ordering::SeqCst);
}

/// Returns whether intervals are kept.
#[inline]
pub(super) fn is_recording() -> bool {
    WANTED.load(Ordering::Relaxed)
}

/// Stops keeping intervals, and returns those that were kept, relative to `start_ns`.
pub(super) fn end_recording(start_ns: u64) -> Recorded {
    WANTED.store(false, Ordering::SeqCst);
    let mut recorded = Recorded {
        dropped: TAKEN.load(Ordering::Relaxed).saturating_sub(MOST),
        ..Recorded::default()
    };
    let mut names: HashMap<Name, u32> = HashMap::new();
    let mut threads = lock(&THREADS);
    for thread in threads.iter() {
        let intervals = std::mem::take(&mut *lock(&thread.intervals));
        if !intervals.is_empty() {
            recorded.threads.insert(thread.tid, thread.name.clone());
        }
        for Interval {
            name,
            start_ns: from,
            end_ns,
            depth,
        } in intervals
        {
            let next = names.len() as u32;
            let number = *names.entry(name).or_insert_with_key(|name| {
                recorded.names.push(name.as_ref().to_owned());
                next
            });
            recorded.ran.push(Ran {
                tid: thread.tid,
                name: number,
                depth,
                // A task may have begun before the profile.
                start_ns: from.saturating_sub(start_ns),
                end_ns: end_ns.saturating_sub(start_ns),
            });
        }
    }
    // Threads that only this list refers to have ended.
    threads.retain(|thread| Arc::strong_count(thread) > 1);
    recorded
}

/// Begins a task on this thread. `span` distinguishes it from others that may end before it.
pub(super) fn enter(name: Name, span: Option<u64>) {
    let _untracked = untracked::enter();
    // A thread that is ending has no place for tasks any more.
    let _ = OWN.try_with(|own| {
        let Ok(mut own) = own.try_borrow_mut() else {
            return;
        };
        let own = own.get_or_insert_with(Own::new);
        let profile = PROFILE.load(Ordering::Relaxed);
        if own.profile != profile {
            own.profile = profile;
            // If a span was left while nothing was recorded, its end was missed.
            own.open.retain(|open| open.span.is_none());
        }
        own.open.push(Open {
            name,
            span,
            start_ns: now_ns(),
        });
    });
}

/// Ends the task of `span` that began last on this thread.
pub(super) fn exit(span: Option<u64>) {
    let _untracked = untracked::enter();
    let _ = OWN.try_with(|own| {
        let Ok(mut own) = own.try_borrow_mut() else {
            return;
        };
        let Some(own) = own.as_mut() else {
            return;
        };
        let Some(at) = own.open.iter().rposition(|open| open.span == span) else {
            return;
        };
        let open = own.open.remove(at);
        if !is_recording() || TAKEN.fetch_add(1, Ordering::Relaxed) >= MOST {
            return;
        }
        lock(&own.thread.intervals).push(Interval {
            name: open.name,
            start_ns: open.start_ns,
            end_ns: now_ns(),
            depth: at as u32,
        });
    });
}

impl Own {
    fn new() -> Own {
        let thread = Arc::new(Thread {
            tid: arch::gettid(),
            name: crate::profiles::parallel::monitor::own_name(),
            intervals: Mutex::default(),
        });
        lock(&THREADS).push(Arc::clone(&thread));
        Own {
            thread,
            open: Vec::new(),
            profile: 0,
        }
    }
}

/// Begins a task on the calling thread, which ends when the guard is dropped. Nested tasks are drawn below each other.
///
/// Costs one load while nothing is profiled, and some 100 ns otherwise.
pub fn task(name: impl Into<Cow<'static, str>>) -> Task {
    let recorded = is_recording();
    if recorded {
        enter(name.into(), None);
    }
    Task {
        recorded,
        _of_this_thread: PhantomData,
    }
}

/// Running task: see [`task`].
#[derive(Debug)]
#[must_use = "the task ends when this is dropped"]
pub struct Task {
    recorded: bool,
    _of_this_thread: PhantomData<*mut ()>,
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.recorded {
            exit(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test for all, because recording belongs to the process.
    #[test]
    fn tasks_are_kept_by_thread_with_their_depth_while_somebody_wants_them() {
        drop(task("before"));
        begin_recording();
        let start = now_ns();
        {
            let _outer = task("outer");
            for _ in 0..2 {
                drop(task("inner"));
            }
        }
        let other = std::thread::spawn(|| {
            drop(task(format!("task {}", 7)));
            arch::gettid()
        });
        let other = other.join().unwrap();
        // Spans may end in another order than they began.
        enter("first".into(), Some(1));
        enter("second".into(), Some(2));
        exit(Some(1));
        exit(Some(2));
        exit(Some(3));
        let recorded = end_recording(start);
        drop(task("after"));

        let named: Vec<(&str, u32, bool)> = recorded
            .ran
            .iter()
            .map(|ran| {
                let name = recorded.names[ran.name as usize].as_str();
                (name, ran.depth, ran.tid == other)
            })
            .collect();
        let mut expected = vec![
            ("inner", 1, false),
            ("inner", 1, false),
            ("outer", 0, false),
            ("first", 0, false),
            ("second", 0, false),
            ("task 7", 0, true),
        ];
        let mut sorted = named.clone();
        sorted.sort_unstable();
        expected.sort_unstable();
        assert_eq!(sorted, expected);
        assert_eq!(recorded.names.len(), 5);
        assert!(recorded.ran.iter().all(|ran| ran.start_ns <= ran.end_ns));
        assert_eq!(recorded.dropped, 0);
        assert!(end_recording(0).ran.is_empty());
    }
}
