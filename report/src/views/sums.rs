//! The sums of call sites.

use std::ops::AddAssign;

use crate::model::{Report, Site, StackId, Tally};

/// Sums of one or several call sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Everything ever allocated; zero if the source format does not have it.
    pub allocated: Tally,
    /// Live at the high-water mark.
    pub high_water: Tally,
    /// Live at the end.
    pub live: Tally,
    /// Freed soon after, by the thread that allocated.
    pub temporary: Tally,
    /// Time at which the oldest live block was allocated, in milliseconds since the start, if known.
    pub oldest_live_ms: Option<u64>,
}

impl Sums {
    /// Adds the sums of `site`.
    pub fn add(&mut self, site: &Site) {
        *self += Sums {
            allocated: site.allocated,
            high_water: site.high_water,
            live: site.live,
            temporary: site.temporary,
            oldest_live_ms: site.oldest_live_ms,
        };
    }

    /// Returns whether all sums are 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        let zero = Tally::default();
        self.allocated == zero && self.high_water == zero && self.live == zero
    }
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Sums) {
        self.allocated += other.allocated;
        self.high_water += other.high_water;
        self.live += other.live;
        self.temporary += other.temporary;
        self.oldest_live_ms = match (self.oldest_live_ms, other.oldest_live_ms) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// Returns sums of call sites by number, `count` of them: `number` says which one a site belongs to. Others are left out.
pub(crate) fn sums_by(report: &Report, count: usize, number: impl Fn(&Site) -> u32) -> Vec<Sums> {
    let mut all = vec![Sums::default(); count];
    for site in &report.sites {
        if let Some(sums) = all.get_mut(number(site) as usize) {
            sums.add(site);
        }
    }
    all
}

/// Returns, for each stack, the sums of all allocations from it or its callees. Index 0 is the empty stack, and so the sum
/// of all.
#[must_use]
pub fn by_stack(report: &Report) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); report.stacks.len() + 1];
    for site in &report.sites {
        sums[site.stack.0 as usize].add(site);
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
