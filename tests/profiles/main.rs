//! Profiles of parts of the program: CPU time, pools of workers, and the memory of a scope.
//!
//! Sessions, scopes, parallel profiles and the handler of `SIGPROF` are the process's: every test takes its turn.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test's failure, and what was seen

#[path = "../support/mod.rs"]
mod support;

mod capture_scope;
mod cpu_profile;
mod cpu_profile_attribute;
mod cpu_profile_signal;
mod cpu_profile_storm;
mod cpu_profile_tools;
mod page;
#[cfg(feature = "http")]
mod parallel_allocations;
#[cfg(all(feature = "macros", feature = "parallel"))]
mod parallel_profile;
