//! The context of a thread: on whose behalf it allocates.
//!
//! A context is a number; what it stands for is known elsewhere (`crate::contexts`). A change writes two words of the
//! thread. The next event then goes the way of a thread that was not announced yet (`record::publish`), and a
//! [`Kind::Context`](super::event::Kind::Context) is written before it. So a recorded event costs nothing more than before, and a
//! change of context without events leaves none.
//!
//! A [`Run`] is one request, or one future, in a context. It is entered and left with its future, on any thread. The collector
//! adds up what happens in it. While sampling it cannot, since it does not see all; then the thread's own counts are read at
//! each entering and leaving.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

use super::event::RunEnd;
use super::meter::Metered;
use super::thread::{Busy, with_local};
use super::{control, record, sampling};

/// Thread in a context, until this is dropped. Then the thread is in the context of before.
#[derive(Debug)]
#[must_use = "the context is left when this is dropped"]
pub struct Entered {
    before: u32,
    _of_this_thread: PhantomData<*mut ()>,
}

/// Lets the calling thread enter the context of this number; 0 is none.
#[inline]
pub fn enter(context: u32) -> Entered {
    Entered {
        before: with_local(|local| local.change_context(context)),
        _of_this_thread: PhantomData,
    }
}

/// Lets the calling thread be in the context of this number from now on. Returns that of before.
#[cfg(feature = "spans")]
pub fn replace(context: u32) -> u32 {
    with_local(|local| local.change_context(context))
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        with_local(|local| local.change_context(self.before));
    }
}

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
}

impl Run {
    /// The run of what is not added up by itself.
    pub const NONE: Run = Run {
        number: 0,
        context: 0,
        metered: Metered { count: 0, bytes: 0 },
    };

    /// Begins a run that is counted under `context`. Returns [`NONE`](Run::NONE) if no session records, or if the calling
    /// thread is in a run already: what happens then is a part of that.
    pub fn begin(context: u32) -> Run {
        if control::session() == 0 || with_local(|local| local.run.get()) != 0 {
            return Run::NONE;
        }
        Run {
            number: LAST_RUN.fetch_add(1, Ordering::Relaxed) + 1,
            context,
            ..Run::NONE
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
        };
        with_local(|local| record::run_end(local, number, end));
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

/// Returns the context of the calling thread.
#[inline]
#[must_use]
pub fn current() -> u32 {
    with_local(|local| local.context.get())
}

#[cfg(all(test, not(heapray_loom)))]
mod tests {
    use super::*;
    use crate::capture::thread::number;

    #[test]
    fn a_context_ends_with_its_guard_and_leaves_the_number_as_it_is() {
        std::thread::spawn(|| {
            let outer = enter(1);
            let given = with_local(number);
            assert_ne!(
                given, 0,
                "a thread may change its context before it has a number"
            );
            let inner = enter(2);
            assert_eq!((current(), with_local(number)), (2, given));
            drop(inner);
            assert_eq!(current(), 1);
            drop(outer);
            assert_eq!((current(), with_local(number)), (0, given));
        })
        .join()
        .unwrap();
    }
}
