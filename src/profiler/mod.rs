//! The profiler as a service sees it: one state machine, the outputs that are made from its sessions, and the handle
//! that the rest of the crate shares.
//!
//! Everything here may block; whoever is on an async worker uses the endpoints' way in, which waits without blocking.

mod builder;
mod control;
mod error;
mod global;
mod handed_out;
mod handle;
mod kept;
#[cfg(feature = "http")]
mod listeners;
#[cfg(feature = "http")]
mod live;
#[cfg(feature = "http")]
mod log_reader;
mod machine;
mod outputs;
mod queue;
#[cfg(feature = "http")]
mod readers;
mod reclaim;
mod recorder;
mod status;
pub(crate) mod store;
mod waiter;
mod while_wanted;
mod worker;

pub use builder::{Builder, builder};
#[cfg(feature = "http")]
pub(crate) use control::Core;
pub use error::{Error, InitError};
pub(crate) use global::print_at_shutdown;
pub use global::{
    flamegraph, init, mark, profiler, report, shutdown, start, stats, status, stop, try_init,
};
pub use handle::Profiler;
pub use kept::{CallSite, KeptReport, TriggerCause};
#[cfg(feature = "http")]
pub(crate) use live::Glance;
#[cfg(feature = "http")]
pub(crate) use log_reader::LogReader;
#[cfg(feature = "http")]
pub(crate) use readers::Reader;
pub use recorder::Trigger;
pub use status::{
    Blocks, DiskStatus, Mark, OverheadStatus, ReportStatus, SamplingStatus, State, Status,
};
#[cfg(feature = "http")]
pub(crate) use waiter::Waiter;
#[cfg(feature = "http")]
pub(crate) use worker::Worker;
