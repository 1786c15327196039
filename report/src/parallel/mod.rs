//! What workers did in parallel, and the page that shows it.
//!
//! A [`ParallelReport`] is plain data with resolved names; [`write_page`] makes one HTML file of it that opens from disk
//! and asks the network for nothing, as the [flame graph's](crate::page).

mod columns;
mod page;

pub use page::write_page;

use serde::Serialize;

/// How the profiled function ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Outcome {
    /// It returned, with an error perhaps.
    #[default]
    Returned,
    /// It panicked.
    Panicked,
    /// It is a future that was dropped before it was done.
    Cancelled,
}

/// What workers did while a function ran. Times are nanoseconds since it began.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ParallelReport {
    /// The function.
    pub title: String,
    /// `heapray` and its version.
    pub producer: String,
    /// How the process was started.
    pub command_line: String,
    /// Its number.
    pub pid: u32,
    /// When the function began, in milliseconds since the Unix epoch.
    pub start_ms: u64,
    /// How long it ran.
    pub duration_ns: u64,
    /// What it ran on, for people: `tokio, 2 workers with 2 threads each`.
    pub pool: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The threads, in the order of their rows.
    pub workers: Vec<Worker>,
    /// The names of [`tasks`](Self::tasks).
    pub task_names: Vec<String>,
    /// What ran where and when.
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
    /// What was allocated; `None` if nobody recorded.
    pub allocations: Option<Allocations>,
    /// Sentences for the reader.
    pub notes: Vec<String>,
}

/// A thread.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Worker {
    /// Its name.
    pub name: String,
    /// The kernel's number.
    pub tid: u32,
    /// CPU time that it used meanwhile.
    pub cpu_ns: u64,
    /// Blocks and bytes that it allocated meanwhile, if somebody recorded.
    pub allocated: Option<(u64, u64)>,
}

/// An uninterrupted piece of a task on one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Task {
    /// An index into [`ParallelReport::workers`].
    pub worker: u32,
    /// An index into [`ParallelReport::task_names`].
    pub name: u32,
    /// Tasks that it ran in on the same thread.
    pub depth: u32,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// The state at one moment.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    /// When.
    pub at_ns: u64,
    /// The process's resident memory in bytes.
    pub rss: u64,
    /// CPU time that each worker had used since the function began; workers that were not known yet are missing at the
    /// end.
    pub cpu_ns: Vec<u64>,
}

/// A function's CPU time.
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
    /// Samples in it and what it called, and their time.
    pub cumulative: (u64, u64),
}

/// What was allocated meanwhile.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Allocations {
    /// Blocks and bytes, of all threads of the process.
    pub total: (u64, u64),
    /// Call sites, the most bytes first; perhaps not all.
    pub sites: Vec<AllocationSite>,
}

/// A line of code that allocated.
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
