//! Memory over time, one file per process, as `mprof run` writes it and `mprof plot` reads it.
//!
//! ```text
//!   any thread                       sampler thread, every 0.1 s                   file
//! ┌──────────────┐  calls that end ┌─────────────────────────────┐ whole lines ┌────────────┐
//! │ MemorySpan   │ ──────────────▶ │ Probe: /proc/self and all   │ ──────────▶ │ LogFile    │
//! │ RequestLayer │  (bounded)      │ descendants                 │             │ CMDLINE MEM│
//! └──────────────┘                 └─────────────────────────────┘             │ CHLD FUNC  │
//!                                                                              └────────────┘
//! ```
//!
//! It needs no session and no endpoints. Nothing here may harm the service: an error is logged once, and the sampler goes
//! on. If no log is written, a mark costs one load.
//!
//! `heapray memory run` measures other programs with the same [`Probe`] and [`LogFile`].

mod descendants;
mod file;
mod levels;
mod name;
mod probe;
mod recorder;
#[cfg(feature = "http")]
mod requests;
mod sampler;
mod span;

pub use file::LogFile;
pub use name::{local_stamp, stamped_name};
pub use probe::{Probe, Readings};
#[cfg(feature = "http")]
pub(crate) use recorder::Recorder;
pub(crate) use recorder::Recording;
#[cfg(feature = "http")]
pub use requests::{MemoryRequestFuture, MemoryRequests, MemoryRequestsLayer, memory_requests};
pub use span::MemorySpan;
pub(crate) use span::function_at;

/// Marks a part of the program in the memory log, from this call to the drop of the guard, for `mprof plot`'s brackets and
/// flames. If no memory log is written, this costs one load.
///
/// Blanks in a name become underscores. `mprof` cuts a label at its last dot, and does not handle `::`.
///
/// ```
/// let span = heapray::memory_span("load");
/// let table = vec![0_u8; 1 << 20];
/// drop(span);
/// # drop(table);
/// ```
pub fn memory_span(name: &str) -> MemorySpan {
    span::function(name)
}
