//! The model of a report: columns of plain data behind small handles. Nothing here computes, but for sums of
//! entries that become one.

mod about;
mod call_tree;
mod context;
mod event;
mod history;
mod join;
mod module;
mod process_memory;
mod runs;
mod sampling;
mod site;
mod survivors;

pub use about::{About, Conditions, Moment, Overhead, Thread, ThreadId};
pub use call_tree::{Frame, FrameId, StackId, StackNode, Stacks, StrId, Strings};
pub use context::{Context, ContextId};
pub use event::Event;
pub use history::{Held, History, HistoryMoment};
pub use module::{Module, Place};
pub use process_memory::{AllocatorMemory, ProcessMemory};
pub use runs::{Runs, Spread};
pub use sampling::{Sampling, SamplingRate, margin};
pub use site::{Allocator, Site, Sites, SizeCount, Tally, Totals};
pub use survivors::{Mark, Survivor, Survivors};

/// Report of one session, with resolved frames.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Process, time and producer.
    pub about: About,
    /// Every name and path that frames and threads refer to.
    pub strings: Strings,
    /// The distinct frames.
    pub frames: Vec<Frame>,
    /// Each frame's function as the compiler calls it, with the indices of `frames`, which have plain names then. Frames
    /// that differ in nothing else are equal. Empty if frames have the only known names.
    ///
    /// [`views::named`](crate::views::named) decides which of the two are shown.
    pub full_names: Vec<StrId>,
    /// Code address of each frame, with the indices of `frames`; empty if the source format does not have them.
    pub places: Vec<Place>,
    /// The ELF objects that the code addresses are in.
    pub modules: Vec<Module>,
    /// The call tree: every distinct call stack, root first.
    pub stacks: Stacks,
    /// The threads that allocated. Several threads of one name may be one entry.
    pub threads: Vec<Thread>,
    /// On whose behalf memory was allocated. The first one has no labels. Empty if the source has no contexts.
    pub contexts: Vec<Context>,
    /// Sums of each call site (thread, call stack, allocator, context), in the order of their first allocation if that is known:
    /// memray breaks ties by it.
    pub sites: Vec<Site>,
    /// Memory over time, oldest first.
    pub timeline: Vec<Moment>,
    /// Moments that a user has named, oldest first.
    pub marks: Vec<Mark>,
    /// The live blocks by age.
    pub survivors: Survivors,
    /// What call sites held at some moments of the session.
    pub history: History,
    /// Parts of the process's memory at the end, if they were read.
    pub process_memory: Option<ProcessMemory>,
    /// Sums over the whole session, counted exactly.
    pub totals: Totals,
    /// Conditions of the session that the reader must know.
    pub conditions: Conditions,
}

impl Report {
    /// Returns the address that tells a frame from others of the same names: that of code without a line, which may still be
    /// found elsewhere. `None` for all other frames.
    pub(crate) fn own_address(&self, frame: usize) -> Option<u64> {
        let place = self.places.get(frame)?;
        let has_line = self.frames.get(frame)?.line > 0;
        (place.module.is_some() && !place.inlined && !has_line).then_some(place.address)
    }
}

#[cfg(test)]
impl Report {
    /// Adds a frame. Call stacks name it by the number of frames before it.
    pub(crate) fn add_frame(&mut self, function: &str, file: &str, line: u32) {
        self.frames.push(Frame {
            function: self.strings.intern(function),
            file: self.strings.intern(file),
            line,
        });
    }
}
