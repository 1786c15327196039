//! The process's memory log: begun by `init`, ended by `shutdown`, one at a time.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use heapray_report::memory_log::{Function, Reading};

use super::sampler::Sampler;
use super::{LogFile, Probe};
use crate::announce;
use crate::capture::untracked;
use crate::config::MemoryLogConfig;
use crate::os::memory;
use crate::os::process::check_thread_start;
use crate::os::signal::BlockSignals;

/// State of a profiler's memory log.
#[derive(Debug, Clone, Default)]
pub(crate) enum Recording {
    /// No memory log is wanted.
    #[default]
    Off,
    /// A memory log is wanted, but impossible for this reason.
    Failed(#[cfg_attr(not(feature = "http"), allow(dead_code))] Arc<str>),
    /// The memory log is being written.
    On(Arc<Recorder>),
}

/// Log that is being written. Dropping it ends the log.
#[derive(Debug)]
#[cfg_attr(not(feature = "http"), allow(dead_code))] // used by the endpoint only
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    config: MemoryLogConfig,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// State that the sampler and the marked functions share.
#[derive(Debug)]
#[cfg_attr(not(feature = "http"), allow(dead_code))]
pub(super) struct Shared {
    pid: u32,
    path: PathBuf,
    started: SystemTime,
    stop: Mutex<bool>,
    stopped: Condvar,
    /// Finished calls that are not written yet.
    calls: Mutex<Vec<Function>>,
    lost_calls: AtomicU64,
    statm: File,
    /// Difference between the latest reading and the resident size at that moment, in bytes.
    offset: AtomicI64,
}

/// The log that is being written.
static CURRENT: RwLock<Option<Arc<Shared>>> = RwLock::new(None);

/// Number of the process that writes a log, or 0. A forked child finds its parent's number here. It has no sampler, and must
/// not touch the lock, which a thread of the parent may have held.
static WRITING: AtomicU32 = AtomicU32::new(0);

/// Largest number of calls that wait for the sampler: some tenths of a second of a very busy service.
const MOST_CALLS: usize = 1 << 16;

impl Recording {
    /// Begins a log with the settings of `config`. An error is logged and has no other effect.
    pub(crate) fn start(config: Option<&MemoryLogConfig>) -> Recording {
        let Some(config) = config else {
            return Recording::Off;
        };
        let _untracked = untracked::enter();
        match Recorder::start(config) {
            Ok(recorder) => {
                tracing::info!(path = %recorder.shared.path.display(), "memory over time is being written");
                Recording::On(Arc::new(recorder))
            }
            Err(error) => {
                let text = format!(
                    "there is no memory log: nothing can be written to {} ({error}); \
                     MEMRAY_PROFILER_MEMORY_DIR names another directory",
                    config.dir.display()
                );
                announce::error(&text);
                Recording::Failed(text.into())
            }
        }
    }

    /// Ends the log with a last reading. Does nothing if no log is written, or in a forked child.
    pub(crate) fn stop(&self) {
        if let Recording::On(recorder) = self {
            recorder.stop();
        }
    }
}

impl Recorder {
    fn start(config: &MemoryLogConfig) -> io::Result<Recorder> {
        let pid = std::process::id();
        // In a child that was forked while a log was written, a thread that does not exist here may hold the lock forever.
        if WRITING.load(Ordering::SeqCst) != 0 {
            return Err(io::Error::other(
                "this process, or its parent, writes one already",
            ));
        }
        let mut current = CURRENT.write().unwrap_or_else(PoisonError::into_inner);
        if current.is_some() {
            return Err(io::Error::other("this process writes one already"));
        }
        let probe = Probe::new(pid, config.children, config.metric)?;
        let statm = File::open("/proc/self/statm")?;
        let file = LogFile::create_in(&config.dir, config.role)?;
        let shared = Arc::new(Shared {
            pid,
            path: file.path().to_owned(),
            started: SystemTime::now(),
            stop: Mutex::new(false),
            stopped: Condvar::new(),
            calls: Mutex::default(),
            lost_calls: AtomicU64::new(0),
            statm,
            offset: AtomicI64::new(0),
        });
        let sampler = Sampler::new(Arc::clone(&shared), probe, file, config);
        let thread = spawn(sampler).inspect_err(|_| drop(std::fs::remove_file(&shared.path)))?;
        *current = Some(Arc::clone(&shared));
        WRITING.store(pid, Ordering::SeqCst);
        Ok(Recorder {
            shared,
            config: config.clone(),
            thread: Mutex::new(Some(thread)),
        })
    }

    fn stop(&self) {
        if !self.shared.is_writer() {
            return;
        }
        let _untracked = untracked::enter();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(thread) = thread else {
            return;
        };
        WRITING.store(0, Ordering::SeqCst);
        *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = None;
        *self.shared.stop() = true;
        self.shared.stopped.notify_all();
        // The sampler does not panic. If it did, the log would end there.
        let _ = thread.join();
    }

    /// Returns the file.
    pub(crate) fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Returns the time at which the log began.
    #[cfg(feature = "http")]
    pub(crate) fn started(&self) -> SystemTime {
        self.shared.started
    }

    /// Returns the settings.
    #[cfg(feature = "http")]
    pub(crate) fn config(&self) -> &MemoryLogConfig {
        &self.config
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts the sampler's thread, and returns when its allocations are no longer recorded. The thread never handles a signal
/// of the service's, nor `SIGXFSZ`: a write past a limit fails.
fn spawn(sampler: Sampler) -> io::Result<JoinHandle<()>> {
    check_thread_start()?;
    let _signals = BlockSignals::all();
    let (ready, is_ready) = sync_channel::<()>(0);
    let thread = thread::Builder::new()
        .name("heapray-memory".to_owned())
        .spawn(move || {
            untracked::for_good();
            drop(ready);
            sampler.run();
        })?;
    // Nothing is sent: the other end is dropped.
    let _ = is_ready.recv();
    Ok(thread)
}

/// Returns the log that this process writes.
#[inline]
pub(super) fn current() -> Option<Arc<Shared>> {
    let writing = WRITING.load(Ordering::Relaxed);
    if writing == 0 || writing != std::process::id() {
        return None;
    }
    let current = CURRENT.read().unwrap_or_else(PoisonError::into_inner);
    current.clone()
}

impl Shared {
    fn stop(&self) -> MutexGuard<'_, bool> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether this process writes the log, and is not a child that was forked from the writer.
    pub(super) fn is_writer(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Waits for `time`, or until the log is to end; returns true in the second case.
    pub(super) fn wait(&self, time: Duration) -> bool {
        let rested = self
            .stopped
            .wait_timeout_while(self.stop(), time, |stop| !*stop);
        *rested.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Returns the present memory in the log's measure: the resident size, corrected by the difference of the latest
    /// reading. So a mark costs microseconds. Reading the proportional size of a large process would take milliseconds.
    pub(super) fn now(&self) -> Option<Reading> {
        let rss = memory::resident_by(&self.statm).ok()?;
        let bytes = rss.saturating_add_signed(self.offset.load(Ordering::Relaxed));
        Some(Reading::of_bytes(bytes, seconds_now()))
    }

    pub(super) fn set_offset(&self, memory: u64, rss: u64) {
        self.offset
            .store(memory.wrapping_sub(rss).cast_signed(), Ordering::Relaxed);
    }

    /// Passes a call to the sampler.
    pub(super) fn enter(&self, call: Function) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() < MOST_CALLS {
            calls.push(call);
        } else {
            self.lost_calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn take_calls(&self) -> (Vec<Function>, u64) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = std::mem::take(&mut *calls);
        (taken, self.lost_calls.swap(0, Ordering::Relaxed))
    }
}

/// Returns the seconds since the Unix epoch.
pub(super) fn seconds_now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}
