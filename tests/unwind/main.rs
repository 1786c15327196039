//! Tests of the unwinder against libgcc and framehop, and on odd stacks. No test starts a session: each thread has an
//! unwinder of its own, and only tests that load libraries depend on the whole process.
#![cfg(all(heapray_native, target_env = "gnu"))]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // tests may panic and print

#[path = "../support/mod.rs"]
mod support;
#[path = "../support/unwinder.rs"]
mod unwinder;

mod dlopen;
mod framehop;
mod modules;
mod odd_stacks;
mod paths;
mod stale;
mod start;
