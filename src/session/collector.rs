//! The running collector of a session: its thread, its event log's file, and the process's only place for a session.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::{SessionError, scope};
use crate::capture::thread::Busy;
use crate::capture::{self, control, memory};
use crate::collector::thread;
use crate::collector::worker::{Request, Setup, Worker};

/// The process's place for a session. At most one exists at a time.
#[derive(Debug)]
pub(super) struct Place;

static TAKEN: AtomicBool = AtomicBool::new(false);

impl Place {
    pub(super) fn take() -> Option<Place> {
        // `then`, not `then_some`: dropping a `Place` gives the place up, so none must exist if it was not taken.
        (!TAKEN.swap(true, Ordering::SeqCst)).then(|| Place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::SeqCst);
    }
}

/// A running collector. Dropping it ends recording without a report.
#[derive(Debug)]
pub(super) struct Collector {
    requests: SyncSender<Request>,
    thread: Option<JoinHandle<()>>,
    spool: Option<PathBuf>,
    /// A file that holds the event log's lock, until [`take_hold`](Collector::take_hold).
    held: Option<File>,
    _place: Place,
}

impl Collector {
    /// Starts a collector. Its event log is the file `spool`, and `held` holds the lock of that file.
    pub(super) fn start(
        setup: Setup,
        spool: Option<PathBuf>,
        held: Option<File>,
        place: Place,
    ) -> io::Result<Collector> {
        let (requests, receiver) = sync_channel(16);
        let thread = spawn(Worker::new(setup), receiver)
            .inspect_err(|_| drop(spool.as_ref().map(std::fs::remove_file)))?;
        Ok(Collector {
            requests,
            thread: Some(thread),
            spool,
            held,
            _place: place,
        })
    }

    /// Returns the channel for requests.
    pub(super) fn requests(&self) -> &SyncSender<Request> {
        &self.requests
    }

    /// Returns the path of the event log, if the session has one.
    pub(super) fn spool(&self) -> Option<&Path> {
        self.spool.as_deref()
    }

    pub(super) fn take_hold(&mut self) -> Option<File> {
        self.held.take()
    }

    /// Sends a request, and waits for the answer.
    pub(super) fn ask<T>(
        &self,
        request: impl FnOnce(SyncSender<T>) -> Request,
    ) -> Result<T, SessionError> {
        if control::is_forked_child() {
            return Err(SessionError);
        }
        let _busy = Busy::enter();
        let (answer, answered) = sync_channel(1);
        self.requests
            .send(request(answer))
            .map_err(|_| SessionError)?;
        control::wake_collector();
        answered.recv().map_err(|_| SessionError)
    }

    /// Ends recording. No scope can begin after it.
    pub(super) fn close(&self) {
        if control::is_forked_child() {
            return;
        }
        scope::closed();
        let _busy = Busy::enter();
        end_recording();
    }

    /// Waits for the end of the thread. It has failed, or a request to end was sent.
    pub(super) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _busy = Busy::enter();
            drop(thread.join());
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // After `Session::stop`, the thread has ended and everything is closed.
        if self.thread.is_none() {
            return;
        }
        if control::is_forked_child() {
            // Thread and event log belong to the parent. This process has no thread to join or to detach.
            let _ = ManuallyDrop::new(self.thread.take());
            return;
        }
        self.close();
        let _busy = Busy::enter();
        // Sending fails if the thread has failed.
        let _gone = self.requests.send(Request::Abandon);
        control::wake_collector();
        self.join();
        drop(self.spool.as_ref().map(std::fs::remove_file));
    }
}

/// Ends recording, and with it the limit on the memory of the tables.
fn end_recording() {
    capture::end_session();
    memory::set_most(usize::MAX);
}

/// Starts the collector's thread.
fn spawn(worker: Worker, requests: Receiver<Request>) -> io::Result<JoinHandle<()>> {
    thread::start("heapray", move || {
        let run = std::panic::AssertUnwindSafe(|| worker.run(&requests));
        if std::panic::catch_unwind(run).is_err() {
            // The service goes on without a profiler: from now on, hooks only forward calls.
            end_recording();
        }
    })
}
