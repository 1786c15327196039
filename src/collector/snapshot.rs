//! What the collector hands out: raw tables by return address, not yet resolved.

use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::time::SystemTime;

use crate::capture::event::{Kind, NodeId};
pub use crate::capture::modules::{Module, ModuleId};
use crate::capture::unwind::mark;
use heapray_report::model::{Mark, Moment, ProcessMemory, Sampling, SizeCount, Survivors, Tally};

/// A call stack as its caller's stack and one return address more. Node 0 is the empty stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawNode {
    /// The caller's stack; always a smaller number.
    pub parent: NodeId,
    /// The module that `address` lay in when it was seen.
    pub module: ModuleId,
    /// A return address (look up `address - 1`), or one of the marks below, which are below any code.
    pub address: u64,
}

impl RawNode {
    /// A root that stands for "the stack was too deep: its outer frames are cut".
    pub const CUT: u64 = mark::CUT;
    /// A root that stands for "the outer frames could not be found".
    pub const INCOMPLETE: u64 = mark::INCOMPLETE;
    /// A root that stands for "ran on a stack that is not the thread's own".
    pub const FOREIGN: u64 = mark::FOREIGN;
    /// A root that stands for "call stacks that the profiler has no memory to tell apart".
    pub const OTHER: u64 = mark::OTHER;
}

/// What one thread allocated with one function from one call stack.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RawSite {
    /// The thread, or the threads that are counted together: a [`RawThread::number`].
    pub thread: u32,
    /// The call stack.
    pub node: NodeId,
    /// With which function.
    pub kind: Kind,
    /// Everything ever allocated here.
    pub allocated: Tally,
    /// Live at the high-water mark.
    pub high_water: Tally,
    /// Live now.
    pub live: Tally,
    /// Freed by the same thread among its last two allocations: at most one other in between (memray's threshold of 1).
    pub temporary: Tally,
    /// When the oldest still-live block was allocated: milliseconds since the start, if anything is live.
    pub oldest_live_ms: Option<u64>,
}

/// A thread that recorded something, or all threads of one name among those after the first of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawThread {
    /// As sites and the event log name it: a thread's number as in events, or one counted down from `u32::MAX`.
    pub number: u32,
    /// The operating system's number, of several threads that of the first; 0 if it is not known.
    pub tid: u32,
    /// Its name, if it was learnt.
    pub name: String,
    /// How many threads it stands for. In an entry of several, one that was heard of again long after its end counts
    /// twice.
    pub threads: u32,
}

/// Where the event log is and how much of it belongs to this snapshot.
#[derive(Debug, Clone)]
pub struct EventLog {
    /// The spool file, open for reading at any position (`FileExt::read_at`).
    pub file: Arc<File>,
    /// Bytes of it that are whole and belong to this snapshot.
    pub bytes: u64,
    /// Events in them.
    pub events: u64,
}

/// Exact sums over the session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawTotals {
    /// Allocations and frees seen, unknown ones included.
    pub events: u64,
    /// Allocations.
    pub allocated: Tally,
    /// Frees of known blocks.
    pub freed: Tally,
    /// Live now.
    pub live: Tally,
    /// Live at the high-water mark.
    pub high_water: Tally,
    /// When that was, milliseconds since the start.
    pub high_water_ms: u64,
    /// Frees of blocks and ranges that the session did not see being allocated; 0 while sampling, which does not know.
    pub unknown_frees: u64,
    /// Allocations by size, smallest first.
    pub sizes: Vec<SizeCount>,
    /// Large sizes are rounded, because there were too many.
    pub sizes_rounded: bool,
}

/// What was allocated from which call stacks, by return address: all that symbols are looked up for. The default is empty.
#[derive(Debug, Clone, Default)]
pub struct StackTable {
    /// The call tree; index 0 is the empty stack, parents come first.
    pub nodes: Vec<RawNode>,
    /// The call sites.
    pub sites: Vec<RawSite>,
    /// The threads; no more than a bound, however many there were.
    pub threads: Vec<RawThread>,
    /// Every ELF object that was loaded at some time, in the order of [`ModuleId`].
    pub modules: Arc<Vec<Module>>,
}

/// How a session sees the allocations of Rust code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hooks {
    /// Through patched GOT entries.
    Got,
    /// Through the wrapper of the global allocator. No GOT entry is patched.
    Global,
    /// Through the wrapper; patched GOT entries see what is not Rust's.
    Both,
}

impl fmt::Display for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hooks::Got => "got",
            Hooks::Global => "global",
            Hooks::Both => "got+global",
        })
    }
}

/// A consistent view of a session up to one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// When the session began.
    pub started: SystemTime,
    /// The moment of this view; the end, if the session has ended.
    pub taken: SystemTime,
    /// The session goes on.
    pub still_recording: bool,
    /// Its call stacks, and what was allocated from each.
    pub stacks: StackTable,
    /// The live blocks by age; sites are indices into those of `stacks`.
    pub survivors: Survivors,
    /// Memory over time.
    pub timeline: Vec<Moment>,
    /// Where the process's memory is.
    pub process_memory: Option<ProcessMemory>,
    /// Moments that somebody named, oldest first.
    pub marks: Vec<Mark>,
    /// Sums.
    pub totals: RawTotals,
    /// The event log, unless it was given up.
    pub log: Option<EventLog>,
    /// Why it was given up.
    pub log_given_up: Option<String>,
    /// Why new call stacks are cut nearer to the root, or summed up, if they are. Said in `notes`, too.
    pub stacks_bounded: Option<String>,
    /// How the session is sampled; `None` if every allocation is recorded.
    pub sampling: Option<Sampling>,
    /// Events lost because a ring was full for too long.
    pub lost_events: u64,
    /// When the first was lost, in milliseconds since the start.
    pub lost_since_ms: Option<u64>,
    /// Stacks that were cut because they were too deep.
    pub stacks_cut: u64,
    /// Stacks that end early for want of unwind information.
    pub stacks_incomplete: u64,
    /// Memory that heapray holds, in bytes.
    pub own_bytes: u64,
    /// CPU time of the collector thread in nanoseconds.
    pub collector_cpu_ns: u64,
    /// How allocations are seen.
    pub hooks: Hooks,
    /// Notes for people.
    pub notes: Vec<String>,
}
