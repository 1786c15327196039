//! The running calls of profiled functions, one list per thread, the innermost call last.
//!
//! A marker looks for the innermost call of its own function. So a marker in a closure finds its call wherever the closure
//! is called from, but finds none if the closure runs on another thread. A task's call is on the list during its polls only.

use std::cell::RefCell;
use std::ptr;
use std::time::{Instant, SystemTime};

use super::function::{Format, Function};
use super::lines::{Lines, Reading};
use super::metric::{self, Source};
use super::record::{self, Record};
use super::{pycompss, report};
use crate::capture::scope::{Entered, Scope};
use crate::capture::thread::Busy;
use crate::capture::untracked;

/// State of a call, which moves with the call from thread to thread.
#[derive(Debug)]
pub(super) struct State {
    pub(super) function: &'static Function,
    pub(super) lines: Lines,
    pub(super) metric: Source,
    /// Data for the reports of PyCOMPSs.
    pub(super) job: Option<Job>,
    /// Set if the thread was panicking before: then a panic does not belong to this call.
    unwinding: bool,
    _record: Record,
}

/// Start of a call, and the machine's memory then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) time: SystemTime,
    pub(super) since: Instant,
    pub(super) memory: u64,
}

/// End of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Returned,
    Panicked,
    /// A task was dropped before its end.
    Dropped,
}

/// Call that is not on a thread's list.
#[derive(Debug)]
pub(super) struct Suspended {
    state: Box<State>,
    scope: Option<Scope>,
}

struct Active {
    state: Box<State>,
    scope: Option<Entered>,
}

impl Active {
    fn read(&self) -> Reading {
        metric::read(self.scope.as_ref(), self.state.lines.current())
    }
}

thread_local! {
    static CALLS: RefCell<Vec<Active>> = const { RefCell::new(Vec::new()) };
}

/// Calls `change` with the thread's list. Returns `None` if the thread ends, or if this function is running on it already.
fn with_calls<R>(change: impl FnOnce(&mut Vec<Active>) -> R) -> Option<R> {
    // Allocations here do not belong to any profile.
    let _busy = Busy::enter();
    CALLS
        .try_with(|calls| Some(change(&mut *calls.try_borrow_mut().ok()?)))
        .ok()
        .flatten()
}

/// Begins a call of `function`. Returns false if it cannot be followed.
pub(super) fn begin(function: &'static Function) -> bool {
    let _untracked = untracked::enter();
    let source = &function.source;
    let job = (function.options.format == Format::Pycompss).then(|| Job {
        time: SystemTime::now(),
        since: Instant::now(),
        memory: pycompss::used_memory(),
    });
    let record = record::begin(source.path);
    with_calls(|calls| {
        let lines = Lines::new(source.first_line, source.lines, function.options.semantics);
        let (metric, scope) = metric::begin(function.options.metric);
        let state = Box::new(State {
            function,
            lines,
            metric,
            job,
            unwinding: std::thread::panicking(),
            _record: record,
        });
        calls.push(Active { state, scope });
    })
    .is_some()
}

fn find<'c>(calls: &'c mut [Active], function: &'static Function) -> Option<&'c mut Active> {
    let mut calls = calls.iter_mut().rev();
    calls.find(|call| ptr::eq(call.state.function, function))
}

/// Notes that control comes to `line` in the innermost call of `function`.
pub(super) fn line(function: &'static Function, line: u32) {
    with_calls(|calls| {
        if let Some(call) = find(calls, function) {
            let reading = call.read();
            call.state.lines.go(line, reading);
        }
    });
}

/// Returns the line that control is on in the innermost call of `function`.
pub(super) fn current(function: &'static Function) -> Option<u32> {
    with_calls(|calls| find(calls, function).map(|call| call.state.lines.current())).flatten()
}

/// Takes the innermost call off the list.
pub(super) fn suspend() -> Option<Suspended> {
    with_calls(|calls| {
        calls.pop().map(|call| Suspended {
            state: call.state,
            scope: call.scope.map(Entered::leave),
        })
    })
    .flatten()
}

/// Puts a call on the list. If that is not possible, drops the call and returns false.
pub(super) fn resume(call: Suspended) -> bool {
    with_calls(|calls| {
        calls.push(Active {
            state: call.state,
            scope: call.scope.map(Scope::enter),
        });
    })
    .is_some()
}

/// Ends the innermost call: takes the last reading and reports.
pub(super) fn end(mut ended: Ended) {
    let over = with_calls(|calls| {
        let mut call = calls.pop()?;
        let reading = call.read();
        call.state.lines.leave(reading);
        Some((call.state, call.scope.map(Entered::leave)))
    });
    let Some((state, scope)) = over.flatten() else {
        return;
    };
    if std::thread::panicking() && !state.unwinding {
        ended = Ended::Panicked;
    }
    // Untracked, not busy: frees in here may be of the service's blocks (a subscriber's, for example).
    let _untracked = untracked::enter();
    report::call_ended(&state, scope.as_ref(), ended);
    let _busy = Busy::enter();
    drop((state, scope));
}
