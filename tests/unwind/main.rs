//! The unwinder against libgcc's and framehop's, and on stacks that are odd. There is no session here: each thread has an
//! unwinder of its own, and only libraries that come and go are the process's.
#![cfg(all(heapray_native, target_env = "gnu"))]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test's failure, and what was seen

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
