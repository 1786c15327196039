//! Heapray's own JSON, for scripts: everything about the heap in one file, all measures side by side.
//!
//! ```text
//! {
//!   "schema": "heapray-report", "version": 1,
//!   "about":      { "command_line", "pid", "start_ms", "end_ms" (Unix epoch), "events", "producer" },
//!   "conditions": { "still_recording", "hooks", "lost_events", "lost_since_ms" (or null), "stacks_cut",
//!                   "stacks_incomplete", "unknown_frees", "log_given_up" (or null), "notes": [text] },
//!   "totals":     { "allocated", "freed", "high_water", "live": TALLY, "high_water_ms" (or null) },
//!   "allocators": [{ "allocator", "allocated": TALLY }],
//!   "sizes":      { "rounded", "counts": [[size, allocations]] },
//!   "threads":    [{ "tid", "name", "threads", SUMS }],
//!   "contexts":   [{ "labels": { key: value }, SUMS }],       the first has no labels
//!   "frames":     [{ "function", "file", "line", "package", "kind" }],
//!   "own_lines":  [{ "frame" (or null), "own", SUMS }],        memory by the lines of the service's own code
//!   "table":      [{ "thread", "allocator", "frame" (or null), "context" (if not 0), SUMS }],
//!                                          by thread, allocator, leaf frame and context
//!   "tree":       { "own": SUMS, "nodes": [{ "depth", "frame", SUMS of this very stack, if any }] },
//!   "timeline":   [{ "at_ms", "rss", "heap", "own" }],
//!   "marks":      [{ "name", "at_ms", "live": TALLY }]
//! }
//! TALLY = { "count", "bytes" }
//! SUMS  = "allocated", "high_water", "live", "temporary": TALLY, and "oldest_live_ms" if known
//! ```
//!
//! `frame`, `thread` and `context` are indices into `frames`, `threads` and `contexts`. `kind` is `own`, `package`,
//! `language` or `native`. `nodes` stand in preorder: the nodes after a node with a greater depth are below it. `tree.own` is the sum of all allocations
//! without a call stack. Tallies that are 0 are left out of SUMS. A version may get additional fields. If the meaning of a
//! field changes, `version` rises. [`leaks()`] writes a smaller file, the lines that probably leak.

mod leaks;
mod parts;

use std::io::{self, Write};

use serde::Serialize;

use self::parts::{
    About, Conditions, Frames, OwnLines, Sizes, Table, Threads, Timeline, Totals, Tree,
};
use crate::Report;

pub use leaks::leaks;
pub(crate) use leaks::{Candidate, KnownMemory};

/// The schema's name.
pub const SCHEMA: &str = "heapray-report";

/// The schema's version.
pub const VERSION: u32 = 1;

#[derive(Serialize)]
struct File<'a> {
    schema: &'static str,
    version: u32,
    about: About<'a>,
    conditions: Conditions<'a>,
    totals: Totals,
    allocators: parts::Allocators<'a>,
    sizes: Sizes<'a>,
    threads: Threads<'a>,
    contexts: parts::Contexts<'a>,
    frames: Frames<'a>,
    own_lines: OwnLines<'a>,
    table: Table<'a>,
    tree: Tree<'a>,
    timeline: Timeline<'a>,
    marks: parts::Marks<'a>,
}

/// Writes `report`, one row at a time. Each view is made when it is needed and dropped after its part.
///
/// # Errors
/// If `out` fails.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let file = File {
        schema: SCHEMA,
        version: VERSION,
        about: About::of(report),
        conditions: Conditions::of(report),
        totals: Totals::of(report),
        allocators: parts::Allocators(report),
        sizes: Sizes::of(report),
        threads: Threads(report),
        contexts: parts::Contexts(report),
        frames: Frames(report),
        own_lines: OwnLines(report),
        table: Table(report),
        tree: Tree(report),
        timeline: Timeline(report),
        marks: parts::Marks(report),
    };
    Ok(serde_json::to_writer(out, &file)?)
}
