//! The code behind `parallel_profiler`.

use std::path::PathBuf;

use super::profile::ParallelProfile;
use super::{Builder, builder};
use crate::capture::untracked;

/// Arguments of the attribute.
#[derive(Debug)]
pub struct Parallel(Builder);

#[allow(missing_docs)] // the attribute's arguments, and `macros` has their documentation
impl Parallel {
    pub fn named(function: &'static str) -> Parallel {
        Parallel(builder(function))
    }

    pub fn options(enable: bool, options: impl FnOnce() -> Parallel) -> Option<Parallel> {
        let _untracked = untracked::enter();
        enable.then(options)
    }

    pub fn n_workers(self, workers: usize) -> Parallel {
        Parallel(self.0.n_workers(workers))
    }

    pub fn threads_per_worker(self, threads: usize) -> Parallel {
        Parallel(self.0.threads_per_worker(threads))
    }

    pub fn report_name(self, path: impl Into<PathBuf>) -> Parallel {
        Parallel(self.0.report_name(path))
    }

    pub fn display_report(self, display: bool) -> Parallel {
        Parallel(self.0.display_report(display))
    }

    /// Profiles until the guard is dropped.
    pub fn begin(options: Option<Parallel>) -> impl Sized {
        options.map(|Parallel(options)| Profiled::of(options.start()))
    }

    /// Profiles while `function` runs here, in a pool's context.
    pub fn here<R>(options: Option<Parallel>, function: impl FnOnce() -> R) -> R {
        match options {
            Some(Parallel(options)) => options.run(function),
            None => function(),
        }
    }

    /// Profiles while `future` is awaited.
    pub async fn around<F: Future>(options: Option<Parallel>, future: F) -> F::Output {
        match options {
            Some(Parallel(options)) => options.run_async(future).await,
            None => future.await,
        }
    }

    /// Profiles while `function` runs on a rayon pool.
    pub fn on_rayon<R: Send>(options: Option<Parallel>, function: impl FnOnce() -> R + Send) -> R {
        match options {
            Some(Parallel(options)) => options.run_on_rayon(function),
            None => function(),
        }
    }
}

/// Profile, and its function on this thread.
struct Profiled {
    // Dropped in this order: the function's end is a task's before it is the profile's.
    _task: Option<super::Task>,
    _profile: ParallelProfile,
}

impl Profiled {
    fn of(profile: ParallelProfile) -> Profiled {
        let task = profile.name().map(super::task);
        Profiled {
            _task: task,
            _profile: profile,
        }
    }
}
