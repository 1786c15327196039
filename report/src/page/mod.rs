//! Stand-in for the pages.

use crate::Report;
use std::io::{self, Write};

/// The flame graph.
///
/// # Errors
///
/// The sink's.
pub fn flamegraph(report: &Report, out: &mut impl Write) -> io::Result<()> {
    write!(out, "<!DOCTYPE html><title>{}</title>", report.about.end_ms)
}
