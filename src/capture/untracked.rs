//! Keeping the profiler's own work out of the capture.

use core::marker::PhantomData;

use crate::capture::thread::{Busy, with_local};

/// While it lives, nothing that this thread allocates is recorded. Frees of recorded blocks still are: an untracked thread
/// may free what others allocated. Guards may be nested.
#[derive(Debug)]
#[must_use = "allocations are recorded again when the guard is dropped"]
pub struct Untracked {
    _of_this_thread: PhantomData<*mut ()>,
}

/// Makes the calling thread untracked until the guard is dropped.
pub fn enter() -> Untracked {
    with_local(|local| local.enter_untracked());
    Untracked {
        _of_this_thread: PhantomData,
    }
}

impl Drop for Untracked {
    fn drop(&mut self) {
        with_local(|local| local.leave_untracked());
    }
}

/// Takes the calling thread, one of heapray's own, out of the capture to its very end: neither its allocations nor its
/// frees are recorded.
pub(crate) fn for_good() {
    Busy::for_good();
}
