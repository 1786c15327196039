//! Tests of `#[heapray::profile]`: the exact tables for every shape of code, the tables of the heap, and the reports' files.
//!
//! With the feature `__test`, readings come from a script, which belongs to its thread alone. The expected tables are in
//! `expected/`, one file for each test. `UPDATE_EXPECTED=1` writes these files again, for a review. Tests with a session,
//! and tests of tables that say that no session runs, hold their turn.
#![cfg(feature = "macros")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]
// The functions have these shapes on purpose.
#![allow(
    clippy::boxed_local,
    clippy::let_and_return,
    clippy::needless_lifetimes,
    clippy::type_complexity,
    clippy::useless_vec
)]

#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "__test")]
mod asynchronous;
#[cfg(feature = "__test")]
mod behaviour;
#[cfg(feature = "__test")]
mod expected;
#[cfg(feature = "__test")]
mod formats;
#[cfg(feature = "__test")]
mod functions;
#[cfg(feature = "__test")]
mod heap;
mod output;
#[cfg(feature = "__test")]
mod shapes;
#[cfg(feature = "__test")]
mod theirs;
