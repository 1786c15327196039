//! The finished session's outputs on disk.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use super::file::{Label, Output, Stored};
use super::{Draft, OutputKey, OutputKind};
use crate::os::held;

/// Which outputs of which session are on disk.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    session: u64,
    /// The session was deleted: what is still being made of it gets no name.
    deleted: bool,
    stored: HashMap<OutputKey, Stored>,
}

impl Shelf {
    /// A new session begins: the former one's files are deleted, as Racetrack does, and so are their caches. What an
    /// earlier process left is kept, one generation of it, for whoever wants to know why that process died.
    pub(crate) fn begin(&mut self, session: u64, directory: &Path) {
        let first = self.session == 0;
        self.session = session;
        self.deleted = false;
        self.clear();
        if first {
            let report = directory.join(OutputKind::Report.file_name());
            let previous = directory.join("memray-report.previous.bin");
            // A process that lives has its report there, not left it.
            if !held::is_held(&report) && fs::rename(report, &previous).is_ok() {
                tracing::info!(path = %previous.display(), "kept the report of an earlier process");
            }
        }
    }

    /// Deletes all files of `session`, if it is the present one.
    pub(crate) fn forget(&mut self, session: u64) {
        if session == self.session {
            self.deleted = true;
            self.clear();
        }
    }

    fn clear(&mut self) {
        for (_, old) in self.stored.drain() {
            tracing::info!(path = %old.path().display(), "deleting the previous output");
            old.remove();
        }
    }

    /// Puts a synced draft in its place, unless its session is over.
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

    /// The output of that key, if it is there and untouched. Quick.
    pub(crate) fn find(&self, key: OutputKey) -> Option<Output> {
        self.stored.get(&key)?.open().ok().flatten()
    }

    /// What is known of that key's file, to be checked without holding the shelf: reading it may take long.
    pub(crate) fn stored(&self, key: OutputKey) -> Option<(u64, Stored)> {
        Some((self.session, self.stored.get(&key)?.clone()))
    }

    /// The file of that key was checked: `None`, and it is forgotten.
    pub(crate) fn checked(&mut self, session: u64, key: OutputKey, stored: Option<Stored>) {
        if session != self.session || self.deleted {
            return;
        }
        match stored {
            Some(stored) => self.stored.insert(key, stored),
            None => self.stored.remove(&key),
        };
    }

    /// Length of the report as it is usually made, and when it was taken.
    pub(crate) fn report(&self) -> Option<(u64, Label)> {
        let stored = self.stored.get(&OutputKey::new(OutputKind::Report))?;
        Some((stored.len(), stored.label()))
    }
}
