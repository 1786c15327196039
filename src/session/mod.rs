//! A session: it patches the hooks, runs the collector, and restores the hooks.
//!
//! ```text
//!              start                                  stop
//!   (nothing) ───────▶ collector runs, GOT patched ─────▶ GOT restored, last snapshot taken, collector ends
//! ```
//!
//! A process has one session at a time. The next start begins a new session, which does not know the blocks of the last one.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use crate::capture::record::{self, seen};
use crate::capture::thread::Busy;
use crate::capture::{self, clock, control, hook, modules, sampling, sys};
use crate::collector::Process;
use crate::collector::clock::Clock;
use crate::collector::notice::Headroom;
pub use crate::collector::notice::{Notice, Observer};
use crate::collector::snapshot::{ContextSums, Hooks, Snapshot};
pub use crate::collector::worker::Counters;
use crate::collector::worker::{Request, Setup, Taken, Visibility};
use crate::os::command_line;
use crate::os::held;
use collector::{Collector, Place};
use heapray_report::model::Mark;
pub use scope::ActiveScope;

/// The options of a session: the place of its event log, its limits, and sampling.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// An existing directory that this process can write.
    pub spool_dir: PathBuf,
    /// The size at which the event log is given up, in bytes.
    pub log_limit: u64,
    /// The limit of heapray's own memory in bytes, including the memory for making reports. At the limit, new call stacks
    /// are cut nearer to the root. If the live blocks alone reach it, recording ends.
    pub overhead_limit: u64,
    /// The sampling rate: one allocation per so many bytes on average is recorded, without an event log. 0 records every
    /// allocation.
    pub sample: u64,
}

/// The reason why a session could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// A session is already running.
    AlreadyRecording,
    /// This process was forked from a profiled process, and a forked process can't record.
    ForkedChild,
    /// The process's memory is limited, and too little of it is left for the profiler's tables, for this reason.
    Memory(String),
    /// Neither GOT entries nor the global allocator's wrapper record the allocations of Rust code.
    NothingVisible,
    /// The event log's file could not be created.
    Spool {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The collector's thread could not be started, or no thread key was available.
    Thread(io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::AlreadyRecording => {
                write!(f, "a capture is already being recorded in this process")
            }
            StartError::ForkedChild => {
                write!(
                    f,
                    "this process was forked from a profiled process and can't record; start the profiler in a process of its own"
                )
            }
            StartError::Memory(shortage) => {
                write!(f, "too little memory is left to record: {shortage}")
            }
            StartError::NothingVisible => write!(
                f,
                "this program's allocations can't be recorded: it does not call the system's malloc through a dynamic \
                 libc (static binary, or another global allocator); wrap its allocator: \
                 #[global_allocator] static GLOBAL: heapray::Alloc<A> = heapray::Alloc::new(A)"
            ),
            StartError::Spool { path, .. } => write!(
                f,
                "can't write the capture's event log {}; set MEMRAY_PROFILER_DIR to a directory that this process \
                 may write",
                path.display()
            ),
            StartError::Thread(_) => write!(f, "can't start the collector's thread"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Spool { source, .. } | StartError::Thread(source) => Some(source),
            _ => None,
        }
    }
}

/// The collector does not run: it has failed, or this process is a forked child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionError;

impl std::fmt::Display for SessionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the capture was lost: its collector thread is not running in this process"
        )
    }
}

impl std::error::Error for SessionError {}

/// A running session. Dropping it ends the session without a report.
#[derive(Debug)]
pub struct Session {
    collector: Collector,
    sample: u64,
    visibility: Visibility,
}

/// The last session's number.
static LAST: AtomicU32 = AtomicU32::new(0);

impl Session {
    /// Starts recording. The hooks are in place when it returns.
    ///
    /// # Errors
    /// See [`StartError`]. After an error, no file, thread or hook is left behind.
    pub fn start(options: &SessionOptions) -> Result<Session, StartError> {
        Session::start_observed(options, Observer::nobody())
    }

    /// Starts recording like [`start`](Session::start), with an observer that receives the session's notices.
    ///
    /// # Errors
    /// Those of [`start`](Session::start).
    pub fn start_observed(
        options: &SessionOptions,
        observer: Observer,
    ) -> Result<Session, StartError> {
        // A session that samples has no event log, because it does not record every event.
        Session::open(options, observer, options.sample == 0)
    }

    fn open(
        options: &SessionOptions,
        observer: Observer,
        log: bool,
    ) -> Result<Session, StartError> {
        if control::is_forked_child() {
            return Err(StartError::ForkedChild);
        }
        let place = Place::take().ok_or(StartError::AlreadyRecording)?;
        let _busy = Busy::enter();
        capture::prepare().map_err(StartError::Thread)?;
        if let Some(shortage) = Headroom::new().shortage(|| 0) {
            return Err(StartError::Memory(shortage));
        }
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let spool = log.then(|| create_spool(&options.spool_dir, number));
        let (path, spool) = spool.transpose()?.unzip();
        // If the descriptor can't be duplicated, the collector's descriptor holds the lock while the collector runs.
        let held = spool.as_ref().and_then(|file| file.try_clone().ok());

        modules::refresh();
        let ticks_per_ms = ticks_per_ms();
        let (started, start_stamp) = (SystemTime::now(), clock::stamp());
        // The system's random numbers are its keys.
        let random = RandomState::new();
        let setup = Setup {
            session: number,
            spool,
            log_limit: options.log_limit,
            overhead_limit: options.overhead_limit,
            sample: options.sample,
            seed: random.hash_one("rounding"),
            clock: Clock {
                start_stamp,
                ticks_per_ms,
            },
            process: Process {
                pid: std::process::id(),
                started,
                command_line: command_line::read(),
            },
            observer,
        };
        let collector = Collector::start(setup, path, held, place).map_err(StartError::Thread)?;

        if options.sample > 0 {
            sampling::begin(options.sample, random.hash_one("points"));
        }
        // If the system refuses the barrier, that must be known before hooks rely on it.
        sys::heavy_barrier();
        control::open_session(number);
        hook::patch();
        if hook::choose_operators() {
            hook::patch();
        }
        let hooks = match probe() {
            0 => return Err(StartError::NothingVisible),
            seen::GOT => Hooks::Got,
            seen::GLOBAL if hook::patched() == 0 => Hooks::Global,
            _ => Hooks::Both,
        };
        let mut notes = Vec::new();
        if clock::is_monotonic() {
            notes.push(
                "this machine's time stamp counter is not invariant: events are ordered by CLOCK_MONOTONIC, \
                 which costs more"
                    .to_owned(),
            );
        }
        notes.extend(families::unseen());
        scope::opened(collector.requests(), hooks);
        Ok(Session {
            collector,
            sample: options.sample,
            visibility: Visibility { hooks, notes },
        })
    }

    /// Returns the present counters.
    ///
    /// # Errors
    /// The collector does not run.
    pub fn counters(&self) -> Result<Counters, SessionError> {
        self.ask_seeing(Request::Counters)
    }

    /// Returns notes about allocations that this session can't record.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.visibility.notes
    }

    /// Names the present moment. Returns `None` if the session has its maximum number of marks.
    ///
    /// # Errors
    /// The collector does not run.
    pub fn mark(&self, name: &str) -> Result<Option<Mark>, SessionError> {
        self.collector
            .ask(|answer| Request::Mark(name.to_owned(), answer))
    }

    /// Takes a snapshot like [`snapshot`](Session::snapshot), but only of the `sites` call sites with the most live bytes,
    /// and without the event log. This is cheap enough for every second. `ages`: with survivors and history, which
    /// takes a look at each live block.
    ///
    /// # Errors
    /// The collector does not run.
    pub fn top(&self, sites: usize, ages: bool) -> Result<Snapshot, SessionError> {
        self.ask_seeing(|visibility, answer| Request::Top {
            sites,
            ages,
            visibility,
            answer,
        })
    }

    /// Returns what each context has allocated and holds.
    ///
    /// # Errors
    /// The collector does not run.
    pub fn sums_by_context(&self) -> Result<BTreeMap<u32, ContextSums>, SessionError> {
        self.collector.ask(Request::Contexts)
    }

    /// Takes a snapshot of this moment. Recording goes on.
    ///
    /// # Errors
    /// The collector does not run.
    pub fn snapshot(&self) -> Result<Snapshot, SessionError> {
        self.take_snapshot().map(Taken::wait)
    }

    /// Does the same, without waiting until the event log is in its file.
    ///
    /// # Errors
    /// The collector does not run.
    pub fn take_snapshot(&self) -> Result<Taken, SessionError> {
        self.ask_seeing(Request::Snapshot)
    }

    /// Ends recording, and returns the last snapshot. The GOT entries are restored when it returns. The caller removes the
    /// event log's file.
    ///
    /// # Errors
    /// The collector does not run.
    pub fn stop(mut self) -> Result<Snapshot, SessionError> {
        if control::is_forked_child() {
            return Err(SessionError);
        }
        self.collector.close();
        let left = hook::patched();
        if left != 0 {
            self.visibility.notes.push(format!(
                "{left} GOT entries that point to heapray's hooks could not be put back, since the system does not let \
                 their pages be written (a seccomp filter?): calls through them still pass heapray, which records nothing"
            ));
        }
        let taken = self.ask_seeing(Request::Stop);
        self.collector.join();
        taken.map(Taken::wait)
    }

    /// Changes the sampling rate to one sample per `mean` bytes on average. Only for a session that samples.
    ///
    /// # Errors
    /// The collector does not run.
    pub fn resample(&mut self, mean: u64) -> Result<(), SessionError> {
        self.collector
            .ask(|answer| Request::Resample(mean, answer))?;
        self.sample = mean;
        Ok(())
    }

    /// Returns the sampling rate in bytes, or 0 if every allocation is recorded.
    #[must_use]
    pub fn sample(&self) -> u64 {
        self.sample
    }

    /// Returns the path of the event log, if the session has one.
    #[must_use]
    pub fn spool(&self) -> Option<&Path> {
        self.collector.spool()
    }

    /// Takes a file that holds the event log's lock, as the collector's own does. While it is open, no other process takes
    /// the log for that of a dead process.
    pub(crate) fn take_hold(&mut self) -> Option<File> {
        self.collector.take_hold()
    }

    fn ask_seeing<T>(
        &self,
        request: impl FnOnce(Visibility, SyncSender<T>) -> Request,
    ) -> Result<T, SessionError> {
        self.collector
            .ask(|answer| request(self.visibility.clone(), answer))
    }
}

/// Creates the event log's file, with a lock that shows other processes that this process is alive.
fn create_spool(directory: &Path, session: u32) -> Result<(PathBuf, File), StartError> {
    let name = log_name::new_names(session);
    held::create(directory, &name).map_err(|source| StartError::Spool {
        path: directory.join(name()),
        source,
    })
}

/// Returns the ways in which an allocation of Rust code is recorded: bits of [`seen`].
fn probe() -> u8 {
    // A hooked `mmap` may provide the block's memory, but does not record the block: its bit does not count.
    record::probe(|| drop(black_box(Box::new(black_box(0_u64))))) & (seen::GOT | seen::GLOBAL)
}

/// Returns the rate of time stamps. It is measured once, with the monotonic clock.
fn ticks_per_ms() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        static MEASURING: Mutex<()> = Mutex::new(());
        let _one_at_a_time = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
        let (time, stamp) = (std::time::Instant::now(), clock::stamp());
        while time.elapsed().as_micros() < 5_000 {
            std::hint::spin_loop();
        }
        let (ticks, elapsed) = (clock::stamp() - stamp, time.elapsed());
        ticks as f64 / (elapsed.as_nanos() as f64 / 1e6)
    })
}

mod collector;
mod families;
pub(crate) mod log_name;
pub(crate) mod recover;
mod scope;
#[cfg(test)]
mod tests;
