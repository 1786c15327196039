//! The process, its threads, its memory over time, and the conditions of the capture.

use super::{Sampling, StrId};

/// An index into [`Report::threads`](super::Report::threads).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ThreadId(pub u32);

/// A thread, or all threads of one name where the report was made so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// The operating system's number of the (first) thread; memray's number in a file that memray wrote.
    pub tid: u64,
    /// Its name; empty if it had none.
    pub name: StrId,
    /// How many threads this entry stands for. 0: its threads are those of the entry of the same name, and it only tells
    /// them apart in events.
    pub threads: u32,
}

/// Which process was captured, when and by what.
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
    /// Allocations and frees that were seen, frees of unknown blocks included.
    pub events: u64,
    /// Directory of the language's own library (`/rustc/<hash>/library`), if known.
    pub library_dir: String,
    /// Directories whose subdirectories are packages (cargo's registry sources).
    pub package_dirs: Vec<String>,
    /// Directories of the service's own sources.
    pub source_dirs: Vec<String>,
    /// `heapray 0.1.0`, or `memray` for a file that memray wrote.
    pub producer: String,
    /// memray's `python_allocator` field (capture format, section 1); 3 (`malloc`) for a Rust process.
    pub python_allocator: u8,
}

/// One reading of the process's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// Milliseconds since the start of the capture.
    pub at_ms: u64,
    /// Resident bytes of the process.
    pub rss: u64,
    /// Live bytes that the capture knew.
    pub heap: u64,
    /// Bytes that heapray held for itself; 0 where unknown.
    pub own: u64,
}

/// What the capture cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Overhead {
    /// Bytes of memory that heapray holds.
    pub memory_bytes: u64,
    /// CPU time of the collector thread, in nanoseconds.
    pub collector_cpu_ns: u64,
    /// Bytes of the event log on disk.
    pub log_bytes: u64,
}

/// What the reader of a report must know about its making.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conditions {
    /// The capture was still running: this is a consistent snapshot.
    pub still_recording: bool,
    /// How allocations were seen: `got`, `global`, `got+global`.
    pub hooks: String,
    /// Events that were lost because the collector could not keep up. Not 0: sums are too low.
    pub lost_events: u64,
    /// When the first of them was lost, in milliseconds since the start of the capture, as far as it is known.
    pub lost_since_ms: Option<u64>,
    /// Call stacks that were cut because they were too deep.
    pub stacks_cut: u64,
    /// Call stacks that end early because code had no unwind information.
    pub stacks_incomplete: u64,
    /// Frees of blocks that were allocated before the capture began; they are ignored.
    pub unknown_frees: u64,
    /// Why there is no event log, if there is none (size limit reached, disk full, …).
    pub log_given_up: Option<String>,
    /// Notes for people, a sentence each (stripped binary, clock without invariant time stamps, …).
    pub notes: Vec<String>,
    /// What the capture cost.
    pub overhead: Overhead,
    /// Not every allocation was recorded, but samples: sizes and counts are estimates. `None`: everything is exact.
    pub sampling: Option<Sampling>,
}
