//! The finished session's outputs on disk.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::file::{Label, Output, Stored};
use super::{Draft, OutputKey, OutputKind};
use crate::os::held;

/// The outputs of one session that are on disk.
#[derive(Debug, Default)]
pub(crate) struct SessionOutputs {
    session: u64,
    /// Whether the session was deleted: outputs that are still being made of it get no name.
    deleted: bool,
    stored: HashMap<OutputKey, Stored>,
}

impl SessionOutputs {
    /// Enters a new session and deletes the former one's files, as Racetrack does. Returns their paths, and whether it is
    /// the first session.
    pub(crate) fn begin(&mut self, session: u64) -> (Vec<PathBuf>, bool) {
        let first = self.session == 0;
        self.session = session;
        self.deleted = false;
        (self.clear(), first)
    }

    /// Deletes all files of `session`, if it is the present one. Returns their paths.
    pub(crate) fn forget(&mut self, session: u64) -> Vec<PathBuf> {
        if session != self.session {
            return Vec::new();
        }
        self.deleted = true;
        self.clear()
    }

    fn clear(&mut self) -> Vec<PathBuf> {
        let remove = |(_, old): (OutputKey, Stored)| {
            let path = old.path().to_owned();
            old.remove();
            path
        };
        self.stored.drain().map(remove).collect()
    }

    /// Publishes a synced draft, unless its session is over.
    pub(crate) fn put(
        &mut self,
        session: u64,
        draft: Draft,
        label: Label,
        directory: &Path,
    ) -> io::Result<Output> {
        if session != self.session || self.deleted {
            return draft.detach(label);
        }
        let (stored, output) = draft.publish(label, directory)?;
        self.stored.insert(label.key, stored);
        Ok(output)
    }

    /// Returns the output of that key, if it is there and untouched. Quick.
    pub(crate) fn find(&self, key: OutputKey) -> Option<Output> {
        self.stored.get(&key)?.open().ok().flatten()
    }

    /// Returns what is known of that key's file, to be checked without holding the lock: reading it may take long.
    pub(crate) fn stored(&self, key: OutputKey) -> Option<(u64, Stored)> {
        Some((self.session, self.stored.get(&key)?.clone()))
    }

    /// Remembers that the file of that key was checked. `None` forgets it.
    pub(crate) fn checked(&mut self, session: u64, key: OutputKey, stored: Option<Stored>) {
        if session != self.session || self.deleted {
            return;
        }
        match stored {
            Some(stored) => self.stored.insert(key, stored),
            None => self.stored.remove(&key),
        };
    }

    /// Returns the length of the report as it is usually made, and its label.
    pub(crate) fn report(&self) -> Option<(u64, Label)> {
        let stored = self.stored.get(&OutputKey::new(OutputKind::Report))?;
        Some((stored.len(), stored.label()))
    }
}

/// Renames the report that an earlier process has left in `directory`: one generation is kept, for those who want to know
/// why that process died. Returns its new path if there was one.
pub(crate) fn keep_previous(directory: &Path) -> Option<PathBuf> {
    let report = directory.join(OutputKind::Report.file_name());
    let previous = directory.join("memray-report.previous.bin");
    // The report of a process that lives was not left.
    let left = !held::is_held(&report) && fs::rename(report, &previous).is_ok();
    left.then_some(previous)
}
