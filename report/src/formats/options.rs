//! Options of a file.

use super::pprof;
use crate::views::{Measure, Unit};

/// Content and form of a file. Each format uses the options that apply to it, as its module says; the others are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Measure of the heap. Default: the high-water mark. Not for pprof and JSON, which have several.
    pub measure: Measure,
    /// Bytes or blocks. Default: bytes. Not for pprof, speedscope, CSV and JSON, which have both.
    pub unit: Unit,
    /// Set to keep threads apart: collapsed stacks and SVG begin with the thread, speedscope has a profile for each, pprof
    /// a label. Default: threads are summed up. CSV has a column for the thread in any case.
    pub by_thread: bool,
    /// Set to add `(file:line)` to the frames of collapsed stacks and SVG. Default: functions only.
    pub lines: bool,
    /// Title of an SVG, and name of a speedscope file. Default: the command line of the process.
    pub title: Option<String>,
    /// SVG: the root at the top (icicles). Default: at the bottom (flames).
    pub inverted: bool,
    /// SVG: call stacks from the leaf, so that equal leaves of different callers are joined. Default: from the root.
    pub reversed: bool,
    /// pprof: labels and size.
    pub pprof: pprof::Options,
}
