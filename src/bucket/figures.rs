//! What became of the kept reports in an object storage, for status and metrics.

use std::time::SystemTime;

/// What became of all reports so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StoreCounts {
    /// Reports that are in the storage, with their notes.
    pub(crate) stored: u64,
    /// Reports that were deleted here before they were there, or whose file was damaged.
    pub(crate) dropped: u64,
    /// Tries that have failed, after which the report waits for another one.
    pub(crate) failures: u64,
    /// Reports that wait, and their bytes.
    pub(crate) waiting: u64,
    pub(crate) waiting_bytes: u64,
    /// When the storage took a report last.
    pub(crate) last_stored: Option<SystemTime>,
    /// Why the last try failed; `None` if it did not.
    pub(crate) trouble: Option<String>,
}
