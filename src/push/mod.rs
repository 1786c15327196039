//! Profiles of the running session, pushed to a profile store again and again.
//!
//! ```text
//! profiler::pushing ── PushedProfile ──▶ Pusher ──▶ Queue (disk) ──▶ encode ──▶ Client ──▶ the server
//!                                           └── PushFigures ──▶ status, metrics
//! ```
//!
//! All of it runs on one thread of the profiler's own. A server that is down, slow or wrong costs the service nothing: each
//! part of a request has a time limit, a failure is followed by a longer and longer pause, and what waits is bounded. What is
//! dropped is counted.

mod client;
mod encode;
mod figures;
mod identity;
mod owner;
mod profile;
mod pusher;
mod queue;

pub(crate) use figures::{PushCounts, PushFigures};
pub(crate) use identity::Identity;
pub(crate) use profile::PushedProfile;
pub(crate) use pusher::Pusher;
pub(crate) use queue::FOLDER;
