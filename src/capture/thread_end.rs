//! The end of a thread that has recorded: records its name, and leaves its state to the next thread.

use super::thread::{self, Local, with_local};
use super::{record, sys};

/// Destructor of the key of [`thread::prepare`].
pub(super) extern "C" fn on_thread_end(_value: *mut libc::c_void) {
    with_local(end);
}

/// Ends the thread.
pub(super) fn end(local: &Local) {
    thread::end(local, |local, state| {
        record::thread_name(local, state, sys::thread_name());
    });
}
