//! The process, its threads, its memory over time, and the conditions of the session.

use super::{Sampling, StrId};
use crate::known::Known;

/// Index into [`Report::threads`](super::Report::threads).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ThreadId(pub u32);

/// Thread, or all threads of the same name if the report joins them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// The operating system's number of the (first) thread; in a file that memray wrote, memray's number.
    pub tid: u64,
    /// Its name; empty if it had none.
    pub name: StrId,
    /// Number of threads that this entry stands for. 0 if its threads are counted in the entry of the same name, and this
    /// entry is only for events.
    pub threads: u32,
}

/// Process and time of a session, and the producer of the report.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct About {
    /// The command line, arguments joined by blanks.
    pub command_line: String,
    /// Process id.
    pub pid: u32,
    /// Start of the capture, milliseconds since the Unix epoch.
    pub start_ms: i64,
    /// End of the capture (or the moment of the snapshot), milliseconds since the Unix epoch.
    pub end_ms: i64,
    /// Recorded allocations and frees, including frees of unknown blocks.
    pub events: u64,
    /// Directory of the language's own library (`/rustc/<hash>/library`), if known.
    pub library_dir: String,
    /// Directories whose subdirectories are packages (cargo's registry sources).
    pub package_dirs: Vec<String>,
    /// Directories of the service's own sources.
    pub source_dirs: Vec<String>,
    /// Crates that are the service's own wherever their sources are, as the service says: names, and patterns with `*` for
    /// any text.
    pub own_crates: Vec<String>,
    /// Rules that make call sites known: they are summed apart, and not ranked as leaks.
    pub known: Vec<Known>,
    /// Directory in which the service's own crate was compiled. `{file}` in `source_url` is relative to it. Empty if unknown.
    pub source_root: String,
    /// Template of the addresses of the service's sources ([`is_template`](crate::sources::is_template)); empty if unknown.
    pub source_url: String,
    /// Names of the replicas whose reports were merged into this one, sorted. The name of a thread begins with that of its replica
    /// ([`replica_of`](crate::views::replica_of)). Empty if there are none.
    pub replicas: Vec<String>,
    /// Set if call stacks have all of their frames, also those of the language's library between the code that allocates and
    /// the allocator.
    pub untrimmed: bool,
    /// `heapray 0.1.0`, or `memray` for a file that memray wrote.
    pub producer: String,
    /// memray's `python_allocator` field (capture format, section 1); 3 (`malloc`) for a Rust process.
    pub python_allocator: u8,
}

impl About {
    /// Returns the file name of the program, as it was called; empty if it is not known.
    #[must_use]
    pub fn program(&self) -> &str {
        let path = self.command_line.split(' ').next().unwrap_or_default();
        path.rsplit('/').next().unwrap_or_default()
    }
}

/// Reading of the process's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Moment {
    /// Milliseconds since the start of the capture.
    pub at_ms: u64,
    /// Resident bytes of the process.
    pub rss: u64,
    /// Live bytes that were recorded.
    pub heap: u64,
    /// Bytes that heapray used itself; 0 if unknown.
    pub own: u64,
}

/// Cost of the session.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Overhead {
    /// Bytes of memory that heapray uses.
    pub memory_bytes: u64,
    /// CPU time of the collector's threads, in nanoseconds.
    pub collector_cpu_ns: u64,
    /// Bytes of the event log on disk.
    pub log_bytes: u64,
}

/// Conditions of a session that the reader of its report must know.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conditions {
    /// Set while the session is still running: this is a consistent snapshot.
    pub still_recording: bool,
    /// Way in which allocations were recorded: `got`, `global`, `got+global`.
    pub hooks: String,
    /// Events that were lost because the collector could not keep up. If it is not 0, sums are too low.
    pub lost_events: u64,
    /// Time of the first lost event, in milliseconds since the start of the capture, if it is known.
    pub lost_since_ms: Option<u64>,
    /// Call stacks that were cut because they were too deep.
    pub stacks_cut: u64,
    /// Call stacks that end early because code had no unwind information.
    pub stacks_incomplete: u64,
    /// Frees of blocks that were allocated before the session began; they are ignored.
    pub unknown_frees: u64,
    /// Reason why there is no event log, if there is none (size limit reached, disk full, …).
    pub log_given_up: Option<String>,
    /// Notes for users, a sentence each (stripped binary, clock without invariant time stamps, …).
    pub notes: Vec<String>,
    /// Cost of the session.
    pub overhead: Overhead,
    /// Sampling of the session: sizes and counts are estimates. `None` if every allocation was recorded.
    pub sampling: Option<Sampling>,
}
