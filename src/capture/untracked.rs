//! Keeps the profiler's own allocations out of the session.

use core::marker::PhantomData;

use crate::capture::thread::{Busy, with_local};

/// Guard that makes the calling thread untracked: its allocations are not recorded. Its frees of recorded blocks still are,
/// because the thread may free blocks of others. Guards may be nested.
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

/// Excludes the calling thread, one of heapray's own, until it ends: neither its allocations nor its frees are recorded.
pub(crate) fn for_good() {
    Busy::for_good();
}
