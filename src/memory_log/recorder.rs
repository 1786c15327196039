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
use crate::capture::untracked;
use crate::config::MemoryLogConfig;
use crate::os::memory;
use crate::os::process::check_thread_start;
use crate::os::signal::BlockSignals;

/// Whether a profiler's process writes a memory log.
#[derive(Debug, Clone, Default)]
pub(crate) enum Recording {
    /// Nobody asked for one.
    #[default]
    Off,
    /// One was asked for, and cannot be: why.
    Failed(#[cfg_attr(not(feature = "http"), allow(dead_code))] Arc<str>),
    /// It is being written.
    On(Arc<Recorder>),
}

/// A log that is being written. It ends when this is dropped.
#[derive(Debug)]
#[cfg_attr(not(feature = "http"), allow(dead_code))] // what only the endpoint tells
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    config: MemoryLogConfig,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the sampler and those who mark functions share.
#[derive(Debug)]
#[cfg_attr(not(feature = "http"), allow(dead_code))]
pub(super) struct Shared {
    pid: u32,
    path: PathBuf,
    started: SystemTime,
    stop: Mutex<bool>,
    stopped: Condvar,
    /// Calls that ended and stand in no line yet.
    calls: Mutex<Vec<Function>>,
    lost_calls: AtomicU64,
    statm: File,
    /// Bytes that the latest reading was more, or less, than the resident size at that moment.
    offset: AtomicI64,
}

/// The log that is being written.
static CURRENT: RwLock<Option<Arc<Shared>>> = RwLock::new(None);

/// The process that writes a log, 0 if none does. A forked child finds its parent's number here: it has no sampler, and
/// must not touch the lock, which a thread of the parent may have held.
static WRITING: AtomicU32 = AtomicU32::new(0);

/// Calls that may wait for the sampler: some tenths of a second of a very busy service.
const MOST_CALLS: usize = 1 << 16;

impl Recording {
    /// Begins a log as `config` says. What is wrong is logged, and nothing else happens.
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
                complain(&text);
                Recording::Failed(text.into())
            }
        }
    }

    /// Ends the log, with a last reading. Nothing happens where none is written, or in a forked child.
    pub(crate) fn stop(&self) {
        if let Recording::On(recorder) = self {
            recorder.stop();
        }
    }
}

impl Recorder {
    fn start(config: &MemoryLogConfig) -> io::Result<Recorder> {
        let pid = std::process::id();
        // In a child that was forked while a log was written, the lock may be held for ever by a thread that is not here.
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
        if !self.shared.is_here() {
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
        // It panics never; were it to, the log ends there.
        let _ = thread.join();
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.shared.path
    }

    /// When the log began.
    #[cfg(feature = "http")]
    pub(crate) fn started(&self) -> SystemTime {
        self.shared.started
    }

    /// What it was told.
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

/// Starts the sampler's thread, and returns when nothing that it allocates is recorded any more. No signal of the
/// service's is ever handled on it, nor `SIGXFSZ`: a write past a limit fails.
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

/// The log that this process writes.
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

    /// Whether this is the process that writes the log, and not a child that was forked from it.
    pub(super) fn is_here(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Waits so long, or until the log is to end: then true.
    pub(super) fn rest(&self, time: Duration) -> bool {
        let rested = self
            .stopped
            .wait_timeout_while(self.stop(), time, |stop| !*stop);
        *rested.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The memory now, as the log's readings have it: the resident size, and as much more or less as the latest reading
    /// had. A mark costs microseconds, where the proportional size of a large process takes milliseconds to read.
    pub(super) fn now(&self) -> Option<Reading> {
        let rss = memory::resident_by(&self.statm).ok()?;
        let bytes = rss.saturating_add_signed(self.offset.load(Ordering::Relaxed));
        Some(Reading::of_bytes(bytes, seconds_now()))
    }

    pub(super) fn set_offset(&self, memory: u64, rss: u64) {
        self.offset
            .store(memory.wrapping_sub(rss).cast_signed(), Ordering::Relaxed);
    }

    /// Hands a call to the sampler.
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

/// Seconds since the Unix epoch.
pub(super) fn seconds_now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

/// Says what is wrong: to the service's log, or where there is none yet, on standard error.
pub(super) fn complain(text: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::error!("{text}");
    } else {
        eprintln!("heapray: {text}");
    }
}
