//! What a report holds. Columns of plain data behind small handles; nothing here computes.

mod about;
mod call_tree;
mod event;
mod module;
mod process_memory;
mod sampling;
mod site;
mod survivors;

pub use about::{About, Conditions, Moment, Overhead, Thread, ThreadId};
pub use call_tree::{Frame, FrameId, StackId, StackNode, Stacks, StrId, Strings};
pub use event::Event;
pub use module::{Module, Place};
pub use process_memory::{AllocatorMemory, ProcessMemory};
pub use sampling::{Sampling, SamplingRate, margin};
pub use site::{Allocator, Site, SizeCount, Tally, Totals};
pub use survivors::{Mark, Survivor, Survivors};

/// One capture, with resolved frames.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Which process, when, and how.
    pub about: About,
    /// Every name and path that frames and threads refer to.
    pub strings: Strings,
    /// The distinct frames.
    pub frames: Vec<Frame>,
    /// Each frame's function as the compiler calls it, by the numbers of `frames`, which have plain names then: frames that
    /// differ in nothing else are equal. Empty where frames have the only names that are known.
    ///
    /// [`views::named`](crate::views::named) decides which of the two are shown.
    pub full_names: Vec<StrId>,
    /// Where each frame's code is, by the numbers of `frames`; empty where the source format does not tell.
    pub places: Vec<Place>,
    /// The ELF objects that places lie in.
    pub modules: Vec<Module>,
    /// The call tree: every distinct call stack, root first.
    pub stacks: Stacks,
    /// The threads that allocated. Several threads of one name may be one entry.
    pub threads: Vec<Thread>,
    /// What each call site (thread, call stack, allocator) allocated and kept, in the order of their first allocation
    /// if known: memray breaks ties by it.
    pub sites: Vec<Site>,
    /// Memory over time, oldest first.
    pub timeline: Vec<Moment>,
    /// Moments that somebody named, oldest first.
    pub marks: Vec<Mark>,
    /// The still-live blocks by age.
    pub survivors: Survivors,
    /// Where the process's memory was at the end, if the process was asked.
    pub process_memory: Option<ProcessMemory>,
    /// Sums over the whole capture, counted exactly.
    pub totals: Totals,
    /// What the reader of this report must know about its making.
    pub conditions: Conditions,
}
