//! Options of a profile.

use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;

use super::pool::Pool;
use super::profile::ParallelProfile;

/// Returns the options of a profile with the title `name`.
pub fn builder(name: impl Into<String>) -> Builder {
    Builder {
        name: name.into(),
        workers: None,
        threads_per_worker: 1,
        report: PathBuf::from("heapray-parallel.html"),
        display: false,
    }
}

/// Options of a profile.
#[derive(Debug, Clone)]
#[must_use = "a builder profiles nothing until `run`, `run_async` or `start`"]
pub struct Builder {
    pub(super) name: String,
    pub(super) workers: Option<usize>,
    pub(super) threads_per_worker: usize,
    pub(super) report: PathBuf,
    pub(super) display: bool,
}

impl Builder {
    /// Runs on so many workers of its own. Default: on the present threads.
    pub fn n_workers(mut self, workers: usize) -> Builder {
        self.workers = (workers > 0).then_some(workers);
        self
    }

    /// Sets the threads of each of [`n_workers`](Self::n_workers). Default 1.
    pub fn threads_per_worker(mut self, threads: usize) -> Builder {
        self.threads_per_worker = threads.max(1);
        self
    }

    /// Sets the page's file. Default `heapray-parallel.html`, in the working directory.
    pub fn report_name(mut self, path: impl Into<PathBuf>) -> Builder {
        self.report = path.into();
        self
    }

    /// Sets whether the page is opened in the desktop's browser, if there is one. Default no.
    pub fn display_report(mut self, display: bool) -> Builder {
        self.display = display;
        self
    }

    /// Returns the workers and their threads, if the profile has a pool of its own.
    pub(super) fn size(&self) -> Option<(usize, usize)> {
        self.workers
            .map(|workers| (workers, self.threads_per_worker))
    }

    /// Runs `function` here, and writes the page of the work that was done meanwhile. With a size, tokio's functions in it
    /// use a runtime of that size.
    pub fn run<R>(self, function: impl FnOnce() -> R) -> R {
        let profile = self.start();
        profile.around(function)
    }

    /// Awaits `future`, and writes the page of the work that was done meanwhile.
    pub async fn run_async<F: Future>(self, future: F) -> F::Output {
        let pool = Pool::tokio(&self);
        let profile = ParallelProfile::begin(self, pool);
        profile.will_be_polled();
        let mut future = pin!(future);
        let result = poll_fn(|context| profile.around_poll(|| future.as_mut().poll(context))).await;
        profile.has_returned();
        result
    }

    /// Runs `function` on a rayon pool of this size, or on rayon's own if no size is set.
    pub fn run_on_rayon<R: Send>(self, function: impl FnOnce() -> R + Send) -> R {
        let pool = Pool::rayon(&self);
        let profile = ParallelProfile::begin(self, pool);
        profile.install(function)
    }

    /// Profiles until the guard is dropped.
    pub fn start(self) -> ParallelProfile {
        let pool = Pool::tokio(&self);
        ParallelProfile::begin(self, pool)
    }
}
