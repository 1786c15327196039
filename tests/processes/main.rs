//! The profiler where something is scarce, refused or killed, and the memory log: each test starts processes, in which its
//! subject lives, and looks at what they have left.
//!
//! Nothing is recorded in this process, so tests run beside each other.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test's failure, and what was seen

#[path = "../support/mod.rs"]
mod support;

mod flight;
mod limits;
mod memory_log;
mod overhead_limit;
mod refused;
