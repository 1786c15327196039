//! The high-water mark as pictures that open from disk: flame graphs as SVG, with the root first or the leaf first, and an
//! `index.html` that shows both.
//!
//! Names come from the profiled process and are hostile input: in the files they are text, never markup. Each file is
//! complete: nothing is loaded, and a content security policy in the page names its style and script by their hashes.

mod index;

use std::io::{self, Write};

use crate::Report;
use crate::formats::svg::{Choice, Picture};
use crate::views::{Measure, Unit};

pub use index::Index;

/// Direction of call stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// From the program's entry point.
    RootFirst,
    /// From the code that allocated: equal leaves of different callers are joined.
    LeafFirst,
}

/// Writes the live memory at `report`'s high-water mark as one SVG file. Zoom and search are a script inside it; without
/// scripts it is a picture with all its names.
///
/// # Errors
/// If `out` fails.
pub fn svg(report: &Report, order: Order, out: &mut impl Write) -> io::Result<()> {
    picture(report, order).write_file(out)
}

fn picture(report: &Report, order: Order) -> Picture<'_> {
    let choice = Choice {
        measure: Measure::HighWater,
        unit: Unit::Bytes,
        by_thread: false,
        lines: true,
        leaf_first: order == Order::LeafFirst,
        upwards: false,
        largest_only: true,
    };
    let picture = Picture::of(report, choice);
    let title = format!("Peak memory: {}", picture.total());
    picture.titled(&title)
}
