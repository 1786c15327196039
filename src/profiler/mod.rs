//! The profiler as a service sees it: one state machine, the outputs that are made from its sessions, and the handle
//! that the rest of the crate shares. `core.rs` draws the parts.
//!
//! Everything named `…_blocking` blocks; an async worker uses the function of the same name without it.

mod builder;
mod core;
mod error;
mod figures;
mod flight;
mod global;
mod handle;
#[cfg(feature = "http")]
mod interval;
mod lifecycle;
#[cfg(feature = "http")]
mod listeners;
#[cfg(feature = "http")]
mod live;
mod lock;
#[cfg(feature = "http")]
mod log_reader;
mod machine;
#[cfg(feature = "push")]
mod pushing;
mod recovery;
mod reports;
mod reserve;
#[cfg(feature = "http")]
mod routes;
mod status;
pub(crate) mod store;
#[cfg(feature = "store")]
mod storing;
mod waiter;
mod worker;

/// Path of the live page on the service's own address, as `mount` adds it. `None` without the endpoints.
const PAGE: Option<&str> = if cfg!(feature = "http") {
    Some("/api/v1/profiler/memray/")
} else {
    None
};

pub use builder::{Builder, builder};
pub use error::{Error, InitError};
pub(crate) use figures::ProcessFigures;
pub use flight::Trigger;
pub(crate) use global::print_at_shutdown;
pub use global::{
    flamegraph, init, mark, profiler, report, shutdown, start, stats, status, stop, try_init,
};
pub use handle::Profiler;
#[cfg(feature = "http")]
pub(crate) use interval::profile_of;
#[cfg(all(feature = "http", test))]
pub(crate) use live::LiveSites;
#[cfg(feature = "http")]
pub(crate) use live::{LiveFeed, LiveState, MOST_LINES, leaking_elsewhere, top_elsewhere};
#[cfg(feature = "http")]
pub(crate) use log_reader::LogReader;
pub(crate) use reports::serve_outputs;
pub use reports::{CallSite, Confidence, KeptReport, LeakCandidate, TriggerCause};
#[cfg(feature = "http")]
pub(crate) use reports::{Of, Reader, Reports, lines, render};
pub use status::{
    Blocks, DiskStatus, Mark, OverheadStatus, PushStatus, ReportStatus, SamplingStatus, State,
    Status, StoreStatus,
};
