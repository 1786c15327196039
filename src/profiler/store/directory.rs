//! The directory that reports and the event log go to.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{disk, name, private};
use crate::os::held;
use crate::profiler::lock::{Lock, Rank};

/// Where the profiler may write.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Ours alone: made by this process under a name nobody can guess. Then the lock that says that its process lives.
    private: Option<Lock<Option<File>>>,
    /// What is on disk there, as it was looked up last.
    bytes: Lock<Option<(Instant, u64)>>,
}

/// What is on disk is looked up anew after this time: a status may be asked for often.
const FRESH: Duration = Duration::from_millis(500);

impl Directory {
    /// The directory that was asked for, or a private one below the system's temporary directory. Creates nothing.
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

    /// A private one below `base`.
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

    /// Makes it if it is missing, and proves that files can be written there.
    ///
    /// # Errors
    ///
    /// What the file system says; of a private directory also that somebody else's stands in its place.
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

    /// Takes over what former processes of this program have left in private directories of theirs, if this one is
    /// private; and removes what dead processes have left here and nobody can use.
    pub(crate) fn sweep(&self) {
        if self.private.is_some() {
            private::inherit(&self.path, || self.make());
        }
        disk::sweep(&self.path);
    }

    /// Bytes that heapray has on disk here, of all processes; half a second old at most.
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
            // Not empty, or never made: it stays as it is.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Makes a directory for this user alone, if it is missing.
///
/// `mkdir` follows no symbolic link and fails where there is something already, so what it made is ours; what was
/// there before must be a real directory of this user's, and closed to others.
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

/// Whether `path` is a real directory, of this user and closed to others.
///
/// # Errors
///
/// It is not, or it is not there.
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

/// Whether a file or directory belongs to this process's user and nobody else may touch it.
pub(super) fn is_ours_alone(found: &fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // This process's own user, without a system call of ours: the owner of its entry in /proc.
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
