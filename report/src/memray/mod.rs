//! memray's capture file format, versions 12 (memray 1.19) and 13 (memray 1.20), read and written.
//!
//! A capture is an LZ4 frame (or the bare bytes) of a header and one of two bodies: *all allocations*, which has every event
//! in order, or *aggregated*, which has sums by call stack. Frames are written resolved, so memray's own commands open our
//! files as they are. Data that the format does not have (conditions, overhead, totals of an aggregated capture, …) follow
//! memray's end-of-capture record, where memray does not look (`extension.rs`). They include every sum, so [`read_file`]
//! skips the events.
//!
//! Nothing here holds a whole file in memory. Reading never panics, never allocates memory just because a length says so,
//! and takes no more memory than its limit (`limit.rs`).

mod aggregated;
mod calls;
mod codec;
mod error;
mod events;
mod extension;
mod graft;
mod header;
mod ledger;
pub(crate) mod limit;
mod line_table;
pub(crate) mod live_blocks;
mod names;
mod native;
pub(crate) mod ranges;
mod read;
mod recent;
mod shortcut;
mod signpost;
mod source;
mod tables;
pub(crate) mod timeline;
mod write_aggregated;
mod write_all;
mod writer;

use crate::model::ContextId;

pub use error::ReadError;
pub use events::{
    Events, events, events_of_file, events_of_file_as, events_of_file_within, events_within,
};
pub use graft::SameNames;
pub use header::{Facts, Version};
pub use ledger::Ledger;
pub use limit::{MemoryLimit, TooLarge};
pub use names::in_one_line;
pub(crate) use names::to_capture;
pub use read::{
    Capture, Format, read, read_as, read_file, read_file_as, read_file_within, read_within,
};
pub use write_aggregated::write_aggregated;
pub use write_all::{write_all, write_all_apart};

/// Record tags of both bodies (capture format, sections 3 and 4).
mod tag {
    pub(super) const TRAILER: u8 = 1;
    pub(super) const MEMORY_RECORD: u8 = 2;
    pub(super) const NATIVE_TRACE_INDEX: u8 = 5;
    pub(super) const MEMORY_MAP_START: u8 = 6;
    pub(super) const SEGMENT_HEADER: u8 = 7;
    pub(super) const SEGMENT: u8 = 8;
    pub(super) const THREAD_RECORD: u8 = 10;
    pub(super) const CONTEXT_SWITCH: u8 = 12;
    pub(super) const CODE_OBJECT: u8 = 14;

    /// `0001nnnn`: n + 1 frames.
    pub(super) const FRAME_POP: u8 = 0x10;
    /// `001ppppc`
    pub(super) const OBJECT_RECORD: u8 = 0x20;
    /// `01uuuuue`
    pub(super) const FRAME_PUSH: u8 = 0x40;
    /// `1ppppaaa`
    pub(super) const ALLOCATION: u8 = 0x80;

    /// Tags with another meaning in the aggregated body.
    pub(super) const MEMORY_SNAPSHOT: u8 = 1;
    pub(super) const AGGREGATED_ALLOCATION: u8 = 2;
    pub(super) const PYTHON_TRACE_INDEX: u8 = 3;
    pub(super) const PYTHON_FRAME_INDEX: u8 = 4;
    pub(super) const SURVIVING_OBJECT: u8 = 13;
    pub(super) const AGGREGATED_TRAILER: u8 = 15;
}

/// Address of the block that the last record of an all-allocations capture frees. No allocator returns it. memray's temporal
/// views stop at the last allocation record, so one must follow the last memory record (section 3.6).
const CLOSING_ADDRESS: u64 = 8;

/// Number of a thread that never allocates, named after the program that wrote the capture, by which our files are
/// recognized. The number reads `heapray` in a dump of the file.
const PRODUCER_THREAD: u64 = u64::from_le_bytes(*b"heapray\0");

/// The upper half of a thread's number that stands for a context, which is the lower half: that of the allocations from here
/// on. The number of the next allocation's thread follows, so memray sees no allocation of such a thread. The system's
/// numbers are smaller. The number reads `ctx` in a dump of the file.
const CONTEXT_THREADS: u32 = u32::from_le_bytes(*b"ctx\0");

/// Returns the context that a thread's number stands for, if it does.
fn context_number(tid: u64) -> Option<ContextId> {
    (tid >> 32 == u64::from(CONTEXT_THREADS)).then_some(ContextId(tid as u32))
}
