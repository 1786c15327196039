//! The part that runs inside `malloc`, on any thread, at any moment.
//!
//! Rules (`docs/how-it-works.md` gives the reasons): it never allocates, never locks, never calls `dl_*` or
//! `pthread_getattr_np`, and imports only `core`, atomics and `libc`.

pub mod arch;
pub mod call_tree;
pub mod event;
pub mod memory;
pub mod modules;
pub mod unwind;
