//! The part that owns every table: one thread, no lock, no atomic, ordinary safe Rust.
//!
//! Events of all threads come in, merged in the order of time
//! ([`Recording::apply_batch`](recording::Recording::apply_batch)). Sums can be read at any time ([`Tables::counters`]), and
//! everything at once for a report ([`Tables::export`]).
//!
//! `tables` says what an event does. Each other module is one noun: the live blocks and ranges, the call sites, the
//! high-water mark, sizes, threads, running reallocations, samples, memory over time, the call tree, the event log.

mod birth;
mod bound;
pub mod call_tree;
pub mod clock;
#[cfg(feature = "http")]
pub(crate) mod ended;
mod entries;
mod export;
pub mod figures;
mod hash;
mod index;
mod live;
pub mod log;
pub mod merge;
pub mod notice;
mod pairs;
mod peak;
mod positions;
mod ranges;
mod reallocs;
mod recent;
pub mod recording;
mod retire;
#[cfg(feature = "http")]
pub(crate) mod routes;
mod runs;
mod samples;
#[cfg(any(feature = "http", feature = "push"))]
pub(crate) mod since;
mod sites;
mod sizes;
pub mod snapshot;
mod survivors;
mod tables;
pub(crate) mod thread;
mod threads;
pub mod timeline;
pub mod traces;
pub mod worker;

pub use call_tree::CallTree;
pub use clock::Clock;
pub use export::Export;
pub(crate) use hash::Map;
pub use log::{LogEntry, LogReader, LogWriter, Names, Process};
pub use tables::{Counters, Tables};

#[cfg(test)]
mod tests;
