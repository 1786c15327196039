//! The process's own profiler, and functions that need no handle.

use std::sync::OnceLock;

use super::lock::{Lock, Rank};
use super::{Builder, Error, InitError, Mark, PAGE, Profiler, State, Status, builder};
use crate::announce;
use crate::capture::untracked;
use crate::config::size;
use crate::profiler::store::Output;
use heapray_report::error_chain;

static PROFILER: OnceLock<Profiler> = OnceLock::new();
/// Held while the profiler is made, so that two at once make one.
static MAKING: Lock<()> = Lock::new(Rank::Init, ());

/// Reads the environment, and if `MEMRAY_PROFILER` is true, records every allocation from here on. Call it first in `main`.
///
/// Calling it again returns the same profiler. It never fails and never panics: an error, such as a bad setting, is logged (to
/// standard error if nothing collects `tracing` events), and the profiler stays off.
///
/// ```
/// let profiler = heapray::init();
/// # assert!(!profiler.is_enabled());
/// ```
pub fn init() -> Profiler {
    builder().init()
}

/// Does what [`init`] does, but returns an error if something is wrong.
///
/// # Errors
///
/// See [`Builder::try_init`].
pub fn try_init() -> Result<Profiler, InitError> {
    builder().try_init()
}

/// Returns the process's profiler; a disabled one before [`init`].
#[must_use]
pub fn profiler() -> Profiler {
    PROFILER.get().cloned().unwrap_or_default()
}

/// Does what [`Profiler::start`] does.
///
/// # Errors
///
/// Those of [`Profiler::start`].
pub fn start() -> Result<Status, Error> {
    profiler().start()
}

/// Does what [`Profiler::stop`] does.
///
/// # Errors
///
/// Those of [`Profiler::stop`].
pub fn stop() -> Result<Status, Error> {
    profiler().stop()
}

/// Does what [`Profiler::mark`] does.
///
/// # Errors
///
/// Those of [`Profiler::mark`].
pub fn mark(name: &str) -> Result<Mark, Error> {
    profiler().mark(name)
}

/// Does what [`Profiler::status`] does.
#[must_use]
pub fn status() -> Status {
    profiler().status()
}

/// Does what [`Profiler::report`] does.
///
/// # Errors
///
/// Those of [`Profiler::report`].
pub fn report() -> Result<Output, Error> {
    profiler().report()
}

/// Does what [`Profiler::flamegraph`] does.
///
/// # Errors
///
/// Those of [`Profiler::report`].
pub fn flamegraph() -> Result<Output, Error> {
    profiler().flamegraph()
}

/// Does what [`Profiler::stats`] does.
///
/// # Errors
///
/// Those of [`Profiler::report`].
pub fn stats() -> Result<String, Error> {
    profiler().stats()
}

/// Does what [`Profiler::shutdown`] does, and prints the sums of profiled functions, as
/// [`print_profiles`](crate::print_profiles) does.
///
/// # Errors
///
/// Those of [`Profiler::shutdown`].
pub fn shutdown() -> Result<Status, Error> {
    if let Some(print) = PRINT.get() {
        print();
    }
    profiler().shutdown()
}

/// The function that prints the sums of profiled functions, if there are any.
static PRINT: OnceLock<fn()> = OnceLock::new();

/// Has [`shutdown`] call `print` first. Only the first call counts.
pub(crate) fn print_at_shutdown(print: fn()) {
    PRINT.get_or_init(|| print);
}

pub(super) fn init_with(builder: Builder) -> Profiler {
    let _untracked = untracked::enter();
    match try_init_with(builder) {
        Ok(profiler) => profiler,
        Err(error) => {
            report_failure(&error);
            // The next call must not log it again, nor begin to record.
            PROFILER.get_or_init(Profiler::default).clone()
        }
    }
}

pub(super) fn try_init_with(builder: Builder) -> Result<Profiler, InitError> {
    let _untracked = untracked::enter();
    let _making = MAKING.lock();
    if let Some(profiler) = PROFILER.get() {
        return Ok(profiler.clone());
    }
    let profiler = builder.assemble()?;
    PROFILER.get_or_init(|| profiler.clone());
    if builder.begin(&profiler).map_err(InitError::Start)? {
        announce::where_nothing_logs(recording(&profiler));
    }
    Ok(profiler)
}

/// Returns the first line about a profiler that records.
fn recording(profiler: &Profiler) -> String {
    let status = profiler.status();
    let sample = status.sampling.map_or(0, |sampling| sampling.mean_bytes);
    let what = match sample {
        _ if status.state == State::Background => "recording samples in the background".to_owned(),
        0 => "recording every allocation".to_owned(),
        bytes => format!(
            "recording one sample each {} on average",
            size::shown(bytes)
        ),
    };
    match PAGE {
        Some(page) => format!("{what}; open http://<the service's address>{page}"),
        None => what,
    }
}

/// Announces `error`.
fn report_failure(error: &InitError) {
    announce::error(format_args!("nothing is recorded: {}", error_chain(error)));
}
