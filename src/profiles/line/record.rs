//! The call of a profiled function in the memory log.

use crate::memory_log::{self, MemorySpan};

/// Kept from the begin of a call to its end, on whatever thread that is.
#[derive(Debug)]
pub(super) struct Record(#[allow(dead_code)] MemorySpan); // for its drop

/// The call of the function of this path (`module::name`) begins, on this thread.
pub(super) fn begin(path: &'static str) -> Record {
    Record(memory_log::function_at(path))
}
