//! The directory that reports and the event log go to.

use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder};
use std::hash::BuildHasher;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Where the profiler may write.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Ours alone: made by this process under a name nobody can guess.
    private: bool,
}

/// Every draft's name begins so.
pub(crate) const DRAFT: &str = ".heapray-";
/// How an event log's name begins and ends.
const SPOOL: (&str, &str) = ("heapray-", ".spool");

impl Directory {
    /// The directory that was asked for, or a private one below the system's temporary directory. Creates nothing.
    pub(crate) fn new(wanted: Option<&Path>) -> Directory {
        match wanted {
            Some(path) => Directory {
                path: path.to_owned(),
                private: false,
            },
            // The hasher's keys are random, from the operating system: nobody can put something there beforehand.
            None => Directory {
                path: std::env::temp_dir().join(format!(
                    "heapray-{}-{:016x}",
                    std::process::id(),
                    RandomState::new().hash_one(0u8)
                )),
                private: true,
            },
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
        if self.private {
            private(&self.path)?;
        } else {
            fs::create_dir_all(&self.path)?;
        }
        self.remove_old_leftovers();
        let probe = self
            .path
            .join(format!("{DRAFT}{}-probe", std::process::id()));
        let written = super::file::create_draft(&probe).map(drop);
        match fs::remove_file(&probe) {
            Err(_) if written.is_err() => written,
            removed => written.and(removed),
        }
    }

    /// Drafts and event logs that a crash left behind. A volume may be shared: only what nobody has written to for a
    /// day goes, and who holds it open keeps it even so.
    fn remove_old_leftovers(&self) {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return;
        };
        let day_ago = SystemTime::now() - Duration::from_secs(24 * 60 * 60);
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let ours =
                name.starts_with(DRAFT) || name.starts_with(SPOOL.0) && name.ends_with(SPOOL.1);
            let old = || entry.metadata().and_then(|m| m.modified()).ok() < Some(day_ago);
            if ours && old() {
                // One that cannot be removed does no harm.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Removes a private directory if nothing is in it.
    pub(crate) fn remove_if_empty(&self) {
        if self.private {
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
