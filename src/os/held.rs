//! Files that belong to a live process: the process that made a file holds its lock (flock(2)), and the kernel releases the
//! lock with the process, however it ends. So files that a killed process has left are recognized at once, even if another
//! process, in any container, has the same number.
//!
//! If the file system has no such locks, or another kernel may use the files and not see them, only the age decides: the
//! owner of a file that was not written for a day counts as dead.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::os::file;

/// Number of names that are tried for a new file.
const NAMES: u32 = 100;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Result of trying to take a file's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lock {
    Taken,
    /// Another process has the lock.
    Held,
    /// The file system does not support such locks.
    Unknown,
}

fn try_lock(file: &File) -> Lock {
    if file::try_lock_file(file.as_raw_fd()) {
        return Lock::Taken;
    }
    match io::Error::last_os_error().kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Lock::Held,
        _ => Lock::Unknown,
    }
}

/// Creates a new, empty file for this user alone in `directory`, under the first free name, and takes its lock. The lock
/// lasts as long as the file is open, here or in a clone.
pub(crate) fn create(directory: &Path, name: impl Fn() -> String) -> io::Result<(PathBuf, File)> {
    let mut last = io::ErrorKind::AlreadyExists.into();
    for _ in 0..NAMES {
        let path = directory.join(name());
        match create_at(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            made => return made,
        }
    }
    Err(last)
}

/// Does what [`create`] does, under one given name.
pub(crate) fn create_at(path: &Path) -> io::Result<(PathBuf, File)> {
    let file = create_new(path)?;
    if hold(&file) {
        return Ok((path.to_owned(), file));
    }
    // Between creation and locking, another process that clears up may have taken the file for a dead process's.
    let _ = fs::remove_file(path);
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Takes the lock of a file that was just created. Returns false if another process took the file for a dead process's.
fn hold(file: &File) -> bool {
    try_lock(file) != Lock::Held && is_named(file)
}

/// Creates a new file for this user alone. Fails if the name exists, even as a dangling link.
fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens the file at `path` and takes its lock, if no other process has it any more. Neither follows a link nor waits for a
/// pipe.
pub(crate) fn claim(path: &Path) -> Option<File> {
    let file = open(path, true).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() {
        return None;
    }
    // The file may have been removed meanwhile, and another one may have its name now.
    (is_left(&file, &found) && is_named(&file)).then_some(file)
}

/// Returns whether no process has `file` any more. Takes its lock if the file system has locks.
fn is_left(file: &File, found: &fs::Metadata) -> bool {
    let modified = found.modified().ok();
    let old = modified.is_some_and(|at| at < SystemTime::now() - DAY);
    let shared = || file::is_shared_between_kernels(file.as_raw_fd());
    try_lock(file).is_left_by_age(shared, old)
}

impl Lock {
    fn is_left_by_age(self, shared: impl Fn() -> bool, old: bool) -> bool {
        match self {
            Lock::Held => false,
            Lock::Taken => old || !shared(),
            Lock::Unknown => old,
        }
    }
}

/// Takes the lock of a directory of this process's own. Waits for a process that clears up, which holds the lock only for
/// moments.
pub(crate) fn hold_directory(directory: &File) -> bool {
    for _ in 0..1000 {
        if try_lock(directory) != Lock::Held {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// Opens the directory at `path` and takes its lock, if its owner does not live any more; see [`claim`].
pub(crate) fn claim_directory(path: &Path) -> Option<File> {
    let directory = open(path, false).ok()?;
    let found = directory.metadata().ok()?;
    (found.is_dir() && is_left(&directory, &found)).then_some(directory)
}

/// Returns whether another process, or another profiler of this one, has the file at `path`.
pub(crate) fn is_held(path: &Path) -> bool {
    let file = open(path, false);
    file.is_ok_and(|file| try_lock(&file) == Lock::Held)
}

/// Opens a file. A link or a pipe in its place must neither lead elsewhere nor block.
fn open(path: &Path, write: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(write);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NOFOLLOW | libc::O_NONBLOCK,
    );
    options.open(path)
}

fn is_named(file: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        file.metadata().is_ok_and(|found| found.nlink() > 0)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        true
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)] // clippy knows only functions marked as tests
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("heapray-held-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn where_locks_do_not_reach_everybody_only_age_tells() {
        for (lock, shared, of_today, of_yesterday) in [
            (Lock::Held, false, false, false),
            (Lock::Held, true, false, false),
            (Lock::Taken, false, true, true),
            (Lock::Taken, true, false, true),
            (Lock::Unknown, false, false, true),
            (Lock::Unknown, true, false, true),
        ] {
            let is_left = |old| lock.is_left_by_age(|| shared, old);
            let found = (is_left(false), is_left(true));
            assert_eq!(found, (of_today, of_yesterday), "{lock:?} {shared}");
        }
    }

    #[test]
    fn a_name_that_somebody_has_is_not_taken() {
        let directory = directory("names");
        fs::write(directory.join("0"), "somebody's").unwrap();
        fs::write(directory.join("1"), "somebody's").unwrap();
        let next = AtomicU32::new(0);
        let name = || next.fetch_add(1, Ordering::Relaxed).to_string();
        let (path, _file) = create(&directory, name).unwrap();
        assert_eq!(path, directory.join("2"));
        let error = create(&directory, || "0".to_owned()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(directory.join("0")).unwrap(), b"somebody's");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_file_is_claimed_once_its_owner_has_closed_it_and_by_one_alone() {
        let directory = directory("claims");
        let (path, file) = create(&directory, || "file".to_owned()).unwrap();
        let clone = file.try_clone().unwrap();
        drop(file);
        assert!(claim(&path).is_none() && is_held(&path));
        drop(clone);
        let claimed = claim(&path).unwrap();
        assert!(claim(&path).is_none());
        drop(claimed);
        assert!(!is_held(&path));
        std::os::unix::fs::symlink(&path, directory.join("link")).unwrap();
        assert!(claim(&directory.join("link")).is_none());
        assert!(claim(&directory).is_none());
        assert!(claim(&directory.join("nothing")).is_none());
        fs::remove_dir_all(directory).unwrap();
    }
}
