//! Data that memray's format does not have, after the record at which memray stops reading.
//!
//! ```text
//! "heapray\0"  u32 version = 13
//! about        texts and numbers, in the order of the struct
//! threads      count, each: tid, how many it stands for, name
//! stacks       count, each: own number - parent's, code object        (node n is StackId n + 1)
//! contexts     count, each: count of labels, each: key, value; 0 or 1, then the runs: 4 spreads, what was freed of others;
//!              a spread: count of buckets, each: how many; sum, largest
//! sites        count, each: thread, stack, context, allocator, 4 tallies, oldest + 1 or 0
//! timeline     count, each: ms since the last, rss, heap, own
//! totals, conditions
//! marks        count, each: name, ms, what was live
//! survivors    count of generations, each: ms since the last; count, each: sites since the last, generation, what is live
//! memory       0 or 1, then the numbers in the order of the struct; allocators: count, each: name, in use, kept, arenas
//! modules      count, each: path, build id, hash, start, length, offset, address in the file
//! places       count, each: code object, module + 1 or 0, address from the last, inlined
//! sampling     0 or 1, then: count of rates, each: ms, mean; samples; what was asked for; 3 margins
//! full names   count, each: code object, the name if it differs from the capture's
//! history      count of moments, each: ms since the last, allocated; count, each: sites since the last, moment, live
//!              bytes, allocated bytes, as signed steps from the site's last moment
//! 0x01
//! ```
//! Numbers are varints, texts are preceded by their length. A number that may be missing is stored as 0, or as the number
//! plus one; the two largest numbers are followed by a byte that distinguishes them, 0 for 2^64 - 2 and 1 for 2^64 - 1. Code
//! objects are those of the capture, so this part is of no use alone. A reader that finds the whole extension takes its sums
//! from here, else from memray's records.

mod read;
mod write;

use crate::model::{
    About, Conditions, Context, History, Mark, Module, Moment, Place, ProcessMemory, Site,
    Survivors, Totals,
};

pub(super) use read::read;
pub(super) use write::finish;

const MAGIC: [u8; 8] = *b"heapray\0";
const VERSION: u32 = 13;
const END: u8 = 1;

/// Thread of the extension.
#[derive(Debug, Clone)]
pub(in crate::memray) struct ThreadEntry {
    pub(in crate::memray) tid: u64,
    pub(in crate::memray) threads: u32,
    pub(in crate::memray) name: String,
}

/// Call-tree node of the extension: parent and code object.
#[derive(Debug, Clone, Copy)]
pub(in crate::memray) struct NodeEntry {
    pub(in crate::memray) parent: u32,
    pub(in crate::memray) code: u32,
}

/// Content of the extension. The stacks of `sites` are those of `stacks`, not of a report.
#[derive(Debug, Clone, Default)]
pub(in crate::memray) struct Extension {
    pub(in crate::memray) about: About,
    pub(in crate::memray) threads: Vec<ThreadEntry>,
    pub(in crate::memray) stacks: Vec<NodeEntry>,
    pub(in crate::memray) contexts: Vec<Context>,
    pub(in crate::memray) sites: Vec<Site>,
    pub(in crate::memray) timeline: Vec<Moment>,
    pub(in crate::memray) totals: Totals,
    pub(in crate::memray) conditions: Conditions,
    pub(in crate::memray) marks: Vec<Mark>,
    pub(in crate::memray) survivors: Survivors,
    pub(in crate::memray) process_memory: Option<ProcessMemory>,
    pub(in crate::memray) modules: Vec<Module>,
    /// Code addresses by code object.
    pub(in crate::memray) places: Vec<(u32, Place)>,
    /// Full names by code object.
    pub(in crate::memray) full_names: Vec<(u32, String)>,
    pub(in crate::memray) history: History,
}

impl Extension {
    /// Returns every code object that is referred to.
    pub(in crate::memray) fn codes(&self) -> impl Iterator<Item = u32> {
        let of_stacks = self.stacks.iter().map(|node| node.code);
        let of_places = self.places.iter().map(|&(code, _)| code);
        let of_names = self.full_names.iter().map(|&(code, _)| code);
        of_stacks.chain(of_places).chain(of_names)
    }
}
