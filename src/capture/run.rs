//! Runs: requests, or futures, in a context.
//!
//! A [`Run`] is entered and left with its future, on any thread. The collector adds up what happens in it. While sampling it
//! cannot, since it does not see all; then the thread's own counts are read at each entering and leaving.

use core::sync::atomic::{AtomicU64, Ordering};

use super::context::{Entered, enter};
use super::event::RunEnd;
use super::metered::Metered;
use super::thread::{Busy, with_local};
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
}

impl Run {
    /// The run of what is not added up by itself.
    pub const NONE: Run = Run {
        number: 0,
        context: 0,
        metered: Metered { count: 0, bytes: 0 },
        trace: None,
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

    /// Asks for the trace that the run belongs to, unless nothing of the run is added up.
    #[cfg(feature = "http")]
    pub fn ask_trace(&mut self, trace: impl FnOnce() -> Option<TraceContext>) {
        if self.number != 0 {
            self.trace = trace();
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

/// What the thread was in when it entered a run.
#[derive(Debug)]
struct Outside {
    run: (u64, u32),
    /// The thread's allocations until then, if it samples.
    metered: Option<Metered>,
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
        let Some(Outside { run, metered }) = &self.outside else {
            return;
        };
        with_local(|local| {
            let (_, context) = local.change_run(run.0, run.1);
            self.run.context = context;
            if let (Some(before), Some(now)) = (metered, sampling::metered_by(local)) {
                self.run.metered = self.run.metered + (now - *before);
            }
        });
    }
}
