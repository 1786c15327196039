//! The event log: every allocation and free of a session, in order, in a spool file.
//!
//! [`LogWriter`] encodes events into blocks, which a thread of its own appends to the file; [`LogReader`] returns the events. A
//! block is independent: nothing in it refers to another block, and its header has its length and checksum, so that a torn tail is
//! found. The meaning of the numbers in events is written before them, so that another process can report on the log of a
//! crashed one. `block` has the layout of the file, `codec` that of the events in a block, `names` that of the numbers'
//! meanings. Blocks pass `queue`, are written by `file`, and `disk` knows when the log is more than its disk can take.

mod block;
mod codec;
mod disk;
mod file;
mod names;
mod queue;
mod reader;
mod writer;

pub(super) use names::Known;
pub use names::{Names, Process};
pub use queue::PendingLog;
pub use reader::LogReader;
pub use writer::LogWriter;

use crate::capture::event::{Kind, NodeId};

/// Entry of the log.
///
/// The log is consistent: each deallocation is of something that is live by the entries before it, as a reader with its own
/// live table sees it. So frees of unknown blocks are left out. A `realloc` is a deallocation by `free` and an allocation by
/// `realloc`, or nothing if it failed. A block whose free was lost, and a range that was mapped over, are freed by the
/// thread that gets the new block or range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEntry {
    /// Memory was handed out.
    Allocation {
        /// The thread that asked for it, as a [`RawThread::number`](super::snapshot::RawThread::number).
        thread: u32,
        /// The context on whose behalf it asked, as in [`StackTable::contexts`](super::snapshot::StackTable::contexts).
        context: u32,
        /// The allocation function.
        kind: Kind,
        /// Address of the block.
        address: u64,
        /// Requested bytes.
        size: u64,
        /// The call stack.
        node: NodeId,
    },
    /// Memory was freed.
    Deallocation {
        /// The thread that freed it.
        thread: u32,
        /// `Free` or `Munmap`.
        kind: Kind,
        /// Address of the block, or the start of the range.
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

/// Returns a file for a test, which is gone with its last handle.
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
