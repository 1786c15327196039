//! The four sums of a call site, and of whatever joins several.

use std::ops::AddAssign;

use crate::model::{Report, Site, StackId, Tally};

/// What several call sites allocated and kept together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Ever allocated.
    pub allocated: Tally,
    /// Live at the high-water mark.
    pub high_water: Tally,
    /// Live at the end.
    pub live: Tally,
    /// Freed soon by their own thread.
    pub temporary: Tally,
}

impl From<&Site> for Sums {
    fn from(site: &Site) -> Sums {
        Sums {
            allocated: site.allocated,
            high_water: site.high_water,
            live: site.live,
            temporary: site.temporary,
        }
    }
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Sums) {
        self.allocated += other.allocated;
        self.high_water += other.high_water;
        self.live += other.live;
        self.temporary += other.temporary;
    }
}

/// For each stack, the sums of everything that was allocated from it or from what it called: index 0 is the empty
/// stack, and so the sum of all.
#[must_use]
pub fn by_stack(report: &Report) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); report.stacks.len() + 1];
    for site in &report.sites {
        sums[site.stack.0 as usize] += Sums::from(site);
    }
    for index in (1..sums.len()).rev() {
        let parent = report
            .stacks
            .node(StackId(index as u32))
            .map_or(StackId::EMPTY, |node| node.parent);
        let own = sums[index];
        sums[parent.0 as usize] += own;
    }
    sums
}
