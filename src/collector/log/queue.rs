//! Blocks on their way to the log's file. A thread of its own compresses and writes them, so that a disk that stalls holds up
//! neither the collector nor the service.

use std::fs::File;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::block::BUFFER;
use super::disk::Patience;
use super::file::LogFile;
use crate::capture::{arch, room};
use crate::collector::snapshot::EventLog;
use crate::collector::thread;
use crate::os::process::thread_runs;

/// Largest memory of the blocks that wait: some eight million events.
const MOST_MEMORY: u64 = 32 << 20;
/// Number of empty buffers that are kept for the next blocks.
const SPARE: usize = 2;
/// Pause between two attempts to put something into a full queue.
const PAUSE: Duration = Duration::from_millis(1);
/// Longest wait for the last blocks of a log that is to be read.
const LONGEST_END: Duration = Duration::from_secs(10);

/// What the thread is to do.
#[derive(Debug)]
enum Job {
    /// Write a block of so many events, or of names if there are none.
    Write(Vec<u8>, u32),
    /// Tell what is in the file by now.
    Tell(SyncSender<EventLog>),
    /// Wait until the other end is dropped.
    #[cfg(test)]
    Stall(Receiver<()>),
}

/// What both ends of the queue know.
#[derive(Debug, Default)]
struct Shared {
    given_up: OnceLock<String>,
    /// Number of the thread, or 0 before it has begun.
    tid: AtomicU32,
    /// CPU time of the thread, in nanoseconds.
    cpu_ns: AtomicU64,
    /// Bytes of the file.
    bytes: AtomicU64,
    /// Memory of the thread.
    file_memory: AtomicUsize,
    /// Memory of the blocks that the thread has dropped.
    dropped: AtomicUsize,
}

impl Shared {
    /// Gives the log up. The first reason stays.
    fn give_up(&self, reason: String) {
        let _first = self.given_up.set(reason);
    }

    fn reason(&self) -> String {
        let reason = self.given_up.get().cloned();
        reason.unwrap_or_else(|| "the thread that writes it has failed".to_owned())
    }
}

/// The collector's end of the queue.
#[derive(Debug)]
pub(super) struct Queue {
    /// `None` once the log is given up.
    ends: Option<Ends>,
    /// Memory of the blocks that the thread was given and has not given back.
    given: usize,
    patience: Patience,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Ends {
    jobs: SyncSender<Job>,
    spare: Receiver<Vec<u8>>,
}

impl Queue {
    /// Starts the thread, which writes to `file`, at most `limit` bytes. If it cannot be started, the log is given up. The
    /// blocks that wait take at most `memory` bytes.
    pub(super) fn start(file: File, limit: u64, memory: u64) -> Queue {
        let shared = Arc::new(Shared::default());
        let length = memory.min(MOST_MEMORY) as usize / BUFFER;
        let (jobs, to_do) = sync_channel(length.max(1));
        let (empty, spare) = sync_channel(SPARE);
        let writer = Writer {
            file: LogFile::new(file, limit),
            to_do,
            empty,
            shared: Arc::clone(&shared),
        };
        let ends = match thread::start("heapray-log", || writer.run()) {
            // It is never waited for: its disk may not answer. It ends once the queue is closed and empty.
            Ok(_detached) => Some(Ends { jobs, spare }),
            Err(error) => {
                shared.give_up(format!("its thread cannot be started: {error}"));
                None
            }
        };
        Queue {
            ends,
            given: 0,
            patience: Patience::new(),
            shared,
        }
    }

    /// Puts in a block as [`LogFile::append`] takes it. Gives the log up if the disk is too slow.
    pub(super) fn put(&mut self, block: Vec<u8>, events: u32) {
        let memory = block.capacity();
        if self.send(Job::Write(block, events)) {
            self.given += memory;
        }
    }

    #[cfg(test)]
    pub(super) fn stall(&mut self, until: Receiver<()>) {
        self.send(Job::Stall(until));
    }

    /// Returns a promise of what is in the file as soon as everything that was put in is there.
    pub(super) fn ask(&mut self) -> PendingLog {
        let (tell, told) = sync_channel(1);
        // If it cannot be sent, it is dropped, and the promise has the reason.
        let _sent = self.send(Job::Tell(tell));
        PendingLog {
            told,
            shared: Arc::clone(&self.shared),
            pairs: Arc::default(),
        }
    }

    /// Returns a buffer of [`BUFFER`] bytes.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        let spare = self.ends.as_ref().map(|ends| ends.spare.try_recv());
        let Some(Ok(mut buffer)) = spare else {
            return vec![0; BUFFER];
        };
        self.given -= buffer.capacity();
        buffer.resize(BUFFER, 0);
        buffer
    }

    /// Sends a job. Returns false if the log was given up.
    fn send(&mut self, job: Job) -> bool {
        if self.given_up().is_some() {
            self.ends = None;
        }
        let Some(ends) = &self.ends else {
            return false;
        };
        match send(ends, job, &self.shared, &mut self.patience) {
            Ok(()) => true,
            Err(reason) => {
                self.give_up(reason);
                false
            }
        }
    }

    /// Gives the log up. The first reason stays.
    pub(super) fn give_up(&mut self, reason: String) {
        self.shared.give_up(reason);
        self.ends = None;
    }

    /// Returns the reason why the log was given up, if it was.
    pub(super) fn given_up(&self) -> Option<&str> {
        self.shared.given_up.get().map(String::as_str)
    }

    /// Returns the bytes of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Returns the CPU time of the thread, in nanoseconds.
    pub(super) fn cpu_ns(&self) -> u64 {
        self.shared.cpu_ns.load(Ordering::Relaxed)
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        let blocks = self.given.saturating_sub(dropped);
        blocks + self.shared.file_memory.load(Ordering::Relaxed)
    }
}

/// Sends a job. If the queue is full, waits as long as the disk may be waited for.
fn send(ends: &Ends, job: Job, shared: &Shared, patience: &mut Patience) -> Result<(), String> {
    let Err(mut rest) = ends.jobs.try_send(job) else {
        return Ok(());
    };
    let mut since = Instant::now();
    let mut wait = patience.begin(since);
    loop {
        let job = match rest {
            TrySendError::Full(job) => job,
            TrySendError::Disconnected(_) => return Err(shared.reason()),
        };
        std::thread::sleep(PAUSE);
        // A thread that only needs a processor gets it once the threads of the service wait, too.
        let is_at_work = thread_runs(shared.tid.load(Ordering::Relaxed)) == Some(true);
        let now = Instant::now();
        if !is_at_work {
            wait.add(now - since, room::is_awaited())?;
        }
        since = now;
        match ends.jobs.try_send(job) {
            Ok(()) => return Ok(()),
            Err(again) => rest = again,
        }
    }
}

/// A promise of the event log as it was when it was asked for. It is kept when all of it is in the file.
#[derive(Debug)]
pub struct PendingLog {
    told: Receiver<EventLog>,
    shared: Arc<Shared>,
    /// As in [`EventLog::pairs`].
    pub(in crate::collector) pairs: Arc<Vec<(u32, u32)>>,
}

impl PendingLog {
    /// Waits for the log.
    ///
    /// # Errors
    /// The reason why there is no log any more. That its disk does not answer is one.
    pub fn wait(self) -> Result<EventLog, String> {
        self.wait_for(LONGEST_END)
    }

    pub(super) fn wait_for(self, longest: Duration) -> Result<EventLog, String> {
        match self.told.recv_timeout(longest) {
            Ok(log) => Ok(EventLog {
                pairs: self.pairs,
                ..log
            }),
            Err(error) => {
                if error == RecvTimeoutError::Timeout {
                    self.shared.give_up("its disk does not answer".to_owned());
                }
                Err(self.shared.reason())
            }
        }
    }
}

/// The thread's end of the queue.
struct Writer {
    file: LogFile,
    to_do: Receiver<Job>,
    empty: SyncSender<Vec<u8>>,
    shared: Arc<Shared>,
}

impl Writer {
    /// Works until the other end is dropped, or the log is given up.
    fn run(mut self) {
        self.shared.tid.store(arch::gettid(), Ordering::Relaxed);
        while let Ok(job) = self.to_do.recv() {
            if self.shared.given_up.get().is_some() {
                break;
            }
            match job {
                #[cfg(test)]
                Job::Stall(until) => drop(until.recv()),
                Job::Tell(tell) => drop(tell.try_send(self.file.written())),
                Job::Write(mut block, events) => {
                    if let Err(reason) = self.file.append(&mut block, events) {
                        self.shared.give_up(reason);
                        break;
                    }
                    self.note();
                    self.give_back(block);
                }
            }
        }
        let Writer { to_do, shared, .. } = self;
        // The blocks that nobody writes any more go with it.
        drop(to_do);
        shared.dropped.store(usize::MAX, Ordering::Relaxed);
        shared.file_memory.store(0, Ordering::Relaxed);
    }

    fn note(&self) {
        let (shared, file) = (&self.shared, &self.file);
        shared
            .cpu_ns
            .store(arch::thread_cpu_ns(), Ordering::Relaxed);
        shared.bytes.store(file.bytes(), Ordering::Relaxed);
        let memory = file.memory_bytes();
        shared.file_memory.store(memory, Ordering::Relaxed);
    }

    /// Gives the buffer of a block back, unless there are enough.
    fn give_back(&self, block: Vec<u8>) {
        let bytes = block.capacity();
        if bytes < BUFFER || self.empty.try_send(block).is_err() {
            self.shared.dropped.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}
