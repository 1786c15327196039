//! One capture: from hooks going in to hooks coming out, with the collector between.
//!
//! ```text
//!              start                                  stop
//!   (nothing) ───────▶ collector runs, entries patched ─────▶ entries restored, last view taken, collector ends
//! ```
//!
//! A process has one session at a time. Starting again begins a new one, which knows nothing of the former's blocks.

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
use crate::collector::snapshot::{Hooks, Snapshot};
pub use crate::collector::worker::Counters;
use crate::collector::worker::{Request, Setup, Visibility};
use crate::os::command_line;
use crate::os::held;
use collector::{Collector, Place};
use heapray_report::model::Mark;
pub use scope::ActiveScope;

/// Where a session keeps its event log.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// An existing directory that this process can write.
    pub spool_dir: PathBuf,
    /// Bytes after which the event log is given up.
    pub log_limit: u64,
    /// Bytes that heapray's own memory may come to, the making of reports included. Where that is reached, new call stacks
    /// are cut nearer to the root; where live blocks alone reach it, recording ends.
    pub overhead_limit: u64,
    /// Records samples only, one each so many bytes on average, and no event log; 0 records every allocation.
    pub sample: u64,
}

/// Why no session could be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// A session is under way.
    AlreadyRecording,
    /// This process was forked from one that had a profiler; what it allocates belongs to neither report.
    ForkedChild,
    /// The process's memory is limited, and too little of it is left for the profiler's tables: why.
    Memory(String),
    /// Neither way of seeing allocations sees those of Rust code.
    NothingVisible,
    /// The spool file could not be made.
    Spool {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The collector's thread could not be started, or a thread key was not to be had.
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
                    "this process was forked from a profiled one and does not record; start the profiler in a process of its own"
                )
            }
            StartError::Memory(shortage) => {
                write!(f, "there is no memory to record in: {shortage}")
            }
            StartError::NothingVisible => write!(
                f,
                "this program's allocations can't be seen: it does not call the system's malloc through a dynamic \
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

/// The collector is gone: it failed, or this is a forked child.
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

/// The running capture. Dropping it ends the capture without a report.
#[derive(Debug)]
pub struct Session {
    collector: Collector,
    sample: u64,
    visibility: Visibility,
}

/// The last session's number.
static LAST: AtomicU32 = AtomicU32::new(0);

impl Session {
    /// Starts recording. Hooks are in place when it returns.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is left behind, and the process runs on as it was.
    pub fn start(options: &SessionOptions) -> Result<Session, StartError> {
        Session::start_observed(options, Observer::nobody())
    }

    /// As [`start`](Session::start), with somebody who is told what the session has to tell without being asked.
    ///
    /// # Errors
    /// Those of [`start`](Session::start).
    pub fn start_observed(
        options: &SessionOptions,
        observer: Observer,
    ) -> Result<Session, StartError> {
        // Samples are not a log of every event.
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
        // Without a descriptor for it, the collector's own holds the lock while that runs.
        let held = spool.as_ref().and_then(|file| file.try_clone().ok());

        modules::refresh();
        let ticks_per_ms = ticks_per_ms();
        let (started, start_stamp) = (SystemTime::now(), clock::stamp());
        // Its keys are the system's random numbers.
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
        // A barrier that is refused by now is to be known before hooks rely on it.
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

    /// Where the capture stands.
    ///
    /// # Errors
    /// The collector is gone.
    pub fn counters(&self) -> Result<Counters, SessionError> {
        self.ask_seeing(Request::Counters)
    }

    /// What limits what this session sees.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.visibility.notes
    }

    /// Names the present moment. `None` where a session has as many marks as it takes.
    ///
    /// # Errors
    /// The collector is gone.
    pub fn mark(&self, name: &str) -> Result<Option<Mark>, SessionError> {
        self.collector
            .ask(|answer| Request::Mark(name.to_owned(), answer))
    }

    /// As [`snapshot`](Session::snapshot), but with the `sites` call sites with the most live bytes alone, and
    /// without the log: what can be asked for every second.
    ///
    /// # Errors
    /// The collector is gone.
    pub fn top(&self, sites: usize) -> Result<Snapshot, SessionError> {
        self.ask_seeing(|visibility, answer| Request::Top(sites, visibility, answer))
    }

    /// A consistent view up to now; recording goes on.
    ///
    /// # Errors
    /// The collector is gone.
    pub fn snapshot(&self) -> Result<Snapshot, SessionError> {
        self.ask_seeing(Request::Snapshot)
    }

    /// Ends recording: the original pointers are back when it returns. The spool file stays until the snapshot's user
    /// removes it.
    ///
    /// # Errors
    /// The collector is gone.
    pub fn stop(mut self) -> Result<Snapshot, SessionError> {
        if control::is_forked_child() {
            return Err(SessionError);
        }
        self.collector.close();
        let left = hook::patched();
        if left != 0 {
            self.visibility.notes.push(format!(
                "{left} words that point to heapray's entries could not be put back, since the system does not let their \
                 pages be written (a seccomp filter?): those calls go on through heapray, and nothing is recorded"
            ));
        }
        let snapshot = self.ask_seeing(Request::Stop);
        self.collector.join();
        snapshot
    }

    /// Samples with a point each `mean` bytes on average from now on. Only for a session that samples already.
    ///
    /// # Errors
    /// The collector is gone.
    pub fn resample(&mut self, mean: u64) -> Result<(), SessionError> {
        self.collector
            .ask(|answer| Request::Resample(mean, answer))?;
        self.sample = mean;
        Ok(())
    }

    /// Bytes between two samples, on average; 0 if every allocation is recorded.
    #[must_use]
    pub fn sample(&self) -> u64 {
        self.sample
    }

    /// The file that holds the event log, if there is one.
    #[must_use]
    pub fn spool(&self) -> Option<&Path> {
        self.collector.spool()
    }

    /// What holds the event log's lock, as the collector does: as long as it lives, no other process takes the log for
    /// one that a dead process has left.
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

/// The event log's file, with a lock that tells other processes that this one lives.
fn create_spool(directory: &Path, session: u32) -> Result<(PathBuf, File), StartError> {
    let name = log_name::new_names(session);
    held::create(directory, &name).map_err(|source| StartError::Spool {
        path: directory.join(name()),
        source,
    })
}

/// Who sees an allocation of Rust code: bits of [`seen`].
fn probe() -> u8 {
    // Who maps memory for the block does not see the block.
    record::probe(|| drop(black_box(Box::new(black_box(0_u64))))) & (seen::GOT | seen::GLOBAL)
}

/// How fast stamps go, measured once against the monotonic clock.
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
