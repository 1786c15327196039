//! Files for other tools. Each format is a function `write(report, options, out)` in its own module, and [`Format`] lists
//! them all for the command line and the endpoints.
//!
//! All formats spell frames through `spelling` and sum call sites through `samples`, so that equal frames and equal sums are
//! equal in each. Names come from the profiled process and are hostile input: control characters never reach a file, and
//! each format escapes the characters that it gives a meaning. Nothing here changes the content of a report: views, filters
//! and folding make another report first.

pub mod collapsed;
pub mod csv;
mod format;
pub mod gprof2dot;
pub mod json;
pub mod mprof;
mod options;
pub mod pprof;
pub(crate) mod samples;
pub mod speedscope;
pub(crate) mod spelling;
pub mod svg;

pub use format::{Format, UnknownFormat};
pub use options::Options;
