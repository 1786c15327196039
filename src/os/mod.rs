//! System calls about this process, and others that need no speed. Never in a hook.
//!
//! Besides `capture` and `alloc.rs` this is the only place where `unsafe` is allowed.

pub(crate) mod allocators;
pub(crate) mod calendar;
pub(crate) mod cgroup;
pub(crate) mod command_line;
pub(crate) mod elf;
pub(crate) mod file;
pub(crate) mod file_hash;
#[cfg(target_env = "gnu")]
mod glibc;
pub(crate) mod held;
pub(crate) mod helper;
pub(crate) mod mapped_file;
pub(crate) mod memory;
pub(crate) mod process;
#[cfg(feature = "http")]
pub(crate) mod process_metrics;
pub(crate) mod process_start;
pub(crate) mod program_symbols;
pub(crate) mod signal;
#[cfg(feature = "http")]
pub(crate) mod socket;
pub(crate) mod unique;
