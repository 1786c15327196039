//! Heap profiles as values: the model of a report, and everything that is made from a report.
//!
//! A [`Report`] is plain data with resolved frames. It does not depend on how it was captured or served: every file format,
//! page and text here is a function of a report, or a reader into one.
#![forbid(unsafe_code)]

pub mod calendar;
pub mod checkpoints;
mod clean;
mod compress;
mod error_chain;
pub mod formats;
mod hash;
pub mod known;
pub mod markup;
pub mod memory_log;
pub mod memray;
pub mod model;
pub mod page;
pub mod parallel;
pub mod peak;
pub mod secrets;
mod sha256;
pub mod sources;
pub mod stats;
mod template;
pub mod texts;
pub mod units;
mod varint;
pub mod views;

pub use error_chain::error_chain;
pub use model::Report;
pub use sha256::sha256;
