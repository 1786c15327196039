//! Sums by thread.

use super::{Sums, sums_by};
use crate::model::Report;

/// Returns the sums of each thread, in the order of [`Report::threads`].
#[must_use]
pub fn by_thread(report: &Report) -> Vec<Sums> {
    sums_by(report, report.threads.len(), |site| site.thread.0)
}
