//! Temporary files beside results. A command that ends early, by a signal or by its memory limit, leaves none behind.
//!
//! A file is on the list before it exists, and leaves the list only when it has its final name or is gone. The code that
//! ends the process takes the list and keeps it, so that no file is made meanwhile. Only SIGKILL leaves a file behind.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, mpsc};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tempfile::NamedTempFile;

static FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn files() -> MutexGuard<'static, Vec<PathBuf>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// File that is removed unless it is kept, also if a signal ends the process.
#[derive(Debug)]
pub(crate) struct Temporary {
    /// The file, until it is dropped or kept.
    file: Option<NamedTempFile>,
}

impl Temporary {
    /// Makes an empty file beside `path`. The process's umask applies as to any other file.
    pub(crate) fn beside(path: &Path) -> io::Result<Temporary> {
        handle_signals();
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let mut files = files();
        let file = tempfile::Builder::new()
            .prefix(".heapray-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder.unwrap_or(Path::new(".")))?;
        files.push(file.path().to_path_buf());
        Ok(Temporary { file: Some(file) })
    }

    /// Returns the open file.
    pub(crate) fn file(&mut self) -> io::Result<&mut fs::File> {
        let file = self.file.as_mut().map(NamedTempFile::as_file_mut);
        file.ok_or_else(|| io::Error::other("the file is kept already"))
    }

    /// Gives the file its name once all of it is on disk. Replaces an existing file only if `force` is set.
    pub(crate) fn keep(mut self, path: &Path, force: bool) -> io::Result<()> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let temporary = file.path().to_path_buf();
        let synced = file.as_file().sync_all();
        let mut files = files();
        // A file that could not be renamed is dropped, and so removed, here.
        let kept = synced.and_then(|()| {
            let kept = if force {
                file.persist(path)
            } else {
                file.persist_noclobber(path)
            };
            kept.map(drop).map_err(|error| error.error)
        });
        files.retain(|other| *other != temporary);
        kept
    }
}

impl io::Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file()?.flush()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let temporary = file.path().to_path_buf();
            let mut files = files();
            drop(file);
            files.retain(|other| *other != temporary);
        }
    }
}

/// Removes all temporary files. No other can be made while the returned guard is held, until the process ends.
#[must_use = "the process is to end while this is held"]
pub(crate) fn remove() -> MutexGuard<'static, Vec<PathBuf>> {
    let files = files();
    for file in files.iter() {
        // The file may be gone.
        let _ = fs::remove_file(file);
    }
    files
}

/// From now on a signal that ends the process removes its temporary files first. A signal that was ignored from the start,
/// as with `nohup`, stays ignored.
fn handle_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let ignored = ignored_signals();
        let handled = [SIGHUP, SIGINT, SIGTERM]
            .into_iter()
            .filter(move |signal| ignored >> (signal - 1) & 1 == 0);
        let (tell, ready) = mpsc::channel();
        // Signals are only handled if a thread can be started: a signal must end the process in any case.
        let spawned = thread::Builder::new().spawn(move || {
            let signals = Signals::new(handled);
            // The main thread waits for it.
            let _ = tell.send(());
            if let Some(signal) = signals.ok().and_then(|mut all| all.forever().next()) {
                let _held = remove();
                // Ends the process as the signal does.
                let _ = emulate_default_handler(signal);
            }
        });
        if spawned.is_ok() {
            // Fails only if the thread has ended.
            let _ = ready.recv();
        }
    });
}

/// Returns a bit for each signal that is ignored, or 0 where the system does not report them.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
