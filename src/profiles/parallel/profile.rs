//! A profile from its beginning to its page.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use heapray_report::parallel::Outcome;

use super::monitor::Monitor;
use super::pool::{Kind, Pool};
use super::report::Ended;
use super::{Builder, allocations, open, tasks};
use crate::capture::untracked;
use crate::collector::snapshot::Snapshot;

/// Set while a function is profiled. There is one at a time, because workers and tasks belong to the process.
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Running profile of the process's workers. Dropping it writes its page.
#[derive(Debug)]
#[must_use = "the profile ends when this is dropped"]
pub struct ParallelProfile {
    running: Option<Running>,
    /// The pool. A function that is not profiled, because another one is, still gets its pool.
    pool: Pool,
    #[cfg(feature = "parallel")]
    spare: Spare,
    polled: AtomicBool,
    returned: AtomicBool,
}

#[cfg(feature = "parallel")]
struct Spare(super::span_layer::Spare);

#[cfg(feature = "parallel")]
impl std::fmt::Debug for Spare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Spare")
    }
}

#[derive(Debug)]
struct Running {
    options: Builder,
    monitor: Monitor,
    started: SystemTime,
    start_ns: u64,
    before: Option<(u64, Arc<Snapshot>)>,
}

impl ParallelProfile {
    pub(super) fn begin(options: Builder, pool: Pool) -> ParallelProfile {
        let _untracked = untracked::enter();
        let is_first = !RUNNING.swap(true, Ordering::SeqCst);
        if !is_first {
            let function = &options.name;
            tracing::info!(%function, "heapray profiles another function; this call is not profiled");
        }
        let running = is_first.then(|| {
            pool.join_here();
            tasks::begin_recording();
            let everybody = matches!(pool.kind, Kind::Present);
            Running {
                before: allocations::now(),
                monitor: Monitor::start(Arc::clone(&pool.members), everybody),
                started: SystemTime::now(),
                start_ns: tasks::now_ns(),
                options,
            }
        });
        ParallelProfile {
            running,
            pool,
            #[cfg(feature = "parallel")]
            spare: Spare(super::span_layer::Spare::new()),
            polled: AtomicBool::new(false),
            returned: AtomicBool::new(false),
        }
    }

    /// Calls `function`, the profiled one.
    pub(super) fn around<R>(self, function: impl FnOnce() -> R) -> R {
        self.around_poll(function)
    }

    /// Calls `poll`, a part of the profiled function.
    pub(super) fn around_poll<R>(&self, poll: impl FnOnce() -> R) -> R {
        let _task = self.enter();
        self.with_spans(poll)
    }

    /// Runs `function`, the profiled one, on the rayon pool.
    pub(super) fn install<R: Send>(self, function: impl FnOnce() -> R + Send) -> R {
        match &self.pool.kind {
            #[cfg(feature = "parallel")]
            Kind::Rayon(rayon) => rayon.install(|| {
                let _task = self.name().map(tasks::task);
                function()
            }),
            _ => self.around_poll(function),
        }
    }

    fn with_spans<R>(&self, f: impl FnOnce() -> R) -> R {
        #[cfg(feature = "parallel")]
        return self.spare.0.around(f);
        #[cfg(not(feature = "parallel"))]
        f()
    }

    pub(super) fn name(&self) -> Option<String> {
        let _untracked = untracked::enter();
        let running = self.running.as_ref()?;
        Some(running.options.name.clone())
    }

    /// Marks the calling thread as working for the profiled function, until the guard is dropped.
    pub(super) fn enter(&self) -> Entered<'_> {
        if self.running.is_some() {
            self.pool.join_here();
        }
        Entered {
            _task: self.name().map(tasks::task),
            #[cfg(feature = "parallel")]
            _runtime: match &self.pool.kind {
                Kind::Tokio(runtime) => Some(runtime.enter()),
                _ => None,
            },
            _of_profile: PhantomData,
        }
    }

    /// Notes that the profile is of a future, whose end need not be the end of its last poll.
    pub(super) fn will_be_polled(&self) {
        self.polled.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_returned(&self) {
        self.returned.store(true, Ordering::Relaxed);
    }

    fn outcome(&self) -> Outcome {
        let returned = self.returned.load(Ordering::Relaxed);
        match self.polled.load(Ordering::Relaxed) {
            _ if returned => Outcome::Returned,
            _ if std::thread::panicking() => Outcome::Panicked,
            true => Outcome::Cancelled,
            false => Outcome::Returned,
        }
    }
}

/// Guard while the profiled function runs on this thread.
#[derive(Debug)]
pub(super) struct Entered<'p> {
    _task: Option<tasks::Task>,
    #[cfg(feature = "parallel")]
    _runtime: Option<tokio::runtime::EnterGuard<'p>>,
    _of_profile: PhantomData<&'p ParallelProfile>,
}

impl Drop for ParallelProfile {
    fn drop(&mut self) {
        let _untracked = untracked::enter();
        let outcome = self.outcome();
        if let Some(running) = self.running.take() {
            let end_ns = tasks::now_ns();
            let observed = running.monitor.finish();
            let recorded = tasks::end_recording(running.start_ns);
            let allocations = running.before.and_then(allocations::since);
            RUNNING.store(false, Ordering::SeqCst);
            let options = running.options;
            let report = Ended {
                title: options.name,
                started: running.started,
                duration_ns: end_ns - running.start_ns,
                outcome,
                pool: self.pool.text.clone(),
                note: self.pool.note.take(),
                observed,
                recorded,
                allocations,
            };
            let path = options.report;
            match report.write(&path) {
                Ok(()) => open::show(&path, options.display),
                Err(error) => {
                    let path = path.display();
                    tracing::warn!(%error, %path, "heapray can't write the page of a parallel profile");
                }
            }
        }
        let kind = std::mem::replace(&mut self.pool.kind, Kind::Present);
        match kind {
            Kind::Present => {}
            // Waiting for the runtime is not allowed in a runtime, and this may run in one.
            #[cfg(feature = "parallel")]
            Kind::Tokio(runtime) => runtime.shutdown_background(),
            #[cfg(feature = "parallel")]
            Kind::Rayon(pool) => drop(pool),
        }
    }
}
