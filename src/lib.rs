//! Heapray: a heap profiler that a long-running Rust service carries inside itself.

pub mod capture;
pub mod collector;
pub mod config;
#[cfg(feature = "http")]
pub mod endpoints;
mod profiler;
pub mod quiet;
pub mod session;
mod store;
pub mod symbolize;

pub use profiler::*;
pub use store::{Output, OutputKey, OutputKind};
