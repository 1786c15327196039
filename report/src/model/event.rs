//! The event log: a report's allocations and frees, one by one.

use super::{Allocator, StackId, ThreadId};

/// One event of a capture, in the order in which they happened across all threads. A log is too long to keep
/// in memory: it travels as an iterator beside the [`Report`](super::Report) whose handles it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Memory was handed out.
    Allocation {
        /// By whom it was asked for.
        thread: ThreadId,
        /// With which function.
        allocator: Allocator,
        /// Its address.
        address: u64,
        /// Bytes asked for.
        size: u64,
        /// From where.
        stack: StackId,
    },
    /// Memory was given back.
    Deallocation {
        /// By whom.
        thread: ThreadId,
        /// With which function.
        allocator: Allocator,
        /// The block's address; of a `munmap`, the range's start.
        address: u64,
        /// Length of the range of a `munmap`; 0 otherwise.
        size: u64,
    },
    /// A reading of the process's resident size.
    Memory {
        /// Milliseconds since the start of the capture.
        at_ms: u64,
        /// Resident bytes.
        rss: u64,
    },
}
