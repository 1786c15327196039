//! The tables of `#[heapray::profile]`, exactly, for every shape of code; what they say of the heap; and where they go.
//!
//! Readings come from a script, if the feature `__test` is there, and what is expected stands in `expected/`, a file a test;
//! `UPDATE_EXPECTED=1` writes them anew, to be looked at. A script is its thread's alone. Tests with a session, or with a
//! table that says that there is none, take turns.
#![cfg(feature = "macros")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]
// Their shape is what the functions are for.
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
