//! A flame graph as one SVG file: a picture with all its names that opens anywhere, also without scripts.
//!
//! Zoom and search are a script inside the file. Names come from the profiled process and are hostile input: in the file
//! they are text, never markup. Boxes of less than 0.1 % of the width are left out, and the subtitle says so. Options: all
//! but those of pprof.

mod colors;
mod draw;
mod label;
mod tree;

use std::io::{self, Write};

use super::Options;
use crate::Report;
use crate::memray::in_one_line;
use crate::units::size;
use crate::views::{Measure, Unit};

pub(crate) use draw::{SCRIPT, STYLE};

/// Content and form of a picture.
pub(crate) struct Choice {
    pub(crate) measure: Measure,
    pub(crate) unit: Unit,
    /// Set if the boxes next to the root box are threads.
    pub(crate) by_thread: bool,
    /// Set if boxes are lines of code, named in a second line.
    pub(crate) lines: bool,
    /// Set if equal leaves of different callers are joined.
    pub(crate) leaf_first: bool,
    /// Set if the root box is at the bottom.
    pub(crate) upwards: bool,
    /// Set if only the largest stacks, which have 99 % together, are drawn.
    pub(crate) largest_only: bool,
}

/// Picture that can be written.
pub(crate) struct Picture<'a> {
    report: &'a Report,
    choice: Choice,
    tree: tree::Tree,
    title: String,
}

impl<'a> Picture<'a> {
    pub(crate) fn of(report: &'a Report, choice: Choice) -> Picture<'a> {
        let tree = tree::Tree::of(report, &choice);
        let title = match &*report.about.command_line {
            "" => "Heap profile".into(),
            command_line => in_one_line(command_line).into_owned(),
        };
        Picture {
            report,
            choice,
            tree,
            title,
        }
    }

    pub(crate) fn titled(mut self, title: &str) -> Picture<'a> {
        self.title = in_one_line(title).into_owned();
        self
    }

    /// Returns the sum of all bytes, including stacks that are left out, for users.
    pub(crate) fn total(&self) -> String {
        format!("{}{}", near(self.report), size(self.tree.total.bytes))
    }

    fn subtitle(&self) -> String {
        let (measure, total) = (self.choice.measure.title(), self.tree.total);
        let near = near(self.report);
        let (bytes, blocks) = (self.total(), blocks(total.count));
        let mut text = match self.choice.unit {
            Unit::Bytes => format!("{measure}: {bytes} in {near}{blocks}"),
            Unit::Count => format!("{measure}: {near}{blocks} of {bytes}"),
        };
        if self.choice.leaf_first {
            text += ", by the code that allocated";
        }
        text + &format!("; less than {} % is left out", tree::NARROWEST * 100.0)
    }
}

/// Writes `report` as an SVG file. Needs about 100 bytes for each node of the joined call stacks.
///
/// # Errors
/// If `out` fails.
pub fn write(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let choice = Choice {
        measure: options.measure,
        unit: options.unit,
        by_thread: options.by_thread,
        lines: options.lines,
        leaf_first: options.reversed,
        upwards: !options.inverted,
        largest_only: false,
    };
    let picture = Picture::of(report, choice);
    match &options.title {
        Some(title) => picture.titled(title).write_file(out),
        None => picture.write_file(out),
    }
}

/// Returns the sign before numbers that are estimates.
fn near(report: &Report) -> &'static str {
    let sampled = report.conditions.sampling.is_some();
    if sampled { "≈ " } else { "" }
}

fn blocks(count: u64) -> String {
    let noun = if count == 1 { "block" } else { "blocks" };
    format!("{count} {noun}")
}
