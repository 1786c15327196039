//! Call sites by the service's own code, for the question "which of my lines keeps this memory?"
//!
//! The memory of a call stack is charged to its first frame, from the leaf, that is the service's own. Every byte is charged
//! to exactly one frame, so the sums over all entries are those of the report.

use std::collections::HashMap;

use super::{Kind, Origins, Sums};
use crate::Report;
use crate::hash::FastMap;
use crate::model::{FrameId, StackId};

/// Line of the service, and the sums of the allocations through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnSite {
    /// The line. If no frame of a stack is the service's own: the frame nearest the leaf that is not the standard library's
    /// or native, else the leaf. `None` for the empty stack.
    pub frame: Option<FrameId>,
    /// Set if `frame` is the service's own code.
    pub is_own: bool,
    /// Sums that are charged to it.
    pub sums: Sums,
}

/// Returns the lines of `report`, most live bytes first, then most bytes at the high-water mark.
#[must_use]
pub fn own_sites(report: &Report, origins: &Origins) -> Vec<OwnSite> {
    let mut charged: FastMap<StackId, (Option<FrameId>, bool)> = FastMap::default();
    let mut sites: HashMap<Option<FrameId>, OwnSite> = HashMap::new();
    for site in &report.sites {
        let (frame, is_own) = *charged
            .entry(site.stack)
            .or_insert_with(|| own_frame(report, origins, site.stack));
        sites
            .entry(frame)
            .or_insert(OwnSite {
                frame,
                is_own,
                sums: Sums::default(),
            })
            .sums
            .add(site);
    }
    let mut sites: Vec<OwnSite> = sites.into_values().collect();
    sites.retain(|site| !site.sums.is_zero());
    sites.sort_by_key(|site| {
        let sums = site.sums;
        std::cmp::Reverse((
            sums.live.bytes,
            sums.high_water.bytes,
            std::cmp::Reverse(site.frame),
        ))
    });
    sites
}

/// Returns the frame that the memory of `stack` is charged to, and whether it is the service's own: see [`OwnSite::frame`].
#[must_use]
pub fn own_frame(report: &Report, origins: &Origins, stack: StackId) -> (Option<FrameId>, bool) {
    let mut leaf = None;
    let mut package = None;
    for frame in report.stacks.leaf_to_root(stack) {
        leaf = leaf.or(Some(frame));
        match origins.kind(frame) {
            Kind::Own => return (Some(frame), true),
            Kind::Package => package = package.or(Some(frame)),
            Kind::Language | Kind::Native => {}
        }
    }
    (package.or(leaf), false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Allocator, ContextId, Site, Tally, ThreadId};

    #[test]
    fn a_stack_is_charged_to_the_first_own_frame_from_the_leaf() {
        let mut report = Report::default();
        let frames = [
            ("shop::f", "src/main.rs"),
            (
                "tokio::f",
                "/home/dev/.cargo/registry/src/i-1/tokio-1.0.0/src/task.rs",
            ),
            ("shop::f", "src/cache.rs"),
            ("alloc::f", "/rustc/0/library/alloc/src/vec.rs"),
        ];
        for (function, file) in frames {
            report.add_frame(function, file, 1);
        }
        let mut add = |path: &[u32], bytes| {
            let stack = path
                .iter()
                .fold(StackId::EMPTY, |at, &f| report.stacks.child(at, FrameId(f)));
            let live = Tally { count: 1, bytes };
            report.sites.push(Site {
                context: ContextId::NONE,
                thread: ThreadId(0),
                stack,
                allocator: Allocator::Malloc,
                allocated: live,
                high_water: live,
                live,
                temporary: Tally::default(),
                oldest_live_ms: None,
            });
        };
        add(&[0, 1, 2, 3], 100);
        add(&[0, 1, 3], 5);
        add(&[1, 3], 30);
        add(&[3], 40);
        add(&[], 1);
        add(&[2], 11);
        let origins = Origins::of(&report);
        let found: Vec<_> = own_sites(&report, &origins)
            .into_iter()
            .map(|site| (site.frame.map(|f| f.0), site.is_own, site.sums.live.bytes))
            .collect();
        assert_eq!(
            found,
            [
                (Some(2), true, 111),
                (Some(3), false, 40),
                (Some(1), false, 30),
                (Some(0), true, 5),
                (None, false, 1),
            ]
        );
    }
}
