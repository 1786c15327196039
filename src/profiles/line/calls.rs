//! The calls of profiled functions that are under way, one list a thread, the innermost last.
//!
//! A marker looks for the innermost call of its own function. So a marker in a closure finds its call wherever the
//! closure is called from, and none where it runs on another thread. A task's call is on the list during its polls only.

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

/// What goes with a call from thread to thread.
#[derive(Debug)]
pub(super) struct State {
    pub(super) function: &'static Function,
    pub(super) lines: Lines,
    pub(super) metric: Source,
    /// For the reports of PyCOMPSs.
    pub(super) job: Option<Job>,
    /// The thread was panicking before: a panic is not this call's.
    unwinding: bool,
    _record: Record,
}

/// When a call began, and the machine's memory then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) time: SystemTime,
    pub(super) since: Instant,
    pub(super) memory: u64,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Returned,
    Panicked,
    /// A task that was dropped before it had ended.
    Dropped,
}

/// A call that is not on a thread's list.
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

/// `change` on the thread's list; `None` where the thread ends, or is in here already.
fn with_calls<R>(change: impl FnOnce(&mut Vec<Active>) -> R) -> Option<R> {
    // What is allocated here is in nobody's profile.
    let _busy = Busy::enter();
    CALLS
        .try_with(|calls| Some(change(&mut *calls.try_borrow_mut().ok()?)))
        .ok()
        .flatten()
}

/// A call of `function` begins. False if it cannot be followed.
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

/// Control comes to `line` in the innermost call of `function`.
pub(super) fn line(function: &'static Function, line: u32) {
    with_calls(|calls| {
        if let Some(call) = find(calls, function) {
            let reading = call.read();
            call.state.lines.go(line, reading);
        }
    });
}

/// The line that control is on in the innermost call of `function`.
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

/// Puts a call on the list. False, and it is gone, if that is not possible.
pub(super) fn resume(call: Suspended) -> bool {
    with_calls(|calls| {
        calls.push(Active {
            state: call.state,
            scope: call.scope.map(Scope::enter),
        });
    })
    .is_some()
}

/// The innermost call has ended: takes the last reading and reports.
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
    // Not busy: what is freed here may be the service's (a subscriber's, for one).
    let _untracked = untracked::enter();
    report::call_ended(&state, scope.as_ref(), ended);
    let _busy = Busy::enter();
    drop((state, scope));
}
