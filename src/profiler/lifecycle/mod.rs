//! Start and stop. Both run on one thread, one after the other, so that simultaneous requests cannot race. A request for the
//! state that there is already returns it and changes nothing.

mod background;

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::flight::FlightWriter;
use super::machine::{Machine, View};
use super::recovery::Recovery;
use super::reports::Reports;
use super::worker::Worker;
use super::{DiskStatus, Error, Mark, PAGE, PushStatus, State, Status, StoreStatus};
use crate::capture::{hook, untracked};
use crate::collector::figures::Figures;
use crate::config::{Config, overhead_share};
use crate::flight_recorder::{self, Reason, Watch};
use crate::profiler::store::{OutputKind, Store};
use crate::session::{Notice, Observer, Session, SessionOptions};
use heapray_report::error_chain;

/// Who wants a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// Somebody has asked for it: it leaves a report.
    Asked,
    /// The setting `MEMRAY_PROFILER_CONTINUOUS`.
    Background,
}

/// Sessions, from their start to the moment when their report is on disk; and the control thread, on which they begin and
/// end, one at a time, in the order of the requests.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    config: Arc<Config>,
    machine: Arc<Machine>,
    store: Arc<Store>,
    reports: Arc<Reports>,
    flight: Arc<FlightWriter>,
    figures: Arc<Figures>,
    recovery: Recovery,
    #[cfg(feature = "push")]
    pushing: Option<Arc<super::pushing::Pushing>>,
    #[cfg(feature = "store")]
    storing: Option<Arc<super::storing::Storing>>,
    control: Worker,
}

impl Lifecycle {
    /// # Errors
    ///
    /// There can be no more threads.
    pub(super) fn new(
        config: Arc<Config>,
        machine: Arc<Machine>,
        store: Arc<Store>,
        reports: Arc<Reports>,
        flight: Arc<FlightWriter>,
        figures: Arc<Figures>,
    ) -> io::Result<Lifecycle> {
        Ok(Lifecycle {
            #[cfg(feature = "push")]
            pushing: super::pushing::Pushing::start(
                &config,
                Arc::clone(&machine),
                Arc::clone(&reports),
            )?,
            #[cfg(feature = "store")]
            storing: super::storing::Storing::start(&config, &store)?,
            recovery: Recovery::new(Arc::clone(&store), Arc::clone(&reports), &config)?,
            config,
            machine,
            store,
            reports,
            flight,
            figures,
            control: Worker::spawn("heapray-control")?,
        })
    }

    /// Clears away what dead processes have left and recovers their logs, on the thread for that. Returns at once.
    pub(super) fn recover(&self) {
        self.recovery.sweep_and_recover();
    }

    /// Returns the state with what is on disk. May wait for a snapshot that is being taken: a few milliseconds.
    pub(super) fn status_blocking(&self) -> Status {
        let _untracked = untracked::enter();
        let mut status = self.machine.status();
        [status.job_name, status.job_version] = self.config.job();
        status.symbols = self.config.symbols;
        status.trigger = self.flight.last();
        status.disk = DiskStatus {
            bytes: self.store.directory.bytes(),
            bound_bytes: self.store.archive.bound(),
        };
        status.push = self.push_status();
        status.store = self.store_status();
        if status.state != State::Recording {
            status.report = self.reports.status();
        }
        status
    }

    /// Does what [`status_blocking`](Self::status_blocking) does, without blocking.
    ///
    /// # Errors
    ///
    /// A panic of the profiler's.
    #[cfg(feature = "http")]
    pub(crate) async fn status(self: &Arc<Lifecycle>) -> Result<Status, Error> {
        let lifecycle = Arc::clone(self);
        self.reports
            .look_up(move || lifecycle.status_blocking())
            .await
    }

    /// Begins a session, unless one runs, and returns the state. With `sample`, one that samples so, or records everything if
    /// that is 0: a session that samples otherwise goes on at that rate, and one of the other kind ends first, as by
    /// [`stop_blocking`](Self::stop_blocking), since exact and estimated figures cannot be in one report.
    ///
    /// # Errors
    ///
    /// [`Error::Directory`], [`Error::Start`] or [`Error::Ending`]; the former report is still there then.
    pub(super) fn start_blocking(
        self: &Arc<Lifecycle>,
        sample: Option<u64>,
    ) -> Result<Status, Error> {
        let lifecycle = Arc::clone(self);
        self.control.run(move || lifecycle.start_now(sample))?
    }

    /// Does what [`start_blocking`](Self::start_blocking) does, without blocking.
    ///
    /// # Errors
    ///
    /// The same.
    #[cfg(feature = "http")]
    pub(crate) async fn start(self: &Arc<Lifecycle>, sample: Option<u64>) -> Result<Status, Error> {
        let lifecycle = Arc::clone(self);
        let started = self.control.call(move || lifecycle.start_now(sample));
        started.await?
    }

    /// Ends the session, if one runs, waits until its report is on disk, and returns the state.
    ///
    /// # Errors
    ///
    /// [`Error::Session`], or [`Error::Output`] if the report could not be written.
    pub(super) fn stop_blocking(self: &Arc<Lifecycle>) -> Result<Status, Error> {
        let lifecycle = Arc::clone(self);
        self.control.run(move || lifecycle.stop_now(None))?
    }

    /// Does what [`stop_blocking`](Self::stop_blocking) does, but waits no longer than to `deadline`: `None` then, and the
    /// session ends later.
    pub(super) fn stop_until(
        self: &Arc<Lifecycle>,
        deadline: Instant,
    ) -> Option<Result<Status, Error>> {
        let lifecycle = Arc::clone(self);
        let stopped = self
            .control
            .run_until(deadline, move || lifecycle.stop_now(None))?;
        Some(stopped.and_then(|stopped| stopped))
    }

    /// Does what [`stop_blocking`](Self::stop_blocking) does, without blocking.
    ///
    /// # Errors
    ///
    /// The same.
    #[cfg(feature = "http")]
    pub(crate) async fn stop(self: &Arc<Lifecycle>) -> Result<Status, Error> {
        let lifecycle = Arc::clone(self);
        let stopped = self.control.call(move || lifecycle.stop_now(None));
        stopped.await?
    }

    /// Names the present moment of the running session.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecording`], [`Error::InvalidMarkName`] or [`Error::TooManyMarks`].
    pub(super) fn mark_blocking(&self, name: &str) -> Result<Mark, Error> {
        let _untracked = untracked::enter();
        self.machine.mark(name)
    }

    /// Does what [`mark_blocking`](Self::mark_blocking) does, without blocking: the collector first takes in what came
    /// before.
    ///
    /// # Errors
    ///
    /// The same.
    #[cfg(feature = "http")]
    pub(crate) async fn mark(&self, name: String) -> Result<Mark, Error> {
        let machine = Arc::clone(&self.machine);
        self.control.call(move || machine.mark(&name)).await?
    }

    /// Returns what became of the profiles that are pushed; `None` if none are.
    pub(super) fn push_status(&self) -> Option<PushStatus> {
        #[cfg(feature = "push")]
        return self.pushing.as_ref().map(|pushing| pushing.status());
        #[cfg(not(feature = "push"))]
        None
    }

    /// Returns what became of the kept reports in an object storage; `None` if there is none.
    pub(super) fn store_status(&self) -> Option<StoreStatus> {
        #[cfg(feature = "store")]
        return self.storing.as_ref().map(|storing| storing.status());
        #[cfg(not(feature = "store"))]
        None
    }

    /// Has what waits to be pushed or stored sent until `deadline`, each within a few seconds: the service ends.
    pub(super) fn finish_sending(&self, deadline: Instant) {
        #[cfg(feature = "push")]
        if let Some(pushing) = &self.pushing {
            pushing.finish_until(deadline);
        }
        #[cfg(feature = "store")]
        if let Some(storing) = &self.storing {
            storing.finish_until(deadline);
        }
        #[cfg(not(any(feature = "push", feature = "store")))]
        let _ = deadline;
    }

    /// Returns a view of the session that runs, also in the background; `None` if none runs.
    pub(crate) fn running_view(&self) -> Option<View> {
        self.machine.running_view()
    }

    fn start_now(self: &Arc<Lifecycle>, sample: Option<u64>) -> Result<Status, Error> {
        if self.reports.is_ending() {
            // The last report must not wait for it.
            return Err(Error::Ending);
        }
        if let Some(lost) = self.machine.end_lost() {
            // Its collector is gone, and with it all it knew: nothing would come of stopping it.
            let ended = self.finish(lost, None);
            tracing::warn!(?ended, "the former session was lost");
            self.machine.stopped();
        }
        let running = self.machine.sample();
        match (running, sample) {
            (Some(now), Some(wanted)) if now == wanted => {}
            (Some(1..), Some(wanted @ 1..)) => {
                self.machine.resample(wanted)?;
                tracing::info!(sample = wanted, "the rate of sampling has changed");
            }
            (Some(_), Some(_)) => {
                self.stop_now(None)?;
            }
            _ => {}
        }
        if self.machine.sample().is_none() {
            let sample = sample.unwrap_or(self.config.sample);
            let begin = || {
                self.end_background();
                self.begin(sample, Wish::Asked)
            };
            let begun = catch_unwind(AssertUnwindSafe(begin));
            let begun = begun.unwrap_or(Err(Error::Internal("beginning a session panicked")));
            if let Err(error) = &begun {
                self.fall_back();
                tracing::error!(error = %error_chain(error), "recording did not start");
                self.machine.note_trouble(error);
            }
            begun?;
        }
        Ok(self.status_blocking())
    }

    /// Remembers what a session has allocated, and has its last profile pushed, if any are. `last` is its last view.
    fn remember(&self, last: View) {
        #[cfg(feature = "http")]
        self.reports.session_ended(&last);
        #[cfg(feature = "push")]
        if let Some(pushing) = &self.pushing {
            pushing.session_ended(last);
        }
        #[cfg(not(feature = "push"))]
        drop(last);
    }

    /// Begins a session, in the background or as somebody has asked for.
    fn begin(self: &Arc<Lifecycle>, sample: u64, wish: Wish) -> Result<(), Error> {
        let store = &self.store;
        let path = store.directory.path();
        // What dead processes have left may be what there is no room for.
        store.directory.sweep();
        store
            .directory
            .prepare()
            .map_err(|source| Error::Directory {
                path: path.to_owned(),
                source: Arc::new(source),
            })?;
        // A log that would grow past the process's own limit on files is given up there, not killed by it.
        let log_limit = self.config.log_limit.min(store.archive.log_limit());
        let log_limit = log_limit.min(crate::os::file::file_size_limit());
        let options = SessionOptions {
            spool_dir: path.to_owned(),
            log_limit,
            overhead_limit: self.overhead_limit(),
            sample,
        };
        let session = Session::start_observed(&options, self.observer())
            .map_err(|error| Error::Start(Arc::new(error)))?;
        for note in session.notes() {
            tracing::warn!(%note, "not everything is seen");
        }
        match wish {
            Wish::Asked => {
                // Only now: a start that fails leaves the former report alone.
                let number = self.machine.begin(session);
                self.reports.begin(number);
            }
            Wish::Background => self.machine.begin_in_background(session),
        }
        if self.config.watch().is_some() {
            self.flight.reserve_disk();
        }
        let log = if sample == 0 { log_limit } else { 0 };
        store.archive.make_room(log, false);
        // The event log of a session whose report could not be written is a leftover from now on: the machine has closed it.
        self.recovery.recover();
        let directory = path.display();
        match (wish, sample) {
            (Wish::Background, _) => {
                tracing::info!(%directory, page = PAGE, sample, "recording samples of allocations in the background");
            }
            (_, 0) => tracing::info!(%directory, page = PAGE, "recording every allocation"),
            _ => {
                tracing::info!(%directory, page = PAGE, sample, "recording samples of allocations");
            }
        }
        Ok(())
    }

    /// Returns the limit that was set, or else a share of the memory that the process can have.
    fn overhead_limit(&self) -> u64 {
        let limit = self.config.overhead_limit;
        limit.unwrap_or_else(|| overhead_share(flight_recorder::memory_of_process()))
    }

    /// Has notices handled on the threads for them. It keeps nothing alive: what the collector's thread dropped last, that
    /// thread would have to end.
    fn observer(self: &Arc<Lifecycle>) -> Observer {
        let lifecycle = Arc::downgrade(self);
        let control = self.control.clone();
        let flight = self.flight.requests();
        let observer = Observer::new(move |notice| match notice {
            Notice::Triggered(kind, text) => flight.write_report(Reason { kind, text }),
            Notice::Approaching => flight.get_ready(),
            notice => {
                let lifecycle = lifecycle.clone();
                control.submit(move || {
                    if let Some(lifecycle) = lifecycle.upgrade() {
                        lifecycle.noticed(&notice);
                    }
                });
            }
        });
        let observer = observer.publishing(Arc::clone(&self.figures));
        match self.config.watch() {
            Some(settings) => observer.watching(Watch::new(settings)),
            None => observer,
        }
    }

    fn noticed(self: &Arc<Lifecycle>, notice: &Notice) {
        match notice {
            Notice::LogGivenUp(reason) => tracing::warn!(
                %reason,
                "the event log was given up: recording goes on, and the report will hold sums only"
            ),
            Notice::StacksCut(reason) => tracing::warn!(%reason, "new call stacks are cut short"),
            Notice::RecordingEnded(kind, reason) => {
                tracing::error!(%reason, "recording has ended");
                // Unless another session was begun meanwhile.
                if self.machine.has_ended_early() {
                    let cause = Reason {
                        kind: *kind,
                        text: reason.clone(),
                    };
                    if self.stop_now(Some(cause)).is_ok() {
                        self.machine.note_end(reason);
                    }
                }
            }
            // The flight writer's own thread handles these.
            Notice::Triggered(..) | Notice::Approaching => {}
        }
    }

    /// Ends the session, if one runs, and waits until its report is on disk. `cause`: why, if nobody asked for it.
    ///
    /// The session in the background ends only if it must: it has ended recording, or the service ends.
    fn stop_now(self: &Arc<Lifecycle>, cause: Option<Reason>) -> Result<Status, Error> {
        let asked = self.machine.end();
        let was_asked = asked.is_some();
        let must_end = !was_asked && (cause.is_some() || self.reports.is_ending());
        let background = must_end
            .then(|| self.machine.end_background_for_report())
            .flatten();
        let session = asked.or_else(|| {
            let (number, session) = background?;
            self.reports.begin(number);
            Some(session)
        });
        if let Some(session) = session {
            let ended = catch_unwind(AssertUnwindSafe(|| self.finish(session, cause)));
            let ended = ended.unwrap_or_else(|_| {
                // Those who wait for the last view must learn that there is none.
                self.machine.ended(None, None);
                Err(Error::Internal("ending the session panicked"))
            });
            if was_asked {
                self.fall_back();
            } else {
                // What ended this session would soon end another one.
                self.machine.stopped();
            }
            ended.inspect_err(|error| {
                tracing::error!(error = %error_chain(error), "the session ended without a report");
                self.machine.note_trouble(error);
            })?;
        }
        Ok(self.status_blocking())
    }

    fn finish(&self, mut session: Session, cause: Option<Reason>) -> Result<(), Error> {
        let mut held = session.take_hold();
        let spool = session.spool().map(PathBuf::from);
        // What clients have asked for waits from here on: this goes first.
        let hold = self.reports.hold();
        match session.stop() {
            Ok(last) => {
                if hook::patched() != 0 {
                    tracing::warn!(
                        words = hook::patched(),
                        "hooks could not be taken out: they hand every call on"
                    );
                }
                if last.log.is_none() {
                    // It was given up: as long as it is open, it takes disk space that the report needs.
                    held = None;
                    drop(spool.as_ref().map(fs::remove_file));
                }
                self.machine.ended(Some(last), cause);
            }
            Err(error) => {
                self.machine.ended(None, None);
                // Its log is all that is left of the session: it is recovered at the next start, of this process or another.
                return Err(Error::Session(error));
            }
        }
        self.flight.release_disk();
        let report = self.reports.report_at_once(hold);
        if report.is_ok() {
            // The last view holds it open for all other outputs. Without a report its name stays: what was recorded is
            // recovered then, at the next start of this process or another.
            drop(spool.map(fs::remove_file));
        }
        // Until here no other process takes the log for a dead one's.
        drop(held);
        if let Ok(last) = self.machine.view() {
            self.remember(last);
        }
        let report = report?;
        tracing::info!(
            bytes = report.len(),
            path = %self.store.directory.path().join(OutputKind::Report.file_name()).display(),
            "the report is on disk"
        );
        Ok(())
    }
}
