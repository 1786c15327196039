//! The handle that a service holds.

use std::io::Read;
use std::sync::{Arc, mpsc};

use super::control::Core;
use super::{Error, State, Status};
use crate::quiet;
use crate::store::{Output, OutputKey, OutputKind};

/// The profiler of this process. Cheap to clone; all clones are the same profiler.
///
/// One that is [disabled](Profiler::is_enabled) has nothing behind it: its methods return [`Error::Disabled`].
///
/// The methods block until they are done: `stop` and the outputs for up to seconds. From async code use the endpoints
/// or `spawn_blocking`.
#[derive(Debug, Clone, Default)]
pub struct Profiler {
    pub(crate) core: Option<Arc<Core>>,
}

impl Profiler {
    /// Whether there is a profiler at all.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.core.is_some()
    }

    pub(crate) fn core(&self) -> Result<&Arc<Core>, Error> {
        let core = self.core.as_ref().ok_or(Error::Disabled)?;
        core.own_process()?;
        Ok(core)
    }

    /// Begins a session; the former one's report is deleted. Where one runs already, it goes on.
    ///
    /// # Errors
    ///
    /// [`Error::Directory`] or [`Error::Start`]; the former report is still there then.
    pub fn start(&self) -> Result<Status, Error> {
        let core = Arc::clone(self.core()?);
        self.core()?.control.run(move || core.start())?
    }

    /// Ends the session and writes its report. Where none runs, nothing happens.
    ///
    /// # Errors
    ///
    /// [`Error::Session`], or [`Error::Output`] if the report could not be written: what was recorded is kept in
    /// memory then, and [`report`](Profiler::report) tries again.
    pub fn stop(&self) -> Result<Status, Error> {
        let core = Arc::clone(self.core()?);
        self.core()?.control.run(move || core.stop())?
    }

    /// The state, and the sums of the running session or else the last one.
    #[must_use]
    pub fn status(&self) -> Status {
        match self.core() {
            Ok(core) => {
                let _quiet = quiet::enter();
                core.status()
            }
            Err(Error::Forked) => Status::bare(State::Forked),
            Err(_) => Status::bare(State::Disabled),
        }
    }

    /// The report in memray's format: the finished session's, or a consistent snapshot of the running one.
    ///
    /// # Errors
    ///
    /// [`Error::NoReport`] before the first session, [`Error::Output`] if it could not be written.
    pub fn report(&self) -> Result<Output, Error> {
        self.output(OutputKey::new(OutputKind::Report))
    }

    /// The flame graph, one self-contained HTML page, of what [`report`](Profiler::report) tells of.
    ///
    /// # Errors
    ///
    /// Those of [`report`](Profiler::report).
    pub fn flamegraph(&self) -> Result<Output, Error> {
        self.output(OutputKey::new(OutputKind::Flamegraph))
    }

    /// The statistics, as text, of what [`report`](Profiler::report) tells of.
    ///
    /// # Errors
    ///
    /// Those of [`report`](Profiler::report).
    pub fn stats(&self) -> Result<String, Error> {
        let _quiet = quiet::enter();
        let mut output = self.output(OutputKey::new(OutputKind::Stats))?;
        let mut text = String::new();
        let read = output.read_to_string(&mut text);
        read.map_err(|_| Error::Internal("the statistics could not be read back"))?;
        Ok(text)
    }

    /// Any of the three, made as `key` says.
    ///
    /// # Errors
    ///
    /// Those of [`report`](Profiler::report).
    pub fn output(&self, key: OutputKey) -> Result<Output, Error> {
        self.core()?.wait_for(key)
    }

    /// Ends the session, finishes its report and closes the listeners of `serve`. For the end of `main`,
    /// or whatever a service does on `SIGTERM`. Calling it twice does no harm.
    ///
    /// # Errors
    ///
    /// Those of [`stop`](Profiler::stop); none where the profiler is disabled.
    pub fn shutdown(&self) -> Result<Status, Error> {
        if !self.is_enabled() {
            return Ok(self.status());
        }
        let _quiet = quiet::enter();
        let stopped = self.stop();
        #[cfg(feature = "http")]
        if let Ok(core) = self.core() {
            core.servers.close();
        }
        stopped
    }
}

impl Core {
    /// Finds or makes an output and waits for it, blocking.
    pub(crate) fn wait_for(self: &Arc<Core>, key: OutputKey) -> Result<Output, Error> {
        let _quiet = quiet::enter();
        let (answer, answered) = mpsc::channel();
        self.request(
            key,
            Box::new(move |made| {
                // Nobody waits any more: nobody needs it.
                let _ = answer.send(made);
            }),
        );
        let died = |_| Error::Internal("making an output panicked");
        answered.recv().map_err(died)?
    }
}
