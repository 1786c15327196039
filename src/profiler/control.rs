//! Start and stop. Both run on one thread, one after the other, so that simultaneous requests cannot race; whoever
//! asks for what is already so gets the state and changes nothing.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use super::kept::Lately;
use super::machine::Machine;
use super::outputs::Outputs;
use super::recorder::{OnTrigger, Recorder};
use super::worker::Worker;
use super::{DiskStatus, Error, ReportStatus, State, Status};
use crate::capture::untracked;
use crate::capture::{failure, hook, signal};
use crate::config::{Config, overhead_share};
use crate::flight_recorder::{self, Reason, Watch};
use crate::profiler::store::{Archive, Directory, OutputKind};
use crate::session::{Notice, Observer, Session, SessionOptions};
use heapray_report::error_chain;

/// An enabled profiler. Its threads:
///
/// ```text
/// control   start, stop                one at a time, in the order they were asked for
/// output    resolve frames, render     one at a time: two at once would double the memory; in the order of
///                                      `queue`
/// files     read chunks, look up       never waits for the other two
/// live      what watchers see          once a second, while there are any
/// timeline  reads the memory log       where there is one
/// flight    write what the recorder    never waits for the others
///           wants written
/// recover   what killed processes left   never waited for
/// ```
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) machine: Machine,
    pub(crate) outputs: Outputs,
    pub(crate) control: Worker,
    pub(crate) output: Worker,
    pub(crate) files: Worker,
    /// Where a memory log is written.
    #[cfg(feature = "http")]
    pub(crate) log_reader: Option<Arc<super::log_reader::LogReader>>,
    #[cfg(feature = "http")]
    pub(crate) readers: Arc<super::readers::Readers>,
    #[cfg(feature = "http")]
    pub(super) watch: Worker,
    #[cfg(feature = "http")]
    pub(super) live: super::live::Live,
    #[cfg(feature = "http")]
    pub(crate) listeners: super::listeners::Listeners,
    pub(super) archive: Archive,
    pub(super) lately: Lately,
    pub(super) recorder: Recorder,
    pub(super) reclaimer: Worker,
    directory: Directory,
    /// The process that this was made in; a forked child has another.
    pid: u32,
}

impl Core {
    pub(super) fn new(config: Config, told: Option<OnTrigger>) -> io::Result<Core> {
        if config.sigusr2 && !signal::handle() {
            tracing::warn!("SIGUSR2 could not be handled: it will write no report");
        }
        let directory = Directory::new(config.dir.as_deref());
        #[cfg(feature = "http")]
        let readers = Arc::new(super::readers::Readers::new());
        Ok(Core {
            machine: Machine::default(),
            outputs: Outputs::new(),
            control: Worker::spawn("heapray-control")?,
            output: Worker::spawn("heapray-output")?,
            #[cfg(feature = "http")]
            files: {
                let readers = Arc::clone(&readers);
                Worker::spawn_with("heapray-files", move || readers.look())?
            },
            #[cfg(not(feature = "http"))]
            files: Worker::spawn("heapray-files")?,
            #[cfg(feature = "http")]
            log_reader: match &config.memory_log {
                Some(_) => Some(Arc::new(super::log_reader::LogReader::new()?)),
                None => None,
            },
            #[cfg(feature = "http")]
            readers,
            #[cfg(feature = "http")]
            watch: Worker::spawn("heapray-live")?,
            #[cfg(feature = "http")]
            live: super::live::Live::default(),
            #[cfg(feature = "http")]
            listeners: super::listeners::Listeners::default(),
            archive: Archive::new(
                directory.path(),
                config.keep,
                config.keep_bytes,
                config.trigger_keep,
            ),
            recorder: Recorder::new(told)?,
            reclaimer: Worker::spawn("heapray-recover")?,
            lately: Lately::default(),
            directory,
            pid: std::process::id(),
            config,
        })
    }

    /// # Errors
    ///
    /// [`Error::Forked`] in a forked child, where neither the threads nor the locks of the parent may be touched.
    pub(crate) fn own_process(&self) -> Result<(), Error> {
        if std::process::id() == self.pid {
            Ok(())
        } else {
            Err(Error::Forked)
        }
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The state with the report on disk. May wait for a snapshot that is being taken: a few milliseconds.
    pub(crate) fn status(&self) -> Status {
        let mut status = self.machine.status();
        status.trigger = self.recorder.last();
        status.disk = DiskStatus {
            bytes: self.directory.bytes(),
            bound_bytes: self.archive.bound(),
        };
        if matches!(status.state, State::Stopped | State::Stopping) {
            let report = self.outputs.shelf().report();
            status.report = report.map(|(bytes, label)| ReportStatus {
                bytes,
                taken: label.taken,
            });
        }
        status
    }

    /// Begins a session, unless one runs. With `sample`, one that samples so, or records everything if that is 0: a session
    /// that samples otherwise goes on at that rate, and one of the other kind ends first, as by [`stop`](Core::stop), since
    /// what is exact and what is estimated cannot be one report. Control thread only.
    pub(crate) fn start(self: &Arc<Core>, sample: Option<u64>) -> Result<Status, Error> {
        if self.outputs.queue.is_ending() {
            // Asked for before: the last report must not wait for it.
            return Err(Error::Ending);
        }
        if let Some(lost) = self.machine.end_lost() {
            // Its collector is gone, and with it all it knew: nothing would come of stopping it.
            let ended = self.finish(lost);
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
                self.stop()?;
            }
            _ => {}
        }
        if self.machine.sample().is_none() {
            let sample = sample.unwrap_or(self.config.sample);
            self.begin(sample).inspect_err(|error| {
                tracing::error!(error = %error_chain(error), "recording did not start");
                self.machine.note_trouble(error);
            })?;
        }
        Ok(self.status())
    }

    fn begin(self: &Arc<Core>, sample: u64) -> Result<(), Error> {
        let path = self.directory.path();
        // What dead processes have left may be what there is no room for.
        self.directory.sweep();
        self.directory
            .prepare()
            .map_err(|source| Error::Directory {
                path: path.to_owned(),
                source: Arc::new(source),
            })?;
        // A log that would grow past the process's own limit on files is given up there, not killed by it.
        let log_limit = self.config.log_limit.min(self.archive.log_limit());
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
        // Only now: a start that fails leaves the former report alone.
        let number = self.machine.begin(session);
        self.outputs.shelf().begin(number, path);
        if self.config.watch().is_some() {
            self.recorder.set_aside(path, self.archive.bound());
        }
        let log = if sample == 0 { log_limit } else { 0 };
        self.archive.make_room(log, false);
        // The event log of a session whose report could not be written is a leftover as of now: the machine has closed it.
        self.reclaim();
        let directory = path.display();
        if sample == 0 {
            tracing::info!(%directory, "recording every allocation");
        } else {
            tracing::info!(%directory, sample, "recording samples of allocations");
        }
        Ok(())
    }

    /// What was set, else a share of the memory that there is.
    fn overhead_limit(&self) -> u64 {
        let limit = self.config.overhead_limit;
        limit.unwrap_or_else(|| overhead_share(flight_recorder::memory_of_process()))
    }

    /// Has notices dealt with on the control thread. It keeps nothing alive: what the collector's thread dropped last,
    /// that thread would have to end.
    fn observer(self: &Arc<Core>) -> Observer {
        let (core, control) = (Arc::downgrade(self), self.control.clone());
        let flight = self.recorder.worker.clone();
        let observer = Observer::new(move |notice| {
            let core = core.clone();
            match notice {
                Notice::Triggered(kind, text) => flight.submit(move || match core.upgrade() {
                    Some(core) => core.record_flight(&Reason { kind, text }),
                    None => failure::done(),
                }),
                Notice::Approaching => flight.submit(move || {
                    if let Some(core) = core.upgrade() {
                        core.get_ready_for_flight();
                    }
                }),
                notice => control.submit(move || {
                    if let Some(core) = core.upgrade() {
                        core.noticed(&notice);
                    }
                }),
            }
        });
        match self.config.watch() {
            Some(settings) => observer.watching(Watch::new(settings)),
            None => observer,
        }
    }

    fn noticed(self: &Arc<Core>, notice: &Notice) {
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
                    self.recorder.set_cause(Some(Reason {
                        kind: *kind,
                        text: reason.clone(),
                    }));
                    let stopped = self.stop();
                    self.recorder.set_cause(None);
                    if stopped.is_ok() {
                        self.machine.note_end(reason);
                    }
                }
            }
            // For the recorder's own thread.
            Notice::Triggered(..) | Notice::Approaching => {}
        }
    }

    /// Ends the session, if one runs, and waits until its report is on disk. Control thread only.
    pub(crate) fn stop(self: &Arc<Core>) -> Result<Status, Error> {
        if let Some(session) = self.machine.end() {
            let ended = catch_unwind(AssertUnwindSafe(|| self.finish(session)));
            let ended = ended.unwrap_or_else(|_| {
                // Whoever waits for the last view must learn that there is none.
                self.machine.ended(None);
                Err(Error::Internal("ending the session panicked"))
            });
            self.machine.stopped();
            ended.inspect_err(|error| {
                tracing::error!(error = %error_chain(error), "the session ended without a report");
                self.machine.note_trouble(error);
            })?;
        }
        Ok(self.status())
    }

    fn finish(self: &Arc<Core>, mut session: Session) -> Result<(), Error> {
        let mut held = session.take_hold();
        let spool = session.spool().map(PathBuf::from);
        // What clients have asked for waits from here on: this goes first.
        let hold = self.hold();
        match session.stop() {
            Ok(last) => {
                if hook::patched() != 0 {
                    tracing::warn!(
                        words = hook::patched(),
                        "hooks could not be taken out: they hand every call on"
                    );
                }
                if last.log.is_none() {
                    // Given up: on a full disk it takes what the report needs, as long as it is open.
                    held = None;
                    drop(spool.as_ref().map(fs::remove_file));
                }
                self.machine.ended(Some(last));
            }
            Err(error) => {
                self.machine.ended(None);
                // Its log is all that is left of the session: it is recovered at the next start, of this process or another.
                return Err(Error::Session(error));
            }
        }
        self.recorder.give_up_room();
        let report = self.report_at_once(hold);
        if report.is_ok() {
            // The last view holds it open for whatever else is to be made of it. Without a report its name stays:
            // what was recorded is recovered then, at the next start of this process or another.
            drop(spool.map(fs::remove_file));
        }
        // Until here no other process takes the log for a dead one's.
        drop(held);
        let report = report?;
        tracing::info!(
            bytes = report.len(),
            path = %self.directory.path().join(OutputKind::Report.file_name()).display(),
            "the report is on disk"
        );
        Ok(())
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if self.own_process().is_ok() {
            let _untracked = untracked::enter();
            self.recorder.give_up_room();
            self.archive.remove_if_empty();
            self.directory.remove_if_empty();
        }
    }
}
