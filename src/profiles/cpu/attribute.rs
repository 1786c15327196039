//! The code behind `single_thread_profiler`: a profile of one call, which is printed, written or passed on when the call
//! ends in any way.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use super::profile::Sampling;
use super::{Builder, CpuProfile, SortBy, Stats, builder};
use crate::capture::untracked;

/// Options for the profile of a call.
#[derive(Debug)]
pub struct SingleThread {
    function: &'static str,
    builder: Builder,
    sort_by: SortBy,
    limit: usize,
    print: Option<bool>,
    strip_dirs: bool,
    report: Option<PathBuf>,
    callback: Option<fn(Stats)>,
}

#[allow(missing_docs)] // the attribute's arguments, and `macros` has their documentation
impl SingleThread {
    pub fn named(function: &'static str) -> SingleThread {
        SingleThread {
            function,
            builder: builder(),
            sort_by: SortBy::default(),
            limit: 40,
            print: None,
            strip_dirs: false,
            report: None,
            callback: None,
        }
    }

    pub fn options(enable: bool, options: impl FnOnce() -> SingleThread) -> Option<SingleThread> {
        let _untracked = untracked::enter();
        enable.then(options)
    }

    pub fn sort_by(mut self, name: &str) -> SingleThread {
        self.sort_by = SortBy::named(name).unwrap_or_default();
        self
    }

    pub fn limit(mut self, limit: usize) -> SingleThread {
        self.limit = limit;
        self
    }

    pub fn print(mut self, print: bool) -> SingleThread {
        self.print = Some(print);
        self
    }

    pub fn strip_dirs(mut self, strip: bool) -> SingleThread {
        self.strip_dirs = strip;
        self
    }

    pub fn interval_us(mut self, interval: u64) -> SingleThread {
        self.builder = self.builder.interval(Duration::from_micros(interval));
        self
    }

    pub fn report_name(mut self, path: impl Into<PathBuf>) -> SingleThread {
        self.report = Some(path.into());
        self
    }

    pub fn callback(mut self, callback: fn(Stats)) -> SingleThread {
        self.callback = Some(callback);
        self
    }

    /// Profiles until the guard is dropped.
    #[inline(never)]
    pub fn begin(options: Option<SingleThread>) -> Option<Profiled<CpuProfile>> {
        let options = options?;
        Some(Profiled {
            // SAFETY: of this very function.
            profile: unsafe {
                options
                    .builder
                    .start_at(crate::capture::arch::registers_here())
            },
            options: Some(options),
        })
    }

    /// Profiles the polls of `future`.
    pub async fn around<F: Future>(options: Option<SingleThread>, future: F) -> F::Output {
        let Some(options) = options else {
            return future.await;
        };
        let mut profiled = Profiled {
            profile: options.builder.sampling(),
            options: Some(options),
        };
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|context| profiled.profile.around(|| future.as_mut().poll(context)))
            .await
    }

    fn give(self, stats: Stats) {
        let untracked = untracked::enter();
        let stats = match self.strip_dirs {
            true => stats.strip_dirs(),
            false => stats,
        };
        let stats = stats.sort_by(self.sort_by);
        if self.print.unwrap_or(self.callback.is_none()) {
            let _ = write!(
                io::stdout().lock(),
                "CPU profile of {}\n\n{}",
                self.function,
                stats.top(self.limit)
            );
        }
        if let Some(path) = self.report
            && let Err(error) = stats.dump(&path)
        {
            let path = path.display();
            tracing::warn!(%error, %path, "heapray can't write the CPU profile");
        }
        drop(untracked);
        if let Some(callback) = self.callback {
            callback(stats);
        }
    }
}

/// Profile that ends in [`Stats`].
pub trait Ends {
    /// Ends the profile.
    fn end(&mut self) -> Stats;
}

impl Ends for CpuProfile {
    fn end(&mut self) -> Stats {
        self.take()
    }
}

impl Ends for Sampling {
    fn end(&mut self) -> Stats {
        self.take()
    }
}

/// Running call. The profile ends with it, by a result, a panic or because the future is dropped.
#[derive(Debug)]
pub struct Profiled<P: Ends> {
    profile: P,
    options: Option<SingleThread>,
}

impl<P: Ends> Drop for Profiled<P> {
    fn drop(&mut self) {
        if let Some(options) = self.options.take() {
            options.give(self.profile.end());
        }
    }
}
