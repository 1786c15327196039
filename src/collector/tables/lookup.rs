//! Looking up some events at once, so that the cache misses of one are waited for with those of the others.

use super::Tables;
use crate::capture::event::{Event, Kind};
use crate::collector::live::Place;
use crate::collector::sites;
use crate::collector::threads::Threads;

/// Events of a group.
pub(super) const TOGETHER: usize = 32;
/// With more sites than this, the cache does not hold them all.
const MANY_SITES: usize = 2048;

/// Where an event is to be looked up.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::collector) struct Lookup {
    pub(super) place: Place,
    /// The entry that an allocation's thread is most probably counted under.
    pub(super) entry: u32,
    /// The tag of an allocation's site, if that is so.
    pub(super) tag: u32,
    /// The next event is the free of this allocation, by the same thread.
    pub(super) short_lived: bool,
}

impl Lookup {
    #[inline]
    pub(super) fn of(event: &Event, threads: &Threads) -> Lookup {
        let place = Place::of(event.address);
        if event.kind == Kind::Free {
            return Lookup {
                place,
                ..Lookup::default()
            };
        }
        let entry = threads.likely_entry(event.thread);
        Lookup {
            place,
            entry,
            tag: site_key(event, entry).tag(),
            short_lived: false,
        }
    }
}

impl Tables {
    /// Where `events` are to be looked up; of a short-lived block, both events at once. What is there comes
    /// into the cache meanwhile. Gives the number of lookups.
    #[inline]
    pub(super) fn look_up(&self, events: &[Event], lookups: &mut [Lookup; TOGETHER]) -> usize {
        let (many_blocks, many_sites) = (self.live.is_large(), self.sites.len() > MANY_SITES);
        let (mut found, mut at) = (0, 0);
        while at < events.len() {
            let event = &events[at];
            let next = events.get(at + 1);
            let short_lived = next.is_some_and(|next| is_freed_by(event, next));
            let lookup = Lookup {
                short_lived,
                ..Lookup::of(event, &self.threads)
            };
            if many_blocks {
                self.live.prefetch(lookup.place);
            }
            if many_sites {
                self.sites.prefetch_tag(lookup.tag);
            }
            lookups[found % TOGETHER] = lookup;
            found += 1;
            at += 1 + usize::from(short_lived);
        }
        found
    }

    /// Lets the sites that `events` are of come into the cache, once what tells them is there.
    #[inline(always)]
    pub(super) fn prefetch_sites(&self, events: &[Event], lookups: &[Lookup]) {
        if self.sites.len() <= MANY_SITES {
            return;
        }
        let mut at = 0;
        for lookup in lookups {
            self.prefetch_site(&events[at], lookup);
            at += 1 + usize::from(lookup.short_lived);
        }
    }

    #[inline(always)]
    pub(super) fn prefetch_site(&self, event: &Event, lookup: &Lookup) {
        if event.kind != Kind::Free {
            self.sites.prefetch_site_of(lookup.tag);
        } else if let Some(site) = self.live.site(lookup.place) {
            self.sites.prefetch_site(site);
        }
    }
}

/// Whether `next` frees the block that `event` hands out, on the same thread.
#[inline(always)]
pub(super) fn is_freed_by(event: &Event, next: &Event) -> bool {
    // All at once: they are equal together or not at all, mostly.
    next.kind == Kind::Free
        && (next.address ^ event.address) | u64::from(next.thread ^ event.thread) == 0
        && (Kind::Malloc as u8..=Kind::Pvalloc as u8).contains(&(event.kind as u8))
}

#[inline]
pub(super) fn site_key(event: &Event, entry: u32) -> sites::Key {
    sites::Key {
        entry,
        node: event.node,
        kind: event.kind,
    }
}
