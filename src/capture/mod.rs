//! The part that runs inside `malloc`, on any thread, at any moment.
//!
//! Rules (`docs/how-it-works.md` gives the reasons): code in a hook never allocates, never locks, never calls `dl_*` or
//! `pthread_getattr_np`, and imports only `core`, atomics and `libc`. The modules that run outside of hooks (`hook::got`,
//! `hook::loader`, `modules`) say so at their head.
//!
//! ```text
//!  hook, or crate::Alloc ─▶ record ─▶ unwind + call_tree ─▶ ring ─▶ (the collector)
//!                             │
//!                          thread: state, passed on from thread to thread
//! ```

pub mod arch;
pub mod call_tree;
pub mod clock;
pub mod context;
pub mod control;
pub mod cpu;
pub mod event;
pub mod failure;
mod fork;
#[cfg(all(heapray_native, target_env = "gnu"))]
pub mod hook;
#[cfg(not(all(heapray_native, target_env = "gnu")))]
#[path = "hook/portable.rs"]
pub mod hook;
pub mod local;
pub mod memory;
pub mod meter;
pub mod metered;
pub mod modules;
pub mod record;
pub mod ring;
pub mod room;
pub mod run;
pub mod sampling;
pub mod scope;
mod scope_blocks;
pub mod shared;
pub mod signal;
mod state;
pub mod sys;
pub mod thread;
mod thread_context;
mod thread_end;
pub mod trace;
pub mod untracked;
pub mod unwind;

use std::io;
use std::sync::OnceLock;

/// Prepares the process once before the first session, outside of every hook.
///
/// # Errors
/// The process has no thread key left, or the system refused to register a handler for forked children.
pub fn prepare() -> io::Result<()> {
    static DONE: OnceLock<Result<(), i32>> = OnceLock::new();
    let done = *DONE.get_or_init(|| {
        hook::prepare();
        clock::prepare();
        sys::prepare();
        #[cfg(heapray_native)]
        unwind::prepare();
        if !thread::prepare(thread_end::on_thread_end) {
            return Err(libc::EAGAIN);
        }
        // Hooks read these values (the real functions, the clock, the key) without synchronization. The barrier makes them
        // visible to every thread that sees a session or a patched entry, which come later. Only weakly ordered processors
        // need this.
        sys::heavy_barrier();
        // SAFETY: the handler only stores to atomics and to a thread-local cell.
        match unsafe { libc::pthread_atfork(None, None, Some(fork::after_fork_in_child)) } {
            0 => Ok(()),
            error => Err(error),
        }
    });
    done.map_err(io::Error::from_raw_os_error)
}

/// Ends recording: when this returns, no hook records any more, and every event is in its ring. May be called repeatedly,
/// and without a session.
pub fn end_session() {
    // In this order: modules that are loaded meanwhile are patched only while a session is open.
    control::close_session();
    hook::restore();
    sampling::end();
    sys::heavy_barrier();
}

#[cfg(all(test, heapray_loom))]
mod loom_tests;
