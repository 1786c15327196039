//! The call of a profiled function in the memory log.

use crate::memory_log::{self, MemorySpan};

/// Guard from the beginning of a call to its end, on any thread.
#[derive(Debug)]
pub(super) struct Record(#[allow(dead_code)] MemorySpan); // for its drop

/// Begins a call of the function of this path (`module::name`) on this thread.
pub(super) fn begin(path: &'static str) -> Record {
    Record(memory_log::function_at(path))
}
