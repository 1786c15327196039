//! What is done at the end of a thread that has recorded: its name is told, and its state is left to the next one.

use super::thread::{self, Local, with_local};
use super::{record, sys};

/// The destructor of the key of [`thread::prepare`].
pub(super) extern "C" fn on_thread_end(_value: *mut libc::c_void) {
    with_local(end);
}

/// What it does.
pub(super) fn end(local: &Local) {
    thread::end(local, |local, state| {
        record::thread_name(local, state, sys::thread_name());
    });
}
