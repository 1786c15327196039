//! The part that owns every table: one thread, no lock, no atomic, ordinary safe Rust.

pub mod snapshot;
