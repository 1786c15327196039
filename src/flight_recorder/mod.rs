//! Reports that are written without a request: an allocation failed, memory is nearly used up, or the heap has grown.
//!
//! ```text
//!   hooks ── an allocation failed ──▶ ┐
//!   SIGUSR2 ────────────────────────▶ ├─ Watch ── Reason ──▶ (the profiler writes a kept report, then tells the service)
//!   supply: groups, host, limits ───▶ │    ▲
//!   the session's live bytes ───────▶ ┘    └ rearms: enough is free again, and a pause has passed
//! ```
//!
//! All checks run on the collector's thread. Nothing here writes a report or knows the writer.

mod condition;
mod growth;
mod reason;
mod settings;
mod supply;
mod watch;

pub(crate) use reason::Reason;
pub use reason::TriggerKind;
pub use settings::OomThreshold;
pub(crate) use settings::Slope;
pub(crate) use settings::WatchSettings;
pub(crate) use supply::memory_of_process;
pub(crate) use watch::{Usage, Watch};

/// Returns the bytes of memory that the process can still get, by the tightest of its limits, or `None` if none is known.
pub(crate) fn memory_left(root: &std::path::Path) -> Option<u64> {
    let supplies = supply::Supplies::find(root).read();
    supplies.iter().map(|supply| supply.left).min()
}
