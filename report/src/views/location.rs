//! Sums by the code that allocates: the leaf frame.

use std::collections::HashMap;

use super::Sums;
use crate::model::{FrameId, Report};

/// Sums of one leaf frame (function, file, line), over all callers and threads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocationSums {
    /// The leaf frame; `None` for allocations without a call stack.
    pub frame: Option<FrameId>,
    /// Sums of its allocations.
    pub sums: Sums,
}

/// Returns one entry for each leaf frame, in the order of their first call site.
#[must_use]
pub fn by_location(report: &Report) -> Vec<LocationSums> {
    let mut index: HashMap<Option<FrameId>, usize> = HashMap::new();
    let mut locations: Vec<LocationSums> = Vec::new();
    for site in &report.sites {
        let frame = report.stacks.node(site.stack).map(|node| node.frame);
        let at = *index.entry(frame).or_insert_with(|| {
            locations.push(LocationSums {
                frame,
                sums: Sums::default(),
            });
            locations.len() - 1
        });
        locations[at].sums.add(site);
    }
    locations
}
