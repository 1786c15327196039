//! Runs: requests, or futures, in a context.
//!
//! A [`Run`] is entered and left with its future, on any thread. The collector adds up what happens in it. While sampling it
//! cannot, since it does not see all; then the thread's own counts are read at each entering and leaving.

use core::sync::atomic::{AtomicU64, Ordering};

use super::context::{Entered, enter};
use super::event::RunEnd;
use super::metered::Metered;
use super::thread::{self, Busy, with_local};
use super::thread_context::{self, ThreadContext};
use super::trace::TraceContext;
use super::{record, sampling};

/// The number of the last run.
static LAST_RUN: AtomicU64 = AtomicU64::new(0);

/// One request, or one future, from its beginning to its end, whose allocations are added up. It ends when this is dropped.
#[derive(Debug)]
pub struct Run {
    /// 0 if nothing is added up.
    number: u64,
    /// The context that it is counted under.
    context: u32,
    /// Its allocations, as far as its threads sampled.
    metered: Metered,
    trace: Option<TraceContext>,
    /// Whether the service itself has said which trace it is.
    is_told: bool,
}

impl Run {
    /// The run of what is not added up by itself.
    pub const NONE: Run = Run {
        number: 0,
        context: 0,
        metered: Metered { count: 0, bytes: 0 },
        trace: None,
        is_told: false,
    };

    /// Begins a run that is counted under `context`. Returns [`NONE`](Run::NONE) if no session records, or if the calling
    /// thread is in a run already: what happens then is a part of that.
    pub fn begin(context: u32) -> Run {
        if record::is_off() || with_local(|local| local.run.get()) != 0 {
            return Run::NONE;
        }
        Run {
            number: LAST_RUN.fetch_add(1, Ordering::Relaxed) + 1,
            context,
            ..Run::NONE
        }
    }

    /// Asks for the trace that the run belongs to, unless nothing of the run is added up. What the service has `told` comes
    /// first, then the thread context, now or as the run's allocations find it, and then what was `received`.
    #[cfg(feature = "http")]
    pub fn ask_trace(
        &mut self,
        told: impl FnOnce() -> Option<TraceContext>,
        received: impl FnOnce() -> Option<TraceContext>,
    ) {
        if self.number == 0 {
            return;
        }
        self.trace = told();
        self.is_told = self.trace.is_some();
        if !self.is_told {
            let shared = with_thread_context(|shared| shared.now());
            self.trace = shared.flatten().or_else(received);
        }
    }

    /// Lets the calling thread enter `context`, and the run, until the guard is dropped.
    #[inline]
    pub fn enter(&mut self, context: u32) -> InRun<'_> {
        let entered = enter(context);
        let outside = (self.number != 0).then(|| {
            with_local(|local| Outside {
                run: local.change_run(self.number, self.context),
                metered: sampling::metered_by(local),
                trace: with_thread_context(|shared| shared.replace(None)).flatten(),
            })
        });
        InRun {
            run: self,
            outside,
            _entered: entered,
        }
    }

    /// Ends the run.
    pub fn end(&mut self) {
        let number = core::mem::take(&mut self.number);
        if number == 0 || record::is_off() {
            return;
        }
        let _busy = Busy::enter();
        let end = RunEnd {
            context: self.context,
            metered: sampling::is_on().then_some(self.metered),
            is_traced: self.trace.is_some(),
        };
        with_local(|local| record::run_end(local, number, end, self.trace));
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.end();
    }
}

/// Lets the run that the calling thread is in be counted under `context` from now on.
pub fn name_run(context: u32) {
    with_local(|local| local.run_context.set(context));
}

/// Calls `work` with the thread context of the calling thread. Returns `None` if no library shares one.
#[inline]
fn with_thread_context<R>(work: impl FnOnce(&mut ThreadContext) -> R) -> Option<R> {
    if thread_context::is_shared() == Some(false) {
        return None;
    }
    with_shared_context(work)
}

#[cold]
fn with_shared_context<R>(work: impl FnOnce(&mut ThreadContext) -> R) -> Option<R> {
    let _busy = Busy::enter();
    if !thread_context::look_up_library() {
        return None;
    }
    with_local(|local| {
        let (state, _borrowed) = thread::state(local)?;
        // SAFETY: the calling thread owns `state`, and is busy, so no second borrow of its private part exists.
        let shared = unsafe { &mut (*state.private.get()).thread_context };
        shared.follow();
        Some(work(shared))
    })
}

/// What the thread was in when it entered a run.
#[derive(Debug)]
struct Outside {
    run: (u64, u32),
    /// The thread's allocations until then, if it samples.
    metered: Option<Metered>,
    /// The trace that they were for, if a library shares it.
    trace: Option<TraceContext>,
}

/// Thread in a [`Run`], and in a context, until this is dropped.
#[derive(Debug)]
#[must_use = "the run is left when this is dropped"]
pub struct InRun<'a> {
    run: &'a mut Run,
    /// `None` if the run is none.
    outside: Option<Outside>,
    _entered: Entered,
}

impl Drop for InRun<'_> {
    #[inline]
    fn drop(&mut self) {
        let Some(outside) = &self.outside else {
            return;
        };
        let Outside {
            run,
            metered,
            trace,
        } = outside;
        with_local(|local| {
            let (_, context) = local.change_run(run.0, run.1);
            self.run.context = context;
            let noticed = with_thread_context(|shared| shared.replace(*trace)).flatten();
            if noticed.is_some() && !self.run.is_told {
                self.run.trace = noticed;
            }
            if let (Some(before), Some(now)) = (metered, sampling::metered_by(local)) {
                self.run.metered = self.run.metered + (now - *before);
            }
        });
    }
}
