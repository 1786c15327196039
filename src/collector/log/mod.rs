//! The event log: every allocation and free of a session, in order, in a spool file.
//!
//! [`LogWriter`] codes events into blocks and appends these to the file; [`LogReader`] gives them back. A block stands for
//! itself: nothing in it refers to another one, and its header tells length and checksum, so that a torn tail is found.
//! What the numbers in events stand for is written before them, so that another process can report on what a crash left.
//! `block` has the layout of the file, `codec` that of the events in a block, `names` that of what they stand for.

mod block;
mod codec;
mod names;
mod reader;
mod writer;

pub(super) use names::Known;
pub use names::{Names, Process};
pub use reader::LogReader;
pub use writer::LogWriter;

use crate::capture::event::{Kind, NodeId};

/// One entry of the log.
///
/// The log tells a consistent story: each deallocation is of something that is live by what was told before, as a reader
/// that keeps its own live table sees it. So frees of unknown blocks are left out; a `realloc` is a deallocation by
/// `free` and an allocation by `realloc`, or nothing if it failed; a block that was replaced because its free was lost,
/// and a range that was mapped over, are freed by whoever took its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEntry {
    /// Memory was handed out.
    Allocation {
        /// By whom it was asked for: a [`RawThread::number`](super::snapshot::RawThread::number).
        thread: u32,
        /// With which function.
        kind: Kind,
        /// Its address.
        address: u64,
        /// Bytes asked for.
        size: u64,
        /// From where.
        node: NodeId,
    },
    /// Memory was given back.
    Deallocation {
        /// By whom.
        thread: u32,
        /// `Free` or `Munmap`.
        kind: Kind,
        /// Address of the block, or where the range begins.
        address: u64,
        /// Length of the range of a `Munmap`; 0 for a `Free`.
        size: u64,
    },
    /// A reading of the process's resident size.
    Memory {
        /// Milliseconds since the start of the session.
        at_ms: u64,
        /// Resident bytes.
        rss: u64,
    },
}

#[cfg(test)]
mod tests;

/// A file for a test, gone with its last handle.
#[cfg(test)]
pub(super) fn spool() -> std::fs::File {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("heapray-log-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .expect("the temporary directory is writable");
    std::fs::remove_file(&path).expect("it was just made");
    file
}
