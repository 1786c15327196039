//! What became of the pushed profiles, for status and metrics. Written by the thread that pushes, read by any.

use std::time::SystemTime;

use crate::client::Published;

/// What became of all profiles so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PushCounts {
    /// Profiles that the server has taken.
    pub(crate) sent: u64,
    /// Profiles that the server has refused for what is in them.
    pub(crate) refused: u64,
    /// Profiles that were dropped because too many waited.
    pub(crate) dropped: u64,
    /// Tries that have failed, after which the profile waits for another one.
    pub(crate) failures: u64,
    /// Profiles that could not be made.
    pub(crate) not_made: u64,
    /// Profiles that wait, and their bytes.
    pub(crate) waiting: u64,
    pub(crate) waiting_bytes: u64,
    /// When the server took a profile last.
    pub(crate) last_sent: Option<SystemTime>,
    /// Why the last try failed; `None` if it did not.
    pub(crate) trouble: Option<String>,
}

/// The place where they are published.
pub(crate) type PushFigures = Published<PushCounts>;
