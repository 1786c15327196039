//! Event logs that dead processes have left: each is claimed by one process at a time, recovered, and removed; or it is put
//! aside for the command line.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{self, Found, What};
use super::name::Passing;
use crate::os::held;
use crate::session::log_name::{self, LogName};

/// An event log without its process. Nobody else can have it as long as this lives.
#[derive(Debug)]
pub(crate) struct Leftover {
    path: PathBuf,
    /// Its lock, too.
    file: Arc<File>,
}

/// The event logs in `directory` that are to be recovered, by their paths; the latest first.
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
    /// Takes the event log at `path`, if its process does not live any more and nobody else has taken it.
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

    /// The life of its process, 0 if it is not known, and the number of its session in that.
    pub(crate) fn session(&self) -> (u64, u64) {
        log_name::session_of(&self.name())
    }

    /// A try begins: should it end the process, there are only so many.
    pub(crate) fn begin_try(&mut self) -> io::Result<()> {
        self.rename(log_name::tried)
    }

    /// The try does not count.
    pub(crate) fn put_back(mut self) -> io::Result<()> {
        self.rename(log_name::untried)
    }

    /// Nobody is to recover it by himself. Where it is.
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
