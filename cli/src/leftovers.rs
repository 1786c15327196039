//! Temporary files beside results: none is left behind by a command that ends early, by a signal or by its memory limit.
//!
//! A file is on the list before it exists, and leaves the list only under its own name or when it is gone. Whoever ends the
//! process takes the list and keeps it, so that no file is made meanwhile. Only SIGKILL leaves one behind.

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

/// A file that is removed unless it is kept, also where a signal ends the process.
#[derive(Debug)]
pub(crate) struct Temporary {
    /// Something but when it is dropped or kept.
    file: Option<NamedTempFile>,
}

impl Temporary {
    /// An empty file beside `path`. The process's umask applies to it as to any other.
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

    /// The open file.
    pub(crate) fn file(&mut self) -> io::Result<&mut fs::File> {
        let file = self.file.as_mut().map(NamedTempFile::as_file_mut);
        file.ok_or_else(|| io::Error::other("the file is kept already"))
    }

    /// Gives it its name once all of it is on disk; replaces what is there only if `force` says so.
    pub(crate) fn keep(mut self, path: &Path, force: bool) -> io::Result<()> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let temporary = file.path().to_path_buf();
        let synced = file.as_file().sync_all();
        let mut files = files();
        // One that could not be named is removed when it is dropped, here.
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

/// Removes all of them. No other is made while the list is held: until the process has ended.
#[must_use = "the process is to end while this is held"]
pub(crate) fn remove() -> MutexGuard<'static, Vec<PathBuf>> {
    let files = files();
    for file in files.iter() {
        // It may be gone.
        let _ = fs::remove_file(file);
    }
    files
}

/// From now on a signal that ends the process removes its temporary files first. One that was ignored from the start, as
/// `nohup` has it, stays so.
fn handle_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let ignored = ignored_signals();
        let handled = [SIGHUP, SIGINT, SIGTERM]
            .into_iter()
            .filter(move |signal| ignored >> (signal - 1) & 1 == 0);
        let (tell, ready) = mpsc::channel();
        // Handled only where there is a thread for it: a signal must end the process in any case.
        let spawned = thread::Builder::new().spawn(move || {
            let signals = Signals::new(handled);
            // Somebody waits for it.
            let _ = tell.send(());
            if let Some(signal) = signals.ok().and_then(|mut all| all.forever().next()) {
                let _held = remove();
                // Ends the process as the signal does.
                let _ = emulate_default_handler(signal);
            }
        });
        if spawned.is_ok() {
            // Fails only where the thread has ended.
            let _ = ready.recv();
        }
    });
}

/// A bit for each signal that is ignored; none where the system does not tell.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
