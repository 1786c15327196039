//! The capture through its real hooks: stacks, threads, mappings, modules, what it counts, how it starts and stops.
//!
//! A process has one session: every test takes its turn. A test of what is the whole process's, be it a total of everything
//! recorded, the clock, or the number of threads ever seen, runs in a process of its own.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test's failure, and what was seen

#[path = "../support/mod.rs"]
mod support;

mod clock;
mod exit;
mod fork;
mod lifecycle;
mod loader;
mod lookup;
mod mappings;
mod memray_threads;
mod operators;
mod process_memory;
mod sampling;
mod session_faults;
mod sized;
mod stacks;
mod threads;
