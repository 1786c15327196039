//! References to outputs that do not keep them open.

use std::fs::File;
use std::sync::{Arc, Weak};

use super::Output;
use super::file::Label;

/// A reference to an output that exists as long as somebody else has it open.
#[derive(Debug)]
pub(crate) struct WeakOutput {
    file: Weak<File>,
    label: Label,
    len: u64,
    hash: u64,
}

impl WeakOutput {
    /// Returns the output, if somebody has it open.
    pub(crate) fn upgrade(&self) -> Option<Output> {
        Some(Output {
            file: self.file.upgrade()?,
            label: self.label,
            len: self.len,
            hash: self.hash,
            position: 0,
        })
    }

    /// Returns whether nobody has it open any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.file.strong_count() == 0
    }
}

impl Output {
    pub(crate) fn downgrade(&self) -> WeakOutput {
        WeakOutput {
            file: Arc::downgrade(&self.file),
            label: self.label,
            len: self.len,
            hash: self.hash,
        }
    }

    /// Returns device and inode of its file, if that has no name: it takes disk space only as long as it is open.
    pub(crate) fn nameless(&self) -> Option<(u64, u64)> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let metadata = self.file.metadata().ok()?;
            (metadata.nlink() == 0).then(|| (metadata.dev(), metadata.ino()))
        }
        #[cfg(not(unix))]
        None
    }
}

#[cfg(test)]
impl Output {
    /// As if it were so long.
    pub(crate) fn claiming(mut self, len: u64) -> Output {
        self.len = len;
        self
    }

    /// As if it were that file.
    pub(crate) fn of_file(mut self, file: File) -> Output {
        self.file = Arc::new(file);
        self
    }
}
