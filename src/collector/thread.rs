//! Starts the collector's threads.

use std::io;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, JoinHandle};

use crate::capture::thread::Busy;
use crate::os::{process, signal};

/// Starts a thread that is busy until it ends, and returns when it is marked busy: the allocations of a starting thread must
/// not be recorded. The thread never handles a signal of the service.
///
/// # Errors
/// The system's.
pub(crate) fn start(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    process::check_thread_start()?;
    let _signals = signal::BlockSignals::all();
    let (ready, is_ready) = sync_channel::<()>(1);
    let thread = Builder::new().name(name.to_owned()).spawn(move || {
        Busy::for_good();
        drop(ready);
        work();
    })?;
    // The thread sends nothing, but drops its end of the channel.
    let _: Result<(), _> = is_ready.recv();
    Ok(thread)
}
