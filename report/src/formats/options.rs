//! What can be chosen for a file.

use crate::views::{Measure, Unit};

/// What a file shows and how. Each format uses what applies to it, as its module says; the rest is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Which side of the heap. Default: the high-water mark. Not for pprof and JSON, which hold several.
    pub measure: Measure,
    /// Bytes or blocks. Default: bytes. Not for pprof, speedscope, CSV and JSON, which hold both.
    pub unit: Unit,
    /// Whether threads stay apart: collapsed stacks and SVG begin with the thread, speedscope has a profile for
    /// each. Default: they are added up. pprof has a label, and CSV a column, for the thread in any case.
    pub by_thread: bool,
    /// Whether frames of collapsed stacks and SVG carry `(file:line)`. Default: functions only.
    pub lines: bool,
    /// The title of an SVG, and the name of a speedscope file. Default: the command line of the process.
    pub title: Option<String>,
    /// SVG: the root at the top (icicles). Default: at the bottom (flames).
    pub inverted: bool,
    /// SVG: call stacks from the leaf, so that equal places merge whoever calls them. Default: from the root.
    pub reversed: bool,
    /// pprof: `inuse_*` is what was live at the high-water mark. Default: what is live at the end.
    pub in_use_at_high_water: bool,
}
