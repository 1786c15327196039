//! When to write a report without being asked: an allocation failed, memory is near its end, or the heap has grown.
//!
//! ```text
//!   hooks ── an allocation failed ──▶ ┐
//!   SIGUSR2 ────────────────────────▶ ├─ Watch ── Reason ──▶ (the profiler writes a kept report, then tells the service)
//!   supply: groups, host, limits ───▶ │    ▲
//!   the session's live bytes ───────▶ ┘    └ rearms: enough is free again, and a pause has passed
//! ```
//!
//! All of it is asked on the collector's thread. Nothing here writes a report or knows who does.

mod gauge;
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

/// Bytes of memory that the process can have yet, by the nearest of its bounds; `None` where nothing is known of any.
pub(crate) fn memory_left(root: &std::path::Path) -> Option<u64> {
    let supplies = supply::Supplies::find(root).read();
    supplies.iter().map(|supply| supply.left).min()
}
