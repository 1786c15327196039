//! Programs of known truth about leaks.
//!
//! A heap profiler that names the call site of a leak can be wrong in two ways: it misses the leak, or it accuses a
//! call site that is innocent. Each [`Program`] of this crate is a made-up service of which the truth is known
//! ([`Program::leaks`]). It has
//!
//! * the background that all programs share: a static table, requests with their buffers, sessions, a bounded cache;
//! * a shape of [`Traffic`]: steady, in bursts, with an idle head or tail, by day and night, …;
//! * a [`Cause`]: one of 14 that leak, or of 12 that look like a leak and are not.
//!
//! A program is a sequence of heap operations in virtual time ([`Program::steps`]). The sequence depends on the
//! program's seed alone: there is no clock, no thread and no other randomness in it. A test can feed it to an analysis
//! at once. The binary of this crate executes the same operations as a real process:
//!
//! ```text
//! heapray-leak-programs list
//! heapray-leak-programs run idle-tail-one-of-hundred --seconds 8
//! ```
//!
//! # What is true of every program
//!
//! *Work* is the share of the run's requests that have arrived. Traffic and time differ: with an idle tail, all the work
//! is done at 60 % of the time.
//!
//! * Where a call site leaks, it leaks until the end of the work.
//! * Whatever is harmless and has a bound reaches the bound by 55 % of the work: a cache that is still filling cannot
//!   be told from a leak.
//! * Whatever is harmless and has no bound follows the traffic. Under traffic that rises until the end
//!   ([`Traffic::RampUp`]), live bytes rise until the end too, and nothing leaks. The lifetimes of the blocks show it.
//! * The program ends without freeing what is live.
//!
//! A program that needs other noise is a [`Program`] with another `seed`.

mod background;
mod cache;
mod catalogue;
mod cause;
mod causes;
mod heap;
mod program;
mod rng;
mod simulation;
mod site;
pub mod sites;
mod step;
mod traffic;

pub use cause::Cause;
pub use program::Program;
pub use site::Site;
pub use step::{Operation, Step};
pub use traffic::Traffic;
