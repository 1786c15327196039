//! Reports, and everything that is made from them: found on disk or made, each once however many ask for it; kept, listed,
//! deleted.
//!
//! ```text
//! request ──▶ files thread: on disk, or remembered? ── yes ──▶ the client
//!                 │ no
//!                 ▼
//!               queue ──▶ output thread: resolve frames, render ──▶ disk ──▶ all clients that wait
//! ```

mod kept;
mod line;
mod make;
mod making;
mod open_outputs;
#[cfg(any(feature = "http", feature = "push"))]
mod profile;
mod queue;
#[cfg(feature = "http")]
mod readers;
mod recent;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use self::open_outputs::OpenOutputs;
use self::queue::Queue;
#[cfg(feature = "http")]
use self::readers::Readers;
use self::recent::{RecentOutputs, VerifiedReports};
use super::lock::{Lock, LockGuard, Rank};
use super::machine::Machine;
#[cfg(feature = "http")]
use super::machine::View;
use super::waiter::Waiter;
use super::worker::Worker;
use super::{Error, ReportStatus};
use crate::capture::untracked;
#[cfg(feature = "http")]
use crate::collector::ended::AllocatedInEnded;
#[cfg(feature = "http")]
use crate::collector::routes::SumsByRoute;
use crate::profiler::store::{
    Output, OutputKey, OutputKind, ReportId, SessionOutputs, Store, keep_previous,
};
use crate::symbolize::Wanted;

#[cfg(feature = "store")]
pub(super) use self::kept::describe;
pub(super) use self::kept::note;
pub use self::kept::{KeptReport, TriggerCause};
pub(super) use self::line::Lines;
#[cfg(feature = "http")]
pub(crate) use self::line::lines;
pub use self::line::{CallSite, Confidence, LeakCandidate};
#[cfg(feature = "http")]
pub(super) use self::line::{plainly_named, probable_leak};
#[cfg(feature = "http")]
pub(crate) use self::making::render;
pub(crate) use self::making::serve as serve_outputs;
#[cfg(feature = "http")]
pub(crate) use self::readers::Reader;

/// What an output is asked for of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// The session that somebody has asked for last. As long as there is none, the one in the background.
    Session,
    /// The session that runs, also in the background.
    #[cfg(feature = "http")]
    Running,
    /// The same, with what ended sessions of the process allocated: as services in Go show it.
    #[cfg(feature = "http")]
    Process,
    Kept(ReportId),
}

/// The result of asking for an output.
pub(crate) type Made = Result<Output, Error>;

/// Everything that is made from sessions and kept reports, and the two threads that do it:
///
/// ```text
/// output    resolves frames and renders   one at a time: two at once would double the memory; in the order of `queue`
/// files     reads pieces, looks up        never waits for the output thread
/// ```
#[derive(Debug)]
pub(crate) struct Reports {
    machine: Arc<Machine>,
    store: Arc<Store>,
    session_outputs: Lock<SessionOutputs>,
    queue: Arc<Queue>,
    /// Whether somebody wants what is being made.
    wanted: Wanted,
    open: OpenOutputs,
    recent: RecentOutputs,
    verified: VerifiedReports,
    /// Which of the kept reports is which session's.
    kept_as: Lock<Option<(u64, ReportId)>>,
    #[cfg(feature = "http")]
    ended: Lock<AllocatedInEnded>,
    #[cfg(feature = "http")]
    readers: Arc<Readers>,
    output: Worker,
    files: Worker,
}

/// An output, by what it is made from and how. A client that asks after a new start must not get the former session's
/// output, and a client that asks for a finished session must not get a snapshot of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct OutputSpec {
    origin: Origin,
    key: OutputKey,
}

/// What an output is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Origin {
    Session {
        number: u64,
        recording: bool,
    },
    /// The running session, with what ended sessions allocated.
    #[cfg(feature = "http")]
    Process {
        running: u64,
    },
    Kept(ReportId),
}

impl Reports {
    /// # Errors
    ///
    /// There can be no more threads.
    pub(super) fn new(machine: Arc<Machine>, store: Arc<Store>) -> io::Result<Reports> {
        let queue = Arc::new(Queue::new());
        let asked = Arc::clone(&queue);
        #[cfg(feature = "http")]
        let readers = Arc::new(Readers::new());
        Ok(Reports {
            machine,
            store,
            // A panic of its holder leaves at worst a file that is not remembered.
            session_outputs: Lock::new(Rank::SessionOutputs, SessionOutputs::default()),
            queue,
            wanted: Wanted::while_it(move || asked.is_wanted()),
            open: OpenOutputs::new(),
            recent: RecentOutputs::new(),
            verified: VerifiedReports::new(),
            kept_as: Lock::new(Rank::KeptAs, None),
            // A panic of its holder leaves at worst sums that lack a session.
            #[cfg(feature = "http")]
            ended: Lock::new(Rank::AllocatedInEnded, AllocatedInEnded::default()),
            output: Worker::spawn("heapray-output")?,
            #[cfg(feature = "http")]
            files: {
                let readers = Arc::clone(&readers);
                Worker::spawn_with("heapray-files", move || readers.check())?
            },
            #[cfg(not(feature = "http"))]
            files: Worker::spawn("heapray-files")?,
            #[cfg(feature = "http")]
            readers,
        })
    }

    pub(super) fn directory(&self) -> &Path {
        self.store.directory.path()
    }

    fn session_outputs(&self) -> LockGuard<'_, SessionOutputs> {
        self.session_outputs.lock()
    }

    /// Finds or makes an output, and waits for it, blocking.
    ///
    /// # Errors
    ///
    /// [`Error::NoReport`] before the first session, [`Error::NotRecording`] of the running session if none runs,
    /// [`Error::Output`] if it could not be written; of a kept report also [`Error::NotKept`], [`Error::Damaged`] and
    /// [`Error::UnsupportedForKept`].
    pub(super) fn output_blocking(self: &Arc<Reports>, of: Of, key: OutputKey) -> Made {
        let _untracked = untracked::enter();
        wait(|waiter| self.request(of, key, waiter))
    }

    /// Does what [`output_blocking`](Self::output_blocking) does, without blocking.
    ///
    /// # Errors
    ///
    /// The same.
    #[cfg(feature = "http")]
    pub(crate) async fn output(self: &Arc<Reports>, of: Of, key: OutputKey) -> Made {
        let (answer, answered) = tokio::sync::oneshot::channel();
        self.request(of, key, Box::new(answer));
        answered.await.map_err(|_| Error::MAKING_PANICKED)?
    }

    /// Has an output found or made, and given to `waiter` on one of the two threads. Returns at once.
    fn request(self: &Arc<Reports>, of: Of, key: OutputKey, waiter: Waiter<Made>) {
        let reports = Arc::clone(self);
        self.files.submit(move || {
            if waiter.is_gone() {
                return;
            }
            match of {
                Of::Session => reports.find_or_enqueue(key.since(None), waiter, false),
                #[cfg(feature = "http")]
                Of::Running => {
                    reports.enqueue_running(key.since(None), waiter, |number| Origin::Session {
                        number,
                        recording: true,
                    })
                }
                #[cfg(feature = "http")]
                Of::Process => reports.enqueue_running(key.since(None), waiter, |running| {
                    Origin::Process { running }
                }),
                Of::Kept(id) => reports.find_or_enqueue_kept(id, key, waiter),
            }
        });
    }

    fn find_or_enqueue(self: &Arc<Reports>, key: OutputKey, waiter: Waiter<Made>, is_urgent: bool) {
        // An output that exists is given at once, whatever is being made meanwhile.
        let (session, recording) = self.machine.session();
        let origin = Origin::Session {
            number: session,
            recording,
        };
        let spec = OutputSpec { origin, key };
        if !recording {
            let stored = self.session_outputs().find(key);
            if let Some(output) = stored.or_else(|| self.recent.find(origin, key)) {
                self.open.remember(spec, &output);
                return waiter.give(Ok(output));
            }
        }
        self.enqueue(spec, waiter, is_urgent);
    }

    #[cfg(feature = "http")]
    fn enqueue_running(
        self: &Arc<Reports>,
        key: OutputKey,
        waiter: Waiter<Made>,
        origin: fn(u64) -> Origin,
    ) {
        let Some(number) = self.machine.running() else {
            return waiter.give(Err(Error::NotRecording));
        };
        let origin = origin(number);
        self.enqueue(OutputSpec { origin, key }, waiter, false);
    }

    /// Notes that a session has ended: `last` is its last view.
    #[cfg(feature = "http")]
    pub(super) fn session_ended(&self, last: &View) {
        let snapshot = &last.snapshot;
        let mut ended = self.ended.lock();
        ended.add(last.session, &snapshot.stacks, snapshot.totals.allocated);
    }

    /// Returns what each route holds in the running session and has allocated in the process; `None` if no session runs.
    #[cfg(feature = "http")]
    pub(super) fn sums_by_route(&self) -> Option<SumsByRoute> {
        let (number, mut sums) = self.machine.sums_by_route()?;
        let ended = self.ended.lock();
        ended.add_to_routes(number, &mut sums).then_some(sums)
    }

    fn enqueue(self: &Arc<Reports>, spec: OutputSpec, waiter: Waiter<Made>, is_urgent: bool) {
        if self.queue.enqueue(spec, waiter, is_urgent) {
            self.serve_queue();
        }
    }

    fn serve_queue(self: &Arc<Reports>) {
        let reports = Arc::clone(self);
        self.output.submit(move || reports.make_next());
    }

    /// Lets only the reports of sessions that end be made, until the returned value is dropped.
    pub(super) fn hold(self: &Arc<Reports>) -> Hold {
        self.queue.hold();
        Hold(Arc::clone(self))
    }

    /// Makes the report of the session that has just ended, before everything else that was asked for. Blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Output`] if it could not be written.
    pub(super) fn report_at_once(self: &Arc<Reports>, hold: Hold) -> Made {
        wait(|waiter| {
            self.find_or_enqueue(OutputKey::new(OutputKind::Report), waiter, true);
            // An urgent output goes first by itself.
            drop(hold);
        })
    }

    /// Deletes the outputs of the former session: session `number` has begun.
    pub(super) fn begin(&self, number: u64) {
        let (deleted, first) = self.session_outputs().begin(number);
        log_deleted(&deleted);
        if first && let Some(path) = keep_previous(self.store.directory.path()) {
            tracing::info!(path = %path.display(), "kept the report of an earlier process");
        }
    }

    /// Returns the report of the session that has ended, if it is on disk.
    pub(super) fn status(&self) -> Option<ReportStatus> {
        let report = self.session_outputs().report();
        report.map(|(bytes, label)| ReportStatus {
            bytes,
            taken: label.taken,
        })
    }

    /// Refuses what clients ask for from now on, and what they have asked for: the service ends. Returns how many outputs
    /// are not made.
    pub(super) fn end(&self) -> usize {
        self.queue.end()
    }

    /// Accepts requests again: the service has not ended after all.
    pub(super) fn go_on(&self) {
        self.queue.go_on();
    }

    /// Returns whether the service is about to end.
    pub(super) fn is_ending(&self) -> bool {
        self.queue.is_ending()
    }

    /// Waits until what is being made is written, so that a process which ends leaves no draft. `None` if it is not
    /// written by `deadline`.
    pub(super) fn wait_until(&self, deadline: Instant) -> Option<Result<(), Error>> {
        self.output.run_until(deadline, || ())
    }

    /// Does a short job on the thread that reads files, which never waits for what is being made.
    ///
    /// # Errors
    ///
    /// The job panicked.
    #[cfg(feature = "http")]
    pub(super) async fn look_up<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.files.read(job).await
    }

    /// Registers a client that reads `output` piece by piece.
    #[cfg(feature = "http")]
    pub(crate) fn open(&self, output: Output) -> Arc<Reader> {
        self.readers.open(output)
    }

    /// Does `job`, which reads a piece of a file, on the thread for that. Returns at once.
    #[cfg(feature = "http")]
    pub(crate) fn read(&self, job: impl FnOnce() + Send + 'static) {
        self.files.submit(job);
    }

    fn not_written(&self, error: io::Error) -> Error {
        Error::not_written(&self.store, error)
    }
}

/// Waits, blocking, for the output that `request` asks for.
fn wait(request: impl FnOnce(Waiter<Made>)) -> Made {
    let (answer, answered) = mpsc::channel();
    request(Box::new(answer));
    answered.recv().map_err(|_| Error::MAKING_PANICKED)?
}

/// Keeps clients' outputs from being made as long as it lives.
#[derive(Debug)]
pub(super) struct Hold(Arc<Reports>);

impl Drop for Hold {
    fn drop(&mut self) {
        if self.0.queue.release() {
            self.0.serve_queue();
        }
    }
}

/// Returns what `make` returns. Those who wait for it must get an error if it panics.
pub(super) fn or_panicked<T>(make: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(make)).unwrap_or(Err(Error::MAKING_PANICKED))
}

/// Logs which outputs were deleted. Without any lock held: the service's log may ask for the profiler's state.
fn log_deleted(paths: &[PathBuf]) {
    for path in paths {
        tracing::info!(path = %path.display(), "deleting the previous output");
    }
}
