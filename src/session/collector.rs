//! The collector that runs for a session: its thread, its event log's file, and the one place that a process has for both.

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
use crate::collector::worker::{Request, Setup, Worker};
use crate::os::{process, signal};

/// The place of the one session of the process.
#[derive(Debug)]
pub(super) struct Place;

static TAKEN: AtomicBool = AtomicBool::new(false);

impl Place {
    pub(super) fn take() -> Option<Place> {
        // Made only where it is taken: dropping one gives the place up.
        (!TAKEN.swap(true, Ordering::SeqCst)).then(|| Place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::SeqCst);
    }
}

/// A collector that runs. Dropping it ends recording without a report.
#[derive(Debug)]
pub(super) struct Collector {
    requests: SyncSender<Request>,
    thread: Option<JoinHandle<()>>,
    spool: Option<PathBuf>,
    /// Its lock, as long as nobody has decided what becomes of it.
    held: Option<File>,
    _place: Place,
}

impl Collector {
    /// Starts one. Its event log is in the file `spool`, whose lock `held` is.
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

    /// Where requests go.
    pub(super) fn requests(&self) -> &SyncSender<Request> {
        &self.requests
    }

    /// The file that holds the event log, if there is one.
    pub(super) fn spool(&self) -> Option<&Path> {
        self.spool.as_deref()
    }

    pub(super) fn take_hold(&mut self) -> Option<File> {
        self.held.take()
    }

    /// Asks for something, and waits for it.
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

    /// Hooks record no more, and no scope begins.
    pub(super) fn close(&self) {
        if control::is_forked_child() {
            return;
        }
        scope::closed();
        let _busy = Busy::enter();
        capture::end_session();
        memory::set_most(usize::MAX);
    }

    /// Waits for the end of the thread, which was asked to end or has failed.
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
        let Some(thread) = self.thread.take() else {
            return;
        };
        if control::is_forked_child() {
            // The thread is the parent's, and so is the log: there is nothing to join here, or to detach.
            let _ = ManuallyDrop::new(thread);
            return;
        }
        self.close();
        let _busy = Busy::enter();
        // Where it has failed, nobody takes that.
        let _gone = self.requests.send(Request::Abandon);
        control::wake_collector();
        drop(thread.join());
        drop(self.spool.as_ref().map(std::fs::remove_file));
    }
}

/// Starts the collector's thread, and returns when it is busy for good: what a thread allocates as it starts must not
/// be in the capture. No signal of the service's is ever handled on it.
fn spawn(worker: Worker, requests: Receiver<Request>) -> io::Result<JoinHandle<()>> {
    process::check_thread_start()?;
    let _signals = signal::BlockSignals::all();
    let (ready, is_ready) = sync_channel(1);
    let collector = std::thread::Builder::new()
        .name("heapray".to_owned())
        .spawn(move || {
            Busy::for_good();
            drop(ready);
            let run = std::panic::AssertUnwindSafe(|| worker.run(&requests));
            if std::panic::catch_unwind(run).is_err() {
                // The service runs on, unprofiled: hooks hand every call on from here.
                capture::end_session();
                memory::set_most(usize::MAX);
            }
        })?;
    // Nothing is sent: the other end is dropped.
    let _: Result<(), _> = is_ready.recv();
    Ok(collector)
}
