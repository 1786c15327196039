//! What becomes of the capture in a forked child: it is off.

use super::{control, failure, sampling, thread};

/// What `pthread_atfork` runs in the child, before anything else: nothing of the parent's is touched. The hooks stay where
/// they are and hand every call on.
pub(super) extern "C" fn after_fork_in_child() {
    control::close_session();
    sampling::end();
    failure::forget_in_child();
    control::note_fork();
    thread::forget_in_child();
}
