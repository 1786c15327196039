//! Stand-in for memray's capture format.

use crate::{Report, model::Event};
use std::io::{self, Write};

/// Format versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Version {
    V12,
    V13,
}

/// Writes all events.
///
/// # Errors
///
/// The sink's.
pub fn write_all(
    report: &Report,
    events: impl IntoIterator<Item = io::Result<Event>>,
    version: Version,
    out: &mut impl Write,
) -> io::Result<()> {
    events.into_iter().try_for_each(|event| event.map(drop))?;
    write_aggregated(report, version, out)
}

/// Writes sums.
///
/// # Errors
///
/// The sink's.
pub fn write_aggregated(report: &Report, version: Version, out: &mut impl Write) -> io::Result<()> {
    write!(out, "memray\0{version:?} {:?}", report.about)
}
