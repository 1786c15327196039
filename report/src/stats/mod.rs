//! A report as text: what `memray stats` prints, then what it cannot say.

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

/// How many places, threads and modules are listed unless more are asked for: memray's number.
const TOP: usize = 5;

/// The report for people at a terminal.
///
/// The first part is `memray stats` for the same capture, byte for byte: its headings, its histogram, its order. Names
/// are spelt as they are, where a capture file has look-alikes for `;` and `|`. Two ties are broken as well as the
/// report's order allows: modules of the same size, and allocators of the same count. The second part answers what
/// memray's does not: what is still live, and so may leak, comes first.
#[must_use]
pub fn text(report: &Report) -> String {
    text_of_largest(report, TOP)
}

/// As [`text()`], with `num_largest` places, threads and modules in each list instead of 5 (`-n` of `memray stats`).
#[must_use]
pub fn text_of_largest(report: &Report, num_largest: usize) -> String {
    let mut text = String::new();
    memray::put(&mut text, report, num_largest);
    heapray::put(&mut text, report, num_largest);
    text
}

/// The part of [`text()`] that `memray stats` prints.
#[must_use]
pub fn memray_text(report: &Report) -> String {
    let mut text = String::new();
    memray::put(&mut text, report, TOP);
    text
}

/// A place as memray writes it: `function:file:line`.
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
