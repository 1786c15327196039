//! Looks up several events at once, so that their cache misses overlap.

use super::Tables;
use crate::capture::event::{Event, Kind};
use crate::collector::live::{LiveTable, Place};
use crate::collector::sites;
use crate::collector::threads::Threads;

/// Number of events in a group.
pub(super) const GROUP: usize = 32;
/// Number of sites above which the cache does not hold them all.
const MANY_SITES: usize = 2048;

/// Places at which an event is looked up.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::collector) struct Lookup {
    pub(super) place: Place,
    /// The entry that an allocation's thread is most probably counted under.
    pub(super) entry: u32,
    /// The tag of an allocation's site, if that entry is right.
    pub(super) tag: u32,
    /// Set if the next event is the free of this allocation, by the same thread.
    pub(super) short_lived: bool,
}

impl Lookup {
    #[inline]
    pub(super) fn of(event: &Event, live: &LiveTable, threads: &Threads) -> Lookup {
        Lookup::at(live.place(event.address), event, threads)
    }

    /// Does what [`of`](Self::of) does, for an address whose place is known.
    #[inline(always)]
    fn at(place: Place, event: &Event, threads: &Threads) -> Lookup {
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
    /// Finds the places at which `events` are looked up, for a short-lived block for both events at once. Prefetches those
    /// places. Returns the number of lookups.
    #[inline]
    pub(super) fn look_up(&mut self, events: &[Event], lookups: &mut [Lookup; GROUP]) -> usize {
        let (many_blocks, many_sites) = (self.live.is_large(), self.sites.len() > MANY_SITES);
        let (mut found, mut at) = (0, 0);
        while at < events.len() {
            let event = &events[at];
            let next = events.get(at + 1);
            let short_lived = next.is_some_and(|next| is_freed_by(event, next));
            let place = self.live.place_again(event.address);
            let lookup = Lookup {
                short_lived,
                ..Lookup::at(place, event, &self.threads)
            };
            if many_blocks {
                self.live.prefetch(lookup.place, event.address);
            }
            if many_sites {
                self.sites.prefetch_tag(lookup.tag);
            }
            lookups[found % GROUP] = lookup;
            found += 1;
            at += 1 + usize::from(short_lived);
        }
        found
    }

    /// Prefetches the sites of `events`, once the words that lead to them are in the cache.
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
        } else if let Some(site) = self.live.site(lookup.place, event.address) {
            self.sites.prefetch_site(site);
        }
    }
}

/// Returns whether `next` frees the block that `event` hands out, on the same thread.
#[inline(always)]
pub(super) fn is_freed_by(event: &Event, next: &Event) -> bool {
    // Without branches: mostly, all of these are equal or none is.
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
