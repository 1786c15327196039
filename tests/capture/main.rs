//! Tests of the capture through its real hooks: stacks, threads, mappings, modules, counts, start and stop.
//!
//! A process has one session, so every test holds its turn. A test that depends on the whole process (the totals of a
//! session, the clock, or the number of threads so far) runs in a process of its own.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // tests may panic and print

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
