//! What a program does: one heap operation after another, in virtual time.

use crate::Site;

/// One heap operation. A block is named by a key that no other block of the program has; keys count up from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new block.
    Allocate {
        /// Key of the new block.
        block: u64,
        /// Call site that allocates it.
        site: Site,
        /// Size.
        bytes: u64,
    },
    /// `realloc`: the block has a new size and, from here on, belongs to this site.
    Resize {
        /// Key of a live block.
        block: u64,
        /// Call site of the `realloc`.
        site: Site,
        /// New size.
        bytes: u64,
    },
    /// The end of a block.
    Free {
        /// Key of a live block.
        block: u64,
    },
}

impl Operation {
    /// Returns the key of the block that the operation is about.
    pub fn block(&self) -> u64 {
        match *self {
            Operation::Allocate { block, .. }
            | Operation::Resize { block, .. }
            | Operation::Free { block } => block,
        }
    }
}

/// One heap operation, with the time and the thread that it happens at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Virtual time since the program's start. It never decreases from one step to the next.
    pub at_ms: u64,
    /// Thread, counted from 0.
    pub thread: u8,
    /// The operation.
    pub operation: Operation,
}
