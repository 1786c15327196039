//! The collector's output: raw tables by return address, before symbolization.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::SystemTime;

use super::traces::TracedRun;
use crate::capture::event::{Kind, NodeId};
pub use crate::capture::modules::{Module, ModuleId};
use crate::capture::unwind::mark;
use heapray_report::model::{
    History, Mark, Moment, ProcessMemory, Runs, Sampling, SizeCount, Survivors, Tally,
};

/// A call stack: its caller's stack and one more return address. Node 0 is the empty stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawNode {
    /// The caller's stack. Its number is always smaller.
    pub parent: NodeId,
    /// The module that contained `address` when the stack was recorded.
    pub module: ModuleId,
    /// A return address (look up `address - 1`), or one of the marks below, which are smaller than any address of code.
    pub address: u64,
}

impl RawNode {
    /// A root for stacks that were too deep: their outer frames are cut.
    pub const CUT: u64 = mark::CUT;
    /// A root for stacks whose outer frames could not be found.
    pub const INCOMPLETE: u64 = mark::INCOMPLETE;
    /// A root for code that ran on a stack that is not the thread's own.
    pub const FOREIGN: u64 = mark::FOREIGN;
    /// A root for call stacks that are summed up, because the profiler's memory limit is reached.
    pub const OTHER: u64 = mark::OTHER;
}

/// Bytes of a node that [`write_nodes`] writes: parent, module and address.
const NODE: usize = 4 + 2 + 8;

/// Writes `nodes` so that [`read_nodes`] reads them. There may be millions.
pub(crate) fn write_nodes(nodes: &[RawNode], out: &mut impl io::Write) -> io::Result<()> {
    for node in nodes {
        let mut bytes = [0; NODE];
        bytes[..4].copy_from_slice(&node.parent.0.to_le_bytes());
        bytes[4..6].copy_from_slice(&node.module.0.to_le_bytes());
        bytes[6..].copy_from_slice(&node.address.to_le_bytes());
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Reads what [`write_nodes`] wrote.
pub(crate) fn read_nodes(bytes: &[u8]) -> Vec<RawNode> {
    let (nodes, _) = bytes.as_chunks::<NODE>();
    let node = |&[a, b, c, d, e, f, ref address @ ..]: &[u8; NODE]| RawNode {
        parent: NodeId(u32::from_le_bytes([a, b, c, d])),
        module: ModuleId(u16::from_le_bytes([e, f])),
        address: u64::from_le_bytes(*address),
    };
    nodes.iter().map(node).collect()
}

/// The allocations of one thread with one function from one call stack.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RawSite {
    /// The thread, or the threads that are counted together: a [`RawThread::number`].
    pub thread: u32,
    /// The call stack.
    pub node: NodeId,
    /// On whose behalf it was allocated: an index into [`StackTable::contexts`], or 0.
    pub context: u32,
    /// The allocation function.
    #[serde(with = "kind")]
    pub kind: Kind,
    /// All allocations.
    pub allocated: Tally,
    /// Live at the high-water mark.
    pub high_water: Tally,
    /// Live now.
    pub live: Tally,
    /// Freed by the same thread after at most one other allocation by that thread (memray's threshold of 1).
    pub temporary: Tally,
    /// The time at which the oldest live block was allocated, in milliseconds since the start. `None` without live blocks.
    pub oldest_live_ms: Option<u64>,
}

/// A thread that recorded events. Beyond a session's first threads, an entry stands for all threads of one name.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RawThread {
    /// The number in sites and in the event log: a thread's number as in events, or a number counted down from `u32::MAX`.
    pub number: u32,
    /// The operating system's number, or 0 if it is unknown. For several threads, the number of the first.
    pub tid: u32,
    /// The name. Empty if it is unknown.
    pub name: String,
    /// The number of threads that the entry stands for. In an entry of several threads, a thread with events long after its
    /// end counts twice.
    pub threads: u32,
}

/// The event log, and its part that belongs to this snapshot.
#[derive(Debug, Clone)]
pub struct EventLog {
    /// The event log's file, open for reading at any position (`FileExt::read_at`).
    pub file: Arc<File>,
    /// The complete bytes that belong to this snapshot.
    pub bytes: u64,
    /// The number of events in these bytes.
    pub events: u64,
    /// The thread and the context that stand behind an entry of the log, for entries from 2^31 on, in their order.
    pub pairs: Arc<Vec<(u32, u32)>>,
}

/// Exact sums over the session.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RawTotals {
    /// Recorded allocations and frees, unknown frees included.
    pub events: u64,
    /// Allocations.
    pub allocated: Tally,
    /// Frees of known blocks.
    pub freed: Tally,
    /// Live now.
    pub live: Tally,
    /// Live at the high-water mark.
    pub high_water: Tally,
    /// The time of the high-water mark, in milliseconds since the start.
    pub high_water_ms: u64,
    /// Frees of blocks and ranges whose allocation the session did not record. 0 while sampling, because it is unknown then.
    pub unknown_frees: u64,
    /// Allocations by size, smallest first.
    pub sizes: Vec<SizeCount>,
    /// Whether large sizes are rounded, because there were too many different ones.
    pub sizes_rounded: bool,
}

/// Call stacks by return address, and what was allocated from each: the input of symbolization. The default is empty.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct StackTable {
    /// The call tree. Index 0 is the empty stack. Parents come before children.
    #[serde(skip)] // `write_nodes` is quicker
    pub nodes: Vec<RawNode>,
    /// The call sites.
    pub sites: Vec<RawSite>,
    /// The threads. The number of entries has a limit.
    pub threads: Vec<RawThread>,
    /// The labels of each context, as keys and values. The first one has none. Empty if no site has a context.
    pub contexts: Vec<Vec<(String, String)>>,
    /// Requests and futures that have ended, by the number of their context.
    pub runs: BTreeMap<u32, Runs>,
    /// Every module that was loaded at some time, in the order of [`ModuleId`].
    pub modules: Arc<Vec<Module>>,
}

/// The way in which a session records the allocations of Rust code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Hooks {
    /// Patched GOT entries.
    Got,
    /// The wrapper of the global allocator. No GOT entry is patched.
    Global,
    /// The wrapper of the global allocator. Patched GOT entries record the allocations of other code.
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
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Snapshot {
    /// When the session began.
    pub started: SystemTime,
    /// The moment of this view, or the end of the session if it has ended.
    pub taken: SystemTime,
    /// Whether the session goes on.
    pub still_recording: bool,
    /// The call stacks, and what was allocated from each.
    pub stacks: StackTable,
    /// The live blocks by generation. Their sites are indices into the sites of `stacks`.
    pub survivors: Survivors,
    /// What sites held at some moments of the session.
    pub history: History,
    /// Memory over time.
    pub timeline: Vec<Moment>,
    /// The process's memory, by kind.
    pub process_memory: Option<ProcessMemory>,
    /// Moments that a user has named, oldest first.
    pub marks: Vec<Mark>,
    /// Exact sums.
    pub totals: RawTotals,
    /// The event log, or `None` if it was given up.
    #[serde(skip)]
    pub log: Option<EventLog>,
    /// The reason why the event log was given up, if it was.
    pub log_given_up: Option<String>,
    /// The reason why new call stacks are cut nearer to the root, or summed up, if they are. `notes` contains it, too.
    pub stacks_bounded: Option<String>,
    /// The state of sampling. `None` if every allocation is recorded.
    pub sampling: Option<Sampling>,
    /// Events lost because a ring was full for too long.
    pub lost_events: u64,
    /// The time of the first lost event, in milliseconds since the start.
    pub lost_since_ms: Option<u64>,
    /// Stacks that were cut because they were too deep.
    pub stacks_cut: u64,
    /// Stacks that end early because unwind information is missing.
    pub stacks_incomplete: u64,
    /// Memory that heapray holds, in bytes.
    pub own_bytes: u64,
    /// CPU time of the collector's threads in nanoseconds.
    pub collector_cpu_ns: u64,
    /// The way in which allocations are recorded.
    pub hooks: Hooks,
    /// Notes for people.
    pub notes: Vec<String>,
}

/// An allocation function, as its number.
mod kind {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Kind;

    pub(super) fn serialize<S: Serializer>(kind: &Kind, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u8(*kind as u8)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Kind, D::Error> {
        u8::deserialize(from).map(Kind::from_byte)
    }
}

/// Sums of a context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextSums {
    /// Everything that was allocated.
    pub allocated: Tally,
    /// What is not freed.
    pub live: Tally,
    /// Requests and futures that have ended.
    pub runs: Runs,
    /// The last of them that belong to a trace, one of each size.
    pub traced: Vec<TracedRun>,
}

impl AddAssign<&ContextSums> for ContextSums {
    fn add_assign(&mut self, more: &ContextSums) {
        self.allocated += more.allocated;
        self.live += more.live;
        self.runs += &more.runs;
        self.traced.extend(&more.traced);
    }
}
