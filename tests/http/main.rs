//! The profiler over HTTP: its routes, who may call them, what they send, and what is not recorded of it.
//!
//! A process has one session: each test takes its turn with its `Bench`. A test of what is the whole process's, be it its
//! environment, its memory, or everything that is recorded, runs in a process of its own.
#![cfg(feature = "http")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test's failure, and what was seen

#[path = "../support/mod.rs"]
mod support;

mod bench;
mod guard;
mod outputs;
mod process;
mod queue;
mod reports;
mod routes;
mod sampling;
mod timeline;
mod untracked;
