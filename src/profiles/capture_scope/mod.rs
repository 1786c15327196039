//! A report of a part of the program alone, with its own high-water mark.
//!
//! It works while the process's session records, beside it, and without a session: then one runs for the time of the scope.
//! Blocks from before the scope, and their frees, are not in its report.

mod error;
mod files;
mod on_thread;

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::pin::Pin;

pub use error::CaptureScopeError;
pub use files::CaptureScopeReport;

use crate::capture::untracked;
use crate::session::ActiveScope;

/// Runs `run`, and writes a report of the whole process's allocations meanwhile into `dir`: see [`CaptureScope`].
///
/// The result of `run` is never lost: it is returned together with the report, or the reason why there is none. If `run`
/// panics, the report is written nevertheless, and the panic goes on.
///
/// ```no_run
/// # fn load() -> usize { 0 }
/// let (rows, report) = heapray::capture_scope("load-report", || load());
/// match report {
///     Ok(report) => println!("peak of {} bytes: {}", report.high_water.bytes, report.index.display()),
///     Err(error) => eprintln!("no report: {error}"),
/// }
/// # let _ = rows;
/// ```
pub fn capture_scope<T>(
    dir: impl Into<PathBuf>,
    run: impl FnOnce() -> T,
) -> (T, Result<CaptureScopeReport, CaptureScopeError>) {
    CaptureScope::new(dir).run(run)
}

/// Does what [`capture_scope`] does, for a future: from its first poll until it is ready. Slow work (symbolization, writing)
/// is done on a separate thread.
///
/// A future that is dropped before it is ready leaves no report.
///
/// ```no_run
/// # async fn load() -> usize { 0 }
/// # async fn f() {
/// let (rows, report) = heapray::capture_scope_async("load-report", load()).await;
/// # let _ = (rows, report);
/// # }
/// ```
pub async fn capture_scope_async<T>(
    dir: impl Into<PathBuf>,
    future: impl Future<Output = T>,
) -> (T, Result<CaptureScopeReport, CaptureScopeError>) {
    CaptureScope::new(dir).run_async(future).await
}

/// Part of the program that gets a report of its own.
///
/// The report covers the whole process from the begin to the end of the scope, on all threads, unless
/// [`this_thread_only`](CaptureScope::this_thread_only) restricts it. It has its own high-water mark: the moment of the
/// scope at which the most of the scope's memory was live. Scopes may be nested and may overlap, each with a report of its
/// own.
///
/// The directory, which is made if it is missing, then has these files (those of a former scope are replaced):
///
/// | file | what it is |
/// |---|---|
/// | `index.html` | both flame graphs with a few words, opens from disk |
/// | `peak-memory.svg` | the high-water mark, from the program's entry down |
/// | `peak-memory-reversed.svg` | the same from the places that allocated |
/// | `peak-memory.folded` | collapsed stacks, bytes |
/// | `memray-report.bin` | for `memray` from PyPI: sums (memray's aggregated format) |
/// | `memray-flamegraph.html` | heapray's own page, with everything |
///
/// If the process's session samples, the report has estimates, and says so.
#[derive(Debug, Clone)]
#[must_use = "a scope does nothing until `run` or `run_async`"]
pub struct CaptureScope {
    dir: PathBuf,
    this_thread_only: bool,
}

impl CaptureScope {
    /// Makes a scope whose report goes to `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> CaptureScope {
        CaptureScope {
            dir: dir.into(),
            this_thread_only: false,
        }
    }

    /// Counts only the allocations of the thread that begins the scope; any thread may free them. Not for futures that move
    /// from thread to thread.
    pub fn this_thread_only(mut self) -> CaptureScope {
        self.this_thread_only = true;
        self
    }

    /// Runs `run`; see [`capture_scope`].
    pub fn run<T>(
        self,
        run: impl FnOnce() -> T,
    ) -> (T, Result<CaptureScopeReport, CaptureScopeError>) {
        let open = self.begin();
        let outcome = catch_unwind(AssertUnwindSafe(run));
        let report = self.finish(open);
        match outcome {
            Ok(value) => (value, report),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Runs `future`; see [`capture_scope_async`].
    pub async fn run_async<T>(
        self,
        future: impl Future<Output = T>,
    ) -> (T, Result<CaptureScopeReport, CaptureScopeError>) {
        // Thread numbers are of this thread, so the scope must begin here. That takes a few milliseconds.
        let scope = self.clone();
        let open = if self.this_thread_only {
            scope.begin()
        } else {
            on_thread::run(move || scope.begin()).await
        };
        let mut future = {
            let _untracked = untracked::enter();
            Box::pin(future)
        };
        let outcome = poll_fn(|context| {
            let poll = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut future).poll(context)));
            match poll {
                Ok(poll) => poll.map(Ok),
                Err(panic) => std::task::Poll::Ready(Err(panic)),
            }
        })
        .await;
        // The future's memory is freed within the scope, as a function's is.
        drop(future);
        let report = on_thread::run(move || self.finish(open)).await;
        match outcome {
            Ok(value) => (value, report),
            Err(panic) => resume_unwind(panic),
        }
    }

    fn begin(&self) -> Result<ActiveScope, CaptureScopeError> {
        let _untracked = untracked::enter();
        ActiveScope::begin(self.this_thread_only).map_err(CaptureScopeError::Begin)
    }

    fn finish(
        &self,
        open: Result<ActiveScope, CaptureScopeError>,
    ) -> Result<CaptureScopeReport, CaptureScopeError> {
        let _untracked = untracked::enter();
        let snapshot = open?.end().map_err(CaptureScopeError::Lost)?;
        let written = catch_unwind(AssertUnwindSafe(|| files::write(&self.dir, &snapshot)));
        let written = written.unwrap_or_else(|_| Err(std::io::Error::other("writing it panicked")));
        written.map_err(|source| CaptureScopeError::Write {
            dir: self.dir.clone(),
            source,
        })
    }
}
