//! What a process leaves that does not live to end its session, and what becomes of it.
//!
//! The processes that are killed are this program again, each with one test. What recovers them has sessions of its own, and so
//! each test takes its turn.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test's failure; the child talks to its parent

#[path = "../support/mod.rs"]
mod support;

mod killed;
mod leftovers;
mod recover;
