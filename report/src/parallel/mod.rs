//! The parallel work of a function, and the page that shows it.
//!
//! A [`ParallelReport`] is plain data with resolved names; [`write_page`] makes one HTML file of it that opens from disk
//! and asks the network for nothing, as the [flame graph's](crate::page).

mod columns;
mod page;

pub use page::write_page;

use serde::Serialize;

/// End of the profiled function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Outcome {
    /// It returned, perhaps with an error.
    #[default]
    Returned,
    /// It panicked.
    Panicked,
    /// It is a future that was dropped before its end.
    Cancelled,
}

/// Parallel work while a function ran. Times are nanoseconds since it began.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ParallelReport {
    /// The function.
    pub title: String,
    /// `heapray` and its version.
    pub producer: String,
    /// Command line of the process.
    pub command_line: String,
    /// Process number.
    pub pid: u32,
    /// Start of the function, in milliseconds since the Unix epoch.
    pub start_ms: u64,
    /// Duration of the function.
    pub duration_ns: u64,
    /// Description of the pool, for users: `tokio, 2 workers with 2 threads each`.
    pub pool: String,
    /// End of the function.
    pub outcome: Outcome,
    /// The threads, in the order of their rows.
    pub workers: Vec<Worker>,
    /// The names of [`tasks`](Self::tasks).
    pub task_names: Vec<String>,
    /// The tasks, with thread and time.
    #[serde(skip)]
    pub tasks: Vec<Task>,
    /// Tasks that were not kept because there were too many.
    pub tasks_dropped: u64,
    /// CPU time and memory at moments, oldest first.
    #[serde(skip)]
    pub moments: Vec<Moment>,
    /// CPU time by function, in any order.
    pub functions: Vec<FunctionTime>,
    /// Samples that [`functions`](Self::functions) are made from.
    pub samples: u64,
    /// Allocations meanwhile, if a session recorded.
    pub allocations: Option<Allocations>,
    /// Notes for the reader, a sentence each.
    pub notes: Vec<String>,
}

/// A thread.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Worker {
    /// Its name.
    pub name: String,
    /// The kernel's number.
    pub tid: u32,
    /// CPU time of the thread meanwhile.
    pub cpu_ns: u64,
    /// Blocks and bytes that the thread allocated meanwhile, if a session recorded.
    pub allocated: Option<(u64, u64)>,
}

/// Uninterrupted piece of a task on one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Index into [`ParallelReport::workers`].
    pub worker: u32,
    /// Index into [`ParallelReport::task_names`].
    pub name: u32,
    /// Number of enclosing tasks on the same thread.
    pub depth: u32,
    /// Start of the piece.
    pub start_ns: u64,
    /// End of the piece.
    pub end_ns: u64,
}

/// State at one moment.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    /// Time of the moment.
    pub at_ns: u64,
    /// The process's resident memory in bytes.
    pub rss: u64,
    /// CPU time of each worker since the function began. Workers that were not known yet are missing at the end.
    pub cpu_ns: Vec<u64>,
}

/// CPU time of a function.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FunctionTime {
    /// Its name.
    pub name: String,
    /// Its file; empty if unknown.
    pub file: String,
    /// A line in it; 0 if unknown.
    pub line: u32,
    /// Samples in the function itself, and their time.
    pub own: (u64, u64),
    /// Samples in the function and its callees, and their time.
    pub cumulative: (u64, u64),
}

/// Allocations meanwhile.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Allocations {
    /// Blocks and bytes, of all threads of the process.
    pub total: (u64, u64),
    /// Call sites, the most bytes first, perhaps not all.
    pub sites: Vec<AllocationSite>,
}

/// Line of code that allocated.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AllocationSite {
    /// The function.
    pub name: String,
    /// Its file; empty if unknown.
    pub file: String,
    /// The line; 0 if unknown.
    pub line: u32,
    /// Blocks.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
}
