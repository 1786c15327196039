//! Tests of recovery: processes that end during a session, and the reports that the next process makes from their event
//! logs.
//!
//! The processes that are killed are this program again, each with one test. The recovering process has sessions of its own,
//! so each test holds its turn.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // tests may panic, and a child prints for its parent

#[path = "../support/mod.rs"]
mod support;

mod killed;
mod leftovers;
mod recover;
