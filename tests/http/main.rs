//! Tests of the profiler over HTTP: the routes, access to them, their answers, and that requests are not recorded.
//!
//! A process has one session, so each test holds its turn with its `Bench`. A test that depends on the whole process (its
//! environment, its memory, or the totals of a session) runs in a process of its own.
#![cfg(feature = "http")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // tests may panic and print

#[path = "../support/mod.rs"]
mod support;

mod bench;
mod continuous;
mod debug_pprof;
mod document;
mod guard;
mod leaks;
mod metrics;
mod outputs;
mod process;
mod queue;
mod reports;
mod routes;
mod sampling;
mod timeline;
mod untracked;
