//! The process's own profiler, and the functions that spare a service the handle.

use std::sync::OnceLock;

use super::lock::{Lock, Rank};
use super::{Builder, Error, InitError, Mark, Profiler, Status, builder};
use crate::capture::untracked;
use crate::profiler::store::Output;
use heapray_report::error_chain;

static PROFILER: OnceLock<Profiler> = OnceLock::new();
/// Held while the profiler is made, so that two at once make one.
static MAKING: Lock<()> = Lock::new(Rank::Init, ());

/// The one-line form: reads the environment, and where `MEMRAY_PROFILER` is true, every allocation is recorded from
/// here on. Call it first in `main`.
///
/// Calling it again gives the same profiler. It never fails and never panics: a bad setting, or anything else that is
/// wrong, is logged (to standard error where nothing collects `tracing` events), and the profiler stays off.
///
/// ```
/// let profiler = heapray::init();
/// # assert!(!profiler.is_enabled());
/// ```
pub fn init() -> Profiler {
    builder().init()
}

/// As [`init`], but what is wrong comes back as an error.
///
/// # Errors
///
/// See [`Builder::try_init`].
pub fn try_init() -> Result<Profiler, InitError> {
    builder().try_init()
}

/// The process's profiler; a disabled one where nothing was initialised.
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

/// What [`Profiler::status`] gives.
#[must_use]
pub fn status() -> Status {
    profiler().status()
}

/// What [`Profiler::report`] gives.
///
/// # Errors
///
/// Those of [`Profiler::report`].
pub fn report() -> Result<Output, Error> {
    profiler().report()
}

/// What [`Profiler::flamegraph`] gives.
///
/// # Errors
///
/// Those of [`Profiler::report`].
pub fn flamegraph() -> Result<Output, Error> {
    profiler().flamegraph()
}

/// What [`Profiler::stats`] gives.
///
/// # Errors
///
/// Those of [`Profiler::report`].
pub fn stats() -> Result<String, Error> {
    profiler().stats()
}

/// Does what [`Profiler::shutdown`] does, and prints the sums of profiled functions, as [`print_profiles`](crate::print_profiles).
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

/// Prints the sums of profiled functions, where there are any.
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
            // Whatever is wrong now stays so: the next call must not log it again, nor record after all.
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
    if profiler.is_enabled() && builder.starts() {
        profiler.start().map_err(InitError::Start)?;
    }
    Ok(profiler)
}

/// `init` is called before anything else, often before there is a log.
fn report_failure(error: &InitError) {
    if tracing::dispatcher::has_been_set() {
        tracing::error!(error = %error_chain(error), "heapray does not record");
    } else {
        eprintln!("heapray does not record: {}", error_chain(error));
    }
}
