//! How much of the files that are read is in memory.

use std::cell::Cell;

use super::Object;
use crate::os::memory::resident;

/// The bytes of files that may be in memory before they are given back. Fewer would be read too often: each access brings
/// in 64 KiB.
const MOST: u64 = 4 << 20;

/// The files that are read, whose pages are given back to the page cache when they are many.
#[derive(Debug)]
pub(in crate::symbolize) struct Pages<'o> {
    files: Vec<&'o Object>,
    /// The resident size of the process after the last time.
    before: Cell<u64>,
}

impl<'o> Pages<'o> {
    pub(in crate::symbolize) fn of(files: impl IntoIterator<Item = &'o Object>) -> Self {
        Pages {
            files: files.into_iter().collect(),
            before: Cell::new(resident().unwrap_or(0)),
        }
    }

    /// Gives the pages back if the process has grown by too much. Takes a system call.
    pub(in crate::symbolize) fn bound(&self) {
        if resident().is_none_or(|now| now > self.before.get() + MOST) {
            for file in &self.files {
                file.give_back();
            }
            self.before.set(resident().unwrap_or(0));
        }
    }
}
