//! The event log: a report's allocations and frees, one by one.

use super::{Allocator, ContextId, StackId, ThreadId};

/// Event of a session, in the order of time across all threads. A log is too long to keep in memory: it is passed as an
/// iterator beside the [`Report`](super::Report) whose handles it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Memory was handed out.
    Allocation {
        /// The thread that asked for it.
        thread: ThreadId,
        /// The context on whose behalf it asked.
        context: ContextId,
        /// The allocation function.
        allocator: Allocator,
        /// Address of the block.
        address: u64,
        /// Requested bytes.
        size: u64,
        /// The call stack.
        stack: StackId,
    },
    /// Memory was freed.
    Deallocation {
        /// The thread that freed it.
        thread: ThreadId,
        /// The function that freed it.
        allocator: Allocator,
        /// Address of the block, or the start of a `munmap`'s range.
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
