//! The page: one HTML file that shows a report, opens from disk and asks the network for nothing.
//!
//! [`flamegraph`] writes the template with its style and scripts (`report/page/`), and the report as one block of
//! compressed columns (`payload`). Names from the profiled process are hostile input: they travel inside that block
//! only, as base64, and the scripts put them on the page as text.

mod assets;
mod html;
mod payload;
mod sha256;
pub mod shared;
mod varint;

pub use html::flamegraph;
