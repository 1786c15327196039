//! A report as text: the output of `memray stats`, and then statistics that memray does not have.

mod estimates;
mod heapray;
mod histogram;
mod json;
mod memray;
mod time;

use crate::memray::in_one_line;
use crate::model::{FrameId, Report};

pub(crate) use estimates::Estimates;
pub use estimates::estimates;
pub use json::{JsonOptions, json};

/// Default number of places, threads and modules in each list, as in memray.
const TOP: usize = 5;

/// Returns the report for users at a terminal.
///
/// The first part is the output of `memray stats` for the same capture, byte for byte: its headings, its histogram, its
/// order. Names have their real characters, where a capture file has similar ones for `;` and `|`. Two ties are broken as
/// well as the report's order allows: modules of the same size, and allocators of the same count. The second part has what
/// memray's does not: the live memory, which may be a leak, comes first.
#[must_use]
pub fn text(report: &Report) -> String {
    text_of_largest(report, TOP)
}

/// Does what [`text()`] does, with `num_largest` places, threads and modules in each list instead of 5 (`-n` of `memray
/// stats`).
#[must_use]
pub fn text_of_largest(report: &Report, num_largest: usize) -> String {
    let mut text = String::new();
    memray::put(&mut text, report, num_largest);
    heapray::put(&mut text, report, num_largest);
    text
}

/// Returns the part of [`text()`] that `memray stats` prints.
#[must_use]
pub fn memray_text(report: &Report) -> String {
    let mut text = String::new();
    memray::put(&mut text, report, TOP);
    text
}

/// Returns a place as in memray: `function:file:line`.
fn place(report: &Report, frame: Option<FrameId>) -> String {
    let frame = frame.and_then(|FrameId(frame)| report.frames.get(frame as usize));
    let Some(frame) = frame else {
        return "<stack trace unavailable>".into();
    };
    let function = report.strings.get(frame.function);
    if function == "<unknown>" {
        return "<stack trace unavailable>".into();
    }
    format!(
        "{}:{}:{}",
        in_one_line(function),
        in_one_line(report.strings.get(frame.file)),
        frame.line
    )
}
