//! A report of a part of the program alone, with its own high-water mark.
//!
//! Works while the process's session records, beside it, and where none does: a session runs then for the time of the
//! scope. What was allocated before a scope is not in its report, nor is the end of it.

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

/// Runs `run`, and writes into `dir` what the whole process allocated meanwhile: see [`CaptureScope`].
///
/// The result of `run` is never lost: it comes back beside the report, or why there is none. Should `run` panic, the
/// report is written all the same, and the panic goes on.
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

/// As [`capture_scope`], for a future: from its first poll until it is ready. What is slow (looking up symbols, writing)
/// is done on a thread of its own.
///
/// Dropped before it is ready, it leaves no report.
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

/// A part of the program that gets a report of its own.
///
/// The report is of the whole process from the begin to the end of the scope, on whatever thread something was
/// allocated, unless [`this_thread_only`](CaptureScope::this_thread_only) says otherwise. It has its own high-water mark: the
/// moment of the scope at which the most was live of what was allocated in it. Scopes may lie in each other and beside
/// each other, each with a report of its own.
///
/// In the directory, which is made if it is missing, is then (a former scope's files are replaced):
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
/// Where the process's session samples, the report holds estimates, and says so.
#[derive(Debug, Clone)]
#[must_use = "a scope does nothing until `run` or `run_async`"]
pub struct CaptureScope {
    dir: PathBuf,
    this_thread_only: bool,
}

impl CaptureScope {
    /// A scope whose report goes to `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> CaptureScope {
        CaptureScope {
            dir: dir.into(),
            this_thread_only: false,
        }
    }

    /// Counts only what the thread allocates that begins the scope, whoever frees it. Not for futures that move from
    /// thread to thread.
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
        // Thread numbers are of this thread, so that must begin here; it takes a few milliseconds.
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
        // What it held is given back within the scope, as in a function's.
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
