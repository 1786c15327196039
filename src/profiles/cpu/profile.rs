//! The profile of a piece of code: from its start to its end, on one thread at a time.

use std::collections::HashSet;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::{CpuError, Samples, Stats, StatsBuilder};
use crate::capture::arch::{Registers, registers_here};
use crate::capture::cpu::Sampler;
use crate::capture::untracked;
use crate::os::signal;

/// Default time between two samples.
const INTERVAL: Duration = Duration::from_millis(1);

/// Shortest interval. With a shorter one the thread would do nothing but take samples.
const SHORTEST: Duration = Duration::from_micros(50);

/// Runs `function` and profiles the calling thread meanwhile. Returns the function's result, and the profile of its CPU
/// time.
///
/// Never fails: if the thread can't be sampled, the [`Stats`] are empty and [say why](Stats::error).
pub fn run<R>(function: impl FnOnce() -> R) -> (R, Stats) {
    builder().run(function)
}

/// Awaits `future` and profiles each thread that polls it during the poll. Returns the future's result, and the profile of
/// its CPU time. Tasks that the future spawns are not part of it.
pub async fn run_async<F: Future>(future: F) -> (F::Output, Stats) {
    builder().run_async(future).await
}

/// Profiles the calling thread until the guard is [finished](CpuProfile::finish).
///
/// ```
/// let profile = heapray::cpu_profile::start();
/// let squares: Vec<u64> = (0..1000).map(|n| n * n).collect();
/// let stats = profile.finish();
/// println!("{} samples", stats.total().samples);
/// # drop(squares);
/// ```
#[inline(never)]
pub fn start() -> CpuProfile {
    // SAFETY: of this very function.
    unsafe { builder().start_at(registers_here()) }
}

/// Returns the options of a profile.
pub fn builder() -> Builder {
    Builder { interval: INTERVAL }
}

/// Options of a profile.
#[derive(Debug, Clone, Copy)]
#[must_use = "a builder profiles nothing until `run`, `run_async` or `start`"]
pub struct Builder {
    interval: Duration,
}

impl Builder {
    /// Sets the CPU time between two samples. Default 1 ms, at least 50 µs; the kernel makes it a tick of its scheduler if
    /// that is longer.
    pub fn interval(mut self, interval: Duration) -> Builder {
        self.interval = interval.max(SHORTEST);
        self
    }

    /// Does what [`run`] does.
    pub fn run<R>(self, function: impl FnOnce() -> R) -> (R, Stats) {
        let profile = self.start();
        let result = function();
        (result, profile.finish())
    }

    /// Does what [`run_async`] does.
    pub async fn run_async<F: Future>(self, future: F) -> (F::Output, Stats) {
        let mut sampling = self.sampling();
        let mut future = pin!(future);
        let result = poll_fn(|context| sampling.around(|| future.as_mut().poll(context))).await;
        (result, sampling.finish())
    }

    /// Does what [`start`] does.
    #[inline(never)]
    pub fn start(self) -> CpuProfile {
        // SAFETY: of this very function.
        unsafe { self.start_at(registers_here()) }
    }

    /// # Safety
    /// The same as for [`Sampling::resume`].
    pub(super) unsafe fn start_at(self, registers: Registers) -> CpuProfile {
        let mut sampling = self.sampling();
        // SAFETY: the caller's duty.
        unsafe { sampling.resume(registers) };
        CpuProfile {
            sampling,
            _of_this_thread: PhantomData,
        }
    }

    pub(super) fn sampling(self) -> Sampling {
        Sampling::new(self.interval)
    }
}

/// Running profile of the calling thread.
#[derive(Debug)]
#[must_use = "the profile ends when this is dropped"]
pub struct CpuProfile {
    sampling: Sampling,
    _of_this_thread: PhantomData<*mut ()>,
}

impl CpuProfile {
    /// Ends the profile, and looks up the functions.
    #[must_use]
    pub fn finish(self) -> Stats {
        self.sampling.finish()
    }

    /// Returns the value that a signal of this profile's timer carries. For tests, which cannot wait for timers.
    #[doc(hidden)]
    #[must_use]
    pub fn signal_value(&self) -> usize {
        self.sampling
            .sampler
            .as_ref()
            .map_or(0, Sampler::signal_value)
    }

    /// Returns a counter of samples that is updated while they are taken. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn samples(&self) -> Option<&'static AtomicU64> {
        self.sampling.sampler.as_ref().ok().map(Sampler::samples)
    }

    /// Does what [`finish`](Self::finish) does, without consuming the profile, for `Drop`. A second call returns nothing.
    #[cfg(feature = "macros")]
    pub(super) fn take(&mut self) -> Stats {
        self.sampling.take()
    }
}

/// Sampler that follows a piece of code, or the reason why there is none.
#[derive(Debug)]
pub(super) struct Sampling {
    sampler: Result<Sampler, CpuError>,
    /// Stacks in which it was resumed, without the resuming function.
    bases: HashSet<u32>,
    unblocked: Option<signal::Unblocked>,
}

impl Sampling {
    fn new(interval: Duration) -> Sampling {
        let _untracked = untracked::enter();
        let interval = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        let sampler = Sampler::new(interval);
        if let Err(error) = &sampler {
            tracing::warn!(%error, "heapray does not profile CPU time");
        }
        Sampling {
            sampler,
            bases: HashSet::new(),
            unblocked: None,
        }
    }

    /// Samples the calling thread from now on.
    ///
    /// # Safety
    /// `registers` are those of a frame that has not returned yet, of a function that the profiled code called.
    pub(super) unsafe fn resume(&mut self, registers: Registers) {
        let Ok(sampler) = &mut self.sampler else {
            return;
        };
        let _untracked = untracked::enter();
        // SAFETY: the caller's duty.
        let here = unsafe { sampler.node_at(registers) };
        // The caller's caller, because the profiled code returns to its own frame at another address.
        self.bases.insert(sampler.callers_caller(here));
        self.unblocked = signal::Unblocked::new(libc::SIGPROF);
        if let Err(error) = sampler.resume_here() {
            tracing::warn!(%error, "heapray does not profile CPU time");
            self.sampler = Err(error);
        }
    }

    pub(super) fn pause(&mut self) {
        if let Ok(sampler) = &mut self.sampler {
            sampler.pause();
        }
        self.unblocked = None;
    }

    /// Calls `poll` and samples the calling thread meanwhile.
    #[inline(never)]
    pub(super) fn around<R>(&mut self, poll: impl FnOnce() -> R) -> R {
        /// Guard that pauses even if the code panics.
        struct Around<'s>(&'s mut Sampling);
        impl Drop for Around<'_> {
            fn drop(&mut self) {
                self.0.pause();
            }
        }
        // SAFETY: of this very function, which the future's code calls.
        unsafe { self.resume(registers_here()) };
        let _around = Around(self);
        poll()
    }

    pub(super) fn finish(mut self) -> Stats {
        self.take()
    }

    pub(super) fn take(&mut self) -> Stats {
        self.pause();
        let _untracked = untracked::enter();
        let sampler = std::mem::replace(&mut self.sampler, Err(CpuError::Unsupported));
        let mut samples = Samples::new();
        let cpu_ns = match sampler {
            Ok(mut sampler) => {
                samples.add(&mut sampler, &self.bases);
                sampler.sampled_ns()
            }
            Err(error) => return Stats::failed(error),
        };
        let lost = samples.lost();
        let mut stats = StatsBuilder::default();
        samples.into_stats(&mut stats);
        let mut stats = stats.finish();
        (stats.cpu_ns, stats.lost) = (cpu_ns, lost);
        stats
    }
}
