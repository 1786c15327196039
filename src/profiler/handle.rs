//! The handle that a service holds.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::core::Core;
use super::reports::Of;
use super::{Error, KeptReport, Mark, State, Status};
use crate::capture::untracked;
use crate::memory_log::Recording;
use crate::profiler::store::{Output, OutputKey, OutputKind, ReportId};
use heapray_report::error_chain;

/// Longest time that [`Profiler::shutdown`] may take.
const LONGEST_SHUTDOWN: Duration = Duration::from_secs(20);

/// The profiler of this process. Cheap to clone; all clones are the same profiler.
///
/// The methods of a [disabled](Profiler::is_enabled) profiler return [`Error::Disabled`].
///
/// The methods block until they are done; `stop` and the outputs may take seconds. From async code use the endpoints or
/// `spawn_blocking`.
#[derive(Debug, Clone, Default)]
pub struct Profiler {
    pub(super) core: Option<Arc<Core>>,
    /// Independent of `core`: it may run without the profiler.
    pub(crate) memory_log: Recording,
}

impl Profiler {
    /// Returns the file of the memory log, if there is one; see [`Builder::memory_log`](crate::Builder::memory_log).
    #[must_use]
    pub fn memory_log(&self) -> Option<&std::path::Path> {
        match &self.memory_log {
            Recording::On(recorder) => Some(recorder.path()),
            _ => None,
        }
    }

    /// Returns whether the profiler is enabled.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.core.is_some()
    }

    /// Returns the settings; `None` where the profiler is disabled.
    #[cfg(feature = "http")]
    pub(crate) fn config(&self) -> Option<&Arc<crate::config::Config>> {
        self.core.as_ref().map(|core| core.config())
    }

    pub(crate) fn core(&self) -> Result<&Arc<Core>, Error> {
        let core = self.core.as_ref().ok_or(Error::Disabled)?;
        core.check_process()?;
        Ok(core)
    }

    /// Begins a session; the former one's report becomes one of the [kept reports](Profiler::kept_reports). A session that
    /// runs already goes on.
    ///
    /// # Errors
    ///
    /// [`Error::Directory`] or [`Error::Start`]; the former report is still there then.
    pub fn start(&self) -> Result<Status, Error> {
        self.core()?.lifecycle().start_blocking(None)
    }

    /// Begins a session that records one sample per `bytes` bytes on average, or every allocation if that is 0.
    ///
    /// A session that samples already goes on at this rate. A session of the other kind ends first, as by
    /// [`stop`](Profiler::stop): exact and estimated figures cannot be in one report.
    ///
    /// # Errors
    ///
    /// Those of [`start`](Profiler::start) and [`stop`](Profiler::stop).
    pub fn start_sampling(&self, bytes: u64) -> Result<Status, Error> {
        self.core()?.lifecycle().start_blocking(Some(bytes))
    }

    /// Ends the session and writes its report. Does nothing if no session runs.
    ///
    /// # Errors
    ///
    /// [`Error::Session`], or [`Error::Output`] if the report could not be written: what was recorded stays in memory then,
    /// and [`report`](Profiler::report) tries again.
    pub fn stop(&self) -> Result<Status, Error> {
        self.core()?.lifecycle().stop_blocking()
    }

    /// Returns the state, and the sums of the running session or else the last one.
    #[must_use]
    pub fn status(&self) -> Status {
        match self.core() {
            Ok(core) => core.lifecycle().status_blocking(),
            Err(Error::Forked) => Status::bare(State::Forked),
            Err(_) => Status::bare(State::Disabled),
        }
    }

    /// Returns the report in memray's format: the finished session's, or a consistent snapshot of the running one.
    ///
    /// # Errors
    ///
    /// [`Error::NoReport`] before the first session, [`Error::Output`] if it could not be written.
    pub fn report(&self) -> Result<Output, Error> {
        self.output(OutputKey::new(OutputKind::Report))
    }

    /// Returns the flame graph, one self-contained HTML page, of the same session as [`report`](Profiler::report).
    ///
    /// # Errors
    ///
    /// Those of [`report`](Profiler::report).
    pub fn flamegraph(&self) -> Result<Output, Error> {
        self.output(OutputKey::new(OutputKind::Flamegraph))
    }

    /// Returns the statistics, as text, of the same session as [`report`](Profiler::report).
    ///
    /// # Errors
    ///
    /// Those of [`report`](Profiler::report).
    pub fn stats(&self) -> Result<String, Error> {
        let _untracked = untracked::enter();
        let mut output = self.output(OutputKey::new(OutputKind::Stats))?;
        let mut text = String::new();
        let read = output.read_to_string(&mut text);
        read.map_err(|_| Error::Internal("the statistics could not be read back"))?;
        Ok(text)
    }

    /// Returns any output, made as `key` says.
    ///
    /// # Errors
    ///
    /// Those of [`report`](Profiler::report).
    pub fn output(&self, key: OutputKey) -> Result<Output, Error> {
        self.core()?.reports().output_blocking(Of::Session, key)
    }

    /// Returns the kept reports, the latest first.
    ///
    /// # Errors
    ///
    /// [`Error::Disabled`] or [`Error::Forked`].
    pub fn kept_reports(&self) -> Result<Vec<KeptReport>, Error> {
        let _untracked = untracked::enter();
        Ok(self.core()?.reports().kept())
    }

    /// Returns any output of a kept report, made as `key` says.
    ///
    /// # Errors
    ///
    /// [`Error::NotKept`], [`Error::Damaged`], or [`Error::Output`]; [`Error::UnsupportedForKept`] if `key` wants `full` or
    /// each thread by itself of another session than the present one.
    pub fn kept_output(&self, id: ReportId, key: OutputKey) -> Result<Output, Error> {
        self.core()?.reports().output_blocking(Of::Kept(id), key)
    }

    /// Deletes a kept report; if it is that of the session that ended last, all other outputs of that session as well.
    ///
    /// # Errors
    ///
    /// [`Error::NotKept`], or [`Error::Output`] if the file system refuses.
    pub fn delete_kept_report(&self, id: ReportId) -> Result<(), Error> {
        self.core()?.reports().delete_blocking(id)
    }

    /// Names the present moment of the running session: blocks from before and after it can be told apart in its report.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecording`]; [`Error::InvalidMarkName`] unless it has 1 to 200 characters, none of them a control character;
    /// [`Error::TooManyMarks`] if there are 1,000.
    pub fn mark(&self, name: &str) -> Result<Mark, Error> {
        self.core()?.lifecycle().mark_blocking(name)
    }

    /// Ends the session, finishes its report, closes the listeners of `serve`, and ends the memory log. Call it at the end of
    /// `main`, or when the service gets `SIGTERM`. Calling it twice does no harm.
    ///
    /// The session's report goes first: outputs that clients still wait for are not made, and the log says how many. Takes
    /// at most 20 seconds, and two more for downloads from `serve`; Kubernetes gives a pod 30.
    ///
    /// # Errors
    ///
    /// Those of [`stop`](Profiler::stop); [`Error::ShutdownTooLong`] if the report is not finished after 20 seconds. None
    /// where the profiler is disabled.
    pub fn shutdown(&self) -> Result<Status, Error> {
        let ended = self.end_session();
        // Last: it shows how the report was made.
        self.memory_log.stop();
        ended
    }

    fn end_session(&self) -> Result<Status, Error> {
        if !self.is_enabled() {
            return Ok(self.status());
        }
        let _untracked = untracked::enter();
        let Ok(core) = self.core() else {
            return self.stop();
        };
        let deadline = Instant::now() + LONGEST_SHUTDOWN;
        let left_out = core.reports().end();
        if left_out > 0 {
            tracing::warn!(
                outputs = left_out,
                "the service ends: what clients had asked for is not made any more"
            );
        }
        let stopped = core.lifecycle().stop_until(deadline);
        #[cfg(feature = "http")]
        core.listeners().close();
        let written = core.reports().wait_until(deadline);
        let recorded = core.flight().wait_until(deadline);
        core.lifecycle().finish_sending(deadline);
        let (Some(stopped), Some(written)) = (stopped, written) else {
            let path = core.directory().to_owned();
            let error = Error::ShutdownTooLong { path };
            tracing::error!(error = %error_chain(&error), "the service ends without the report of its last session");
            return Err(error);
        };
        if !recorded {
            tracing::error!("the service ends while the flight recorder writes a report");
        }
        core.reports().go_on();
        written?;
        stopped
    }
}
