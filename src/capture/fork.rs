//! Turns the capture off in a forked child.

use super::{control, failure, sampling, thread};

/// Runs in the child before anything else, through `pthread_atfork`. It touches nothing of the parent. The hooks stay in
/// place and pass every call on.
pub(super) extern "C" fn after_fork_in_child() {
    control::close_session();
    sampling::end();
    failure::forget_in_child();
    control::note_fork();
    thread::forget_in_child();
}
