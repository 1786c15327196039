//! From addresses to frames; the only user of debug information. Runs when a report is made, never while capturing.

use crate::collector::snapshot::Snapshot;
use heapray_report::{Report, model::Event};

/// How threads are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadMode {
    /// Threads of one name count as one.
    ByName,
    /// Each for itself.
    Each,
}

/// How a report is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportOptions {
    /// Keep leaf frames of Rust's own library.
    pub full: bool,
    /// How threads are told apart.
    pub threads: ThreadMode,
}

/// A report and the way to its events.
#[derive(Debug)]
pub struct Resolved {
    /// The report.
    pub report: Report,
}

impl Resolved {
    /// The events.
    pub fn events(
        &self,
        _snapshot: &Snapshot,
    ) -> Option<impl Iterator<Item = std::io::Result<Event>> + use<>> {
        None::<std::iter::Empty<_>>
    }
}

/// Resolves a snapshot.
#[must_use]
pub fn resolve(snapshot: &Snapshot, _options: &ReportOptions) -> Resolved {
    let mut report = Report::default();
    let ms = |at: std::time::SystemTime| {
        let since = at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    };
    report.about.start_ms = ms(snapshot.started);
    report.about.end_ms = ms(snapshot.taken);
    Resolved { report }
}
