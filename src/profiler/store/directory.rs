//! The directory that reports and the event log go to.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{disk, name, private};
use crate::os::held;
use crate::profiler::lock::{Lock, Rank};

/// The directory that the profiler writes to.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// If the directory was made by this process under a name nobody can guess: the lock that shows that the process lives.
    private: Option<Lock<Option<File>>>,
    /// Bytes on disk there, and when they were counted.
    bytes: Lock<Option<(Instant, u64)>>,
}

/// Bytes on disk are counted again after this time: status requests may come often.
const FRESH: Duration = Duration::from_millis(500);

impl Directory {
    /// Returns the wanted directory, or a private one below the system's temporary directory. Creates nothing.
    pub(crate) fn new(wanted: Option<&Path>) -> Directory {
        match wanted {
            Some(path) => Directory {
                path: path.to_owned(),
                private: None,
                bytes: Lock::new(Rank::DiskUsage, None),
            },
            None => Directory::private_in(&std::env::temp_dir()),
        }
    }

    /// Returns a private directory below `base`.
    pub(super) fn private_in(base: &Path) -> Directory {
        Directory {
            path: base.join(private::new_name()),
            private: Some(Lock::new(Rank::PrivateDirectory, None)),
            bytes: Lock::new(Rank::DiskUsage, None),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory if it is missing, and tries that files can be written there.
    ///
    /// # Errors
    ///
    /// The file system's; for a private directory also that another user's is in its place.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        self.make()?;
        let (probe, _file) = held::create(&self.path, name::draft)?;
        match fs::remove_file(probe) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn make(&self) -> io::Result<()> {
        match &self.private {
            None => fs::create_dir_all(&self.path),
            Some(lock) => private::make(&self.path, &mut lock.lock()),
        }
    }

    /// If this directory is private, takes over what former processes of this program have left in theirs. Removes files of
    /// dead processes that nobody can use.
    pub(crate) fn sweep(&self) {
        if self.private.is_some() {
            private::inherit(&self.path, || self.make());
        }
        disk::sweep(&self.path);
    }

    /// Returns how many bytes heapray has on disk here, of all processes; at most half a second old.
    pub(crate) fn bytes(&self) -> u64 {
        let mut bytes = self.bytes.lock();
        match *bytes {
            Some((at, bytes)) if at.elapsed() < FRESH => bytes,
            _ => {
                let now = disk::bytes(&self.path);
                *bytes = Some((Instant::now(), now));
                now
            }
        }
    }

    /// Removes a private directory if nothing is in it.
    pub(crate) fn remove_if_empty(&self) {
        if self.private.is_some() {
            // Fails if it is not empty or was never made.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Makes a directory for this user alone, if it is missing.
///
/// `mkdir` does not follow a symbolic link and fails if something is there already, so a directory that it made is ours. One
/// that was there before must be a real directory that belongs to this user and is closed to others.
pub(super) fn private(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    is_private(path)
}

/// Checks that `path` is a real directory which belongs to this user and is closed to others.
///
/// # Errors
///
/// It is not, or it does not exist.
pub(super) fn is_private(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    if !is_ours_alone(&found) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the directory is open to other users",
        ));
    }
    Ok(())
}

/// Returns whether a file or directory belongs to this process's user and is closed to others.
pub(super) fn is_ours_alone(found: &fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // The owner of this process's entry in /proc is its user.
        let me = fs::metadata("/proc/self").map_or(found.uid(), |own| own.uid());
        found.uid() == me && found.mode() & 0o077 == 0
    }
    #[cfg(not(unix))]
    {
        let _ = found;
        true
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::Directory;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_default_is_private_and_new_each_time() {
        let (one, two) = (Directory::new(None), Directory::new(None));
        assert_ne!(one.path(), two.path());
        one.prepare().unwrap();
        let mode = fs::metadata(one.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        one.prepare().unwrap();
        one.remove_if_empty();
        assert!(!one.path().exists());
    }

    #[test]
    fn a_symbolic_link_in_place_of_the_private_directory_is_refused() {
        let (target, directory) = (Directory::new(None), Directory::new(None));
        target.prepare().unwrap();
        symlink(target.path(), directory.path()).unwrap();
        assert!(directory.prepare().is_err());
        fs::remove_file(directory.path()).unwrap();
        target.remove_if_empty();
    }

    #[test]
    fn a_private_directory_that_others_may_enter_is_refused() {
        let directory = Directory::new(None);
        fs::create_dir(directory.path()).unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(directory.prepare().is_err());
        directory.remove_if_empty();
    }

    #[test]
    fn a_file_in_place_of_the_directory_is_an_error() {
        let base = Directory::new(None);
        base.prepare().unwrap();
        let file = base.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(Directory::new(Some(&file)).prepare().is_err());
        assert!(Directory::new(Some(&file.join("below"))).prepare().is_err());
        assert!(
            Directory::new(Some(&base.path().join("a/b")))
                .prepare()
                .is_ok()
        );
        fs::remove_dir_all(base.path()).unwrap();
    }
}
