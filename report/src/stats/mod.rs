//! Stand-in for the statistics.

use crate::Report;

/// The text.
#[must_use]
pub fn text(report: &Report) -> String {
    format!(
        "\n📏 Total allocations:\n\t{}\n",
        report.totals.allocated.count
    )
}
