//! Event logs that dead processes have left. One process at a time claims a log, recovers and removes it, or renames it for
//! `heapray recover`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{self, Found, What};
use super::name::Passing;
use crate::os::held;
use crate::session::log_name::{self, LogName};

/// An event log whose process is dead. Nobody else can claim it as long as this lives.
#[derive(Debug)]
pub(crate) struct Leftover {
    path: PathBuf,
    /// The file, which is also its lock.
    file: Arc<File>,
}

/// Returns the paths of the event logs in `directory` that are to be recovered; the latest first.
pub(crate) fn leftovers(directory: &Path) -> Vec<PathBuf> {
    let waiting = |found: &Found| {
        matches!(
            found.what,
            What::Passing(Passing::Log(LogName { kept: false, .. }))
        )
    };
    let mut found: Vec<Found> = disk::scan(directory).into_iter().filter(waiting).collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.modified));
    found.into_iter().map(|found| found.path).collect()
}

impl Leftover {
    /// Claims the event log at `path`, if its process is dead and nobody else has claimed it.
    pub(crate) fn claim(path: &Path) -> Option<Leftover> {
        let file = held::claim(path)?;
        Some(Leftover {
            path: path.to_owned(),
            file: Arc::new(file),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Returns the life of its process, 0 if it is not known, and the number of its session in that process.
    pub(crate) fn session(&self) -> (u64, u64) {
        log_name::session_of(&self.name())
    }

    /// Counts a try in the name: if recovering it ends the process, there are only so many tries.
    pub(crate) fn begin_try(&mut self) -> io::Result<()> {
        self.rename(log_name::tried)
    }

    /// Undoes the count of the try.
    pub(crate) fn put_back(mut self) -> io::Result<()> {
        self.rename(log_name::untried)
    }

    /// Renames it so that no process recovers it by itself. Returns its path.
    pub(crate) fn put_aside(mut self) -> io::Result<PathBuf> {
        self.rename(log_name::kept)?;
        Ok(self.path)
    }

    pub(crate) fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn rename(&mut self, name: impl Fn(&str) -> String) -> io::Result<()> {
        let path = self.path.with_file_name(name(&self.name()));
        fs::rename(&self.path, &path)?;
        self.path = path;
        Ok(())
    }
}
