//! Outputs that are remembered without being kept open.

use std::fs::File;
use std::sync::{Arc, Weak};

use super::Output;
use super::file::Label;

/// An output that is there as long as somebody else has it.
#[derive(Debug)]
pub(crate) struct WeakOutput {
    file: Weak<File>,
    label: Label,
    len: u64,
    hash: u64,
}

impl WeakOutput {
    /// The output, if somebody has it.
    pub(crate) fn upgrade(&self) -> Option<Output> {
        Some(Output {
            file: self.file.upgrade()?,
            label: self.label,
            len: self.len,
            hash: self.hash,
            position: 0,
        })
    }

    /// Whether nobody has it any more.
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

    /// Device and number of its file, if that has no name any more: it takes disk only as long as it is open.
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
