//! What was allocated between two views of a session.

use super::hash::Map;
use super::snapshot::{RawSite, Snapshot};
use crate::capture::event::{Kind, NodeId};
use heapray_report::model::Tally;

/// Thread, call stack, context and function of a call site.
type Key = (u32, NodeId, u32, Kind);

/// What each call site had allocated at one moment. About 40 bytes a call site.
#[derive(Debug, Default)]
pub(crate) struct AllocatedBefore {
    sites: Map<Key, Tally>,
    total: Tally,
}

impl AllocatedBefore {
    pub(crate) fn of(snapshot: &Snapshot) -> AllocatedBefore {
        let sites = snapshot.stacks.sites.iter();
        AllocatedBefore {
            sites: sites.map(|site| (key(site), site.allocated)).collect(),
            total: snapshot.totals.allocated,
        }
    }

    /// Leaves in `snapshot`, a later view of the same session, what was allocated since. All else stays.
    pub(crate) fn subtract_from(&self, snapshot: &mut Snapshot) {
        for site in &mut snapshot.stacks.sites {
            if let Some(&before) = self.sites.get(&key(site)) {
                site.allocated = rest(site.allocated, before);
            }
        }
        snapshot.totals.allocated = rest(snapshot.totals.allocated, self.total);
    }
}

fn key(site: &RawSite) -> Key {
    (site.thread, site.node, site.context, site.kind)
}

/// Call sites that were summed up since may have less than before.
fn rest(now: Tally, before: Tally) -> Tally {
    Tally {
        count: now.count.saturating_sub(before.count),
        bytes: now.bytes.saturating_sub(before.bytes),
    }
}
