//! Heapray: a heap profiler that a long-running Rust service carries inside itself.

mod alloc;
pub mod capture;
pub mod collector;
#[cfg(feature = "http")]
pub mod endpoints;
pub mod quiet;
pub mod session;
pub mod symbolize;
pub use alloc::Alloc;
