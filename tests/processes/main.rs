//! Tests of the profiler when resources are scarce, system calls are refused or the process is killed, and of the memory
//! log. Each test starts processes that use the profiler, and checks the files and the output that they leave.
//!
//! This process itself records nothing, so tests run beside each other.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // tests may panic and print

#[path = "../support/mod.rs"]
mod support;

mod announced;
mod flight;
mod helper;
mod limits;
mod memory_log;
mod overhead_limit;
#[cfg(feature = "http")]
mod readme;
mod refused;
