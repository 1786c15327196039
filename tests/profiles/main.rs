//! Tests of profiles of parts of the program: CPU profiles, parallel profiles and capture scopes.
//!
//! Sessions, scopes, parallel profiles and the handler of `SIGPROF` belong to the whole process, so every test holds its
//! turn.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // tests may panic and print

#[path = "../support/mod.rs"]
mod support;

mod capture_scope;
mod cpu_profile;
mod cpu_profile_attribute;
mod cpu_profile_signal;
mod cpu_profile_storm;
mod cpu_profile_tools;
mod cpu_samples;
mod page;
#[cfg(feature = "http")]
mod parallel_allocations;
#[cfg(all(feature = "macros", feature = "parallel"))]
mod parallel_profile;
