//! Sums by thread.

use super::Sums;
use crate::model::Report;

/// Returns the sums of each thread, in the order of [`Report::threads`].
#[must_use]
pub fn by_thread(report: &Report) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); report.threads.len()];
    for site in &report.sites {
        if let Some(of_thread) = sums.get_mut(site.thread.0 as usize) {
            of_thread.add(site);
        }
    }
    sums
}
