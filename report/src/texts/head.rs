//! The line above each text: what is shown, and its sum.

use std::io::{self, Write};

use super::Options;
use super::cell::shorten;
use super::paint::Paint;
use crate::memray::in_one_line;
use crate::model::{Report, Tally};
use crate::stats::estimates;
use crate::units::{counted, lost_since, size};
use crate::views::Measure;

/// Writes the line, and returns the sum of all call sites.
pub(super) fn put(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<Tally> {
    let mut whole = Tally::default();
    for site in &report.sites {
        whole += options.measure.of(site);
    }
    let paint = Paint(options.colours);
    let what = match options.measure {
        Measure::HighWater => "High-water mark",
        Measure::Live if report.conditions.still_recording => "Still live now",
        Measure::Live => "Still live at the end",
        Measure::Allocated => "Allocated in total",
        Measure::Temporary => "Temporary",
    };
    let sum = format!(
        "{}: {} in {}",
        what,
        size(whole.bytes),
        counted(whole.count, "allocation")
    );
    writeln!(out, "{}", paint.bold(shorten(&sum, options.columns())))?;
    let command = in_one_line(&report.about.command_line);
    if !command.is_empty() {
        let command = shorten(&command, options.columns());
        writeln!(out, "{}", paint.dim(command))?;
    }
    if let Some(line) = estimates(report).first() {
        writeln!(
            out,
            "≈ {}",
            shorten(line, options.columns().saturating_sub(2))
        )?;
    }
    if report.conditions.lost_events > 0 {
        let lost = counted(report.conditions.lost_events, "event");
        let since = lost_since(&report.conditions);
        writeln!(out, "⚠ {lost} lost{since}: sums are too low")?;
    }
    writeln!(out)?;
    Ok(whole)
}
