//! The code behind `#[heapray::profile]`: it takes a reading when control leaves a line, and prints a table when the call
//! ends.
//!
//! ```text
//!  marker "line 7" ─▶ calls: the thread's running calls ─▶ metric: a reading ─▶ lines: charged to the line before
//!  end of the call ─▶ report: table or short line ─▶ output: stdout or a file        sums: several calls together
//! ```
//!
//! Nothing here may disturb the function: no panic, no lock that it could hold, no failure that it would see.

mod calls;
mod function;
mod future;
mod lines;
mod metric;
mod output;
mod pycompss;
mod record;
mod report;
mod sums;
mod table;
#[cfg(feature = "__test")]
pub mod testing;

pub use function::{
    AtEnd, Call, Format, Function, Metric, Nested, Options, Semantics, Source, Turn, Unit,
};
pub use future::Profiled;
pub use sums::print_profiles;
