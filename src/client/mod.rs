//! What sends something to servers of the operator's shares: the HTTP client, the pause after a failure, and the place of
//! the figures.
//!
//! All of it blocks: it runs on threads of the profiler's own.

mod agent;
mod backoff;
mod published;

pub(crate) use agent::{Longest, agent};
pub(crate) use backoff::Backoff;
pub(crate) use published::Published;
