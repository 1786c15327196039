//! Blocks that the same thread frees with its very next event, as most blocks of a service. They never enter the live table.

use super::Tables;
use super::lookup::{Lookup, site_key};
use crate::capture::event::Event;
use crate::collector::recent::TEMPORARY_WINDOW;
use crate::collector::sites::{self, SiteId, add, one};
use heapray_report::model::Tally;

impl Tables {
    /// Applies the events from `at` on that belong to `lookups`.
    #[inline(always)]
    pub(super) fn take_group(&mut self, events: &[Event], mut at: usize, mut lookups: &[Lookup]) {
        while let [lookup, rest @ ..] = lookups {
            if lookup.short_lived {
                let taken = self.short_lived_below_mark(&events[at..], lookups);
                lookups = &lookups[taken..];
                at += 2 * taken;
                if taken == 0 {
                    self.take_short_lived(events, at, *lookup);
                    lookups = rest;
                    at += 2;
                }
            } else {
                self.take(events, at, *lookup);
                lookups = rest;
                at += 1;
            }
        }
    }

    /// Applies the allocation at `at` and the next event, which is its free.
    #[inline(always)]
    pub(super) fn take_short_lived(&mut self, events: &[Event], at: usize, lookup: Lookup) {
        let (event, free) = (&events[at], &events[at + 1]);
        if self.reallocs.is_empty() && !self.live.may_have(lookup.place, event.address) {
            self.short_lived(event, free, lookup);
        } else {
            self.take(events, at, lookup);
            self.take(events, at + 1, lookup);
        }
    }

    /// Applies as many of the first lookups as are of short-lived blocks, all of one thread, none of which sets a new mark.
    /// Does for each what [`short_lived`](Self::short_lived) does, but writes the sums once. `events` are those of the
    /// lookups. Returns the number of these blocks.
    #[inline(always)]
    pub(super) fn short_lived_below_mark(&mut self, events: &[Event], lookups: &[Lookup]) -> usize {
        let thread = events[0].thread;
        let slot = self.threads.slot(thread);
        if !self.reallocs.is_empty() || self.threads.is_shared(slot) {
            return 0;
        }
        let room = self.peak.room(self.counters.live);
        let (mut sum, mut largest) = (Tally::default(), 0);
        let mut last: Option<(sites::Key, SiteId)> = None;
        for (pair, lookup) in events.chunks_exact(2).zip(lookups) {
            let event = &pair[0];
            let fits = lookup.short_lived & (event.thread == thread) & (event.size < room);
            if !fits || self.live.may_have(lookup.place, event.address) {
                break;
            }
            let key = site_key(event, slot.entry);
            let site = match last {
                Some((known, site)) if known == key => site,
                _ => self.site(event, slot, *lookup),
            };
            last = Some((key, site));
            self.sites
                .short_lived_below_mark(site, event.size, slot.entry);
            self.sizes.add(event.size, 1);
            add(&mut sum, one(event.size));
            largest = event.size.max(largest);
            self.log_short_lived(event, slot);
        }
        let count = sum.count as usize;
        let Some(free) = events[..2 * count].last() else {
            return 0;
        };
        self.counters.events += 2 * sum.count;
        add(&mut self.counters.allocated, sum);
        add(&mut self.counters.freed, sum);
        self.runs.short_lived(slot.run, sum, largest);
        self.clock.at_ms(free.stamp);
        // The earlier ones have left the window again.
        for event in events[..2 * count]
            .chunks_exact(2)
            .skip(count.saturating_sub(TEMPORARY_WINDOW))
        {
            self.threads.allocated(slot, event[0].address);
        }
        count
    }

    /// Applies a block that its thread frees before anything else happens, at a free address. It changes sums, peak and log
    /// like any other block, and need not go through the live table.
    #[inline(always)]
    pub(super) fn short_lived(&mut self, event: &Event, free: &Event, lookup: Lookup) {
        let slot = self.threads.slot(event.thread);
        let site = self.site(event, slot, lookup);
        self.clock.at_ms(event.stamp);
        let counters = &mut self.counters;
        let before = counters.live;
        let mut with = before;
        let block = one(event.size);
        add(&mut with, block);
        counters.events += 2;
        add(&mut counters.allocated, block);
        add(&mut counters.freed, block);
        // If the block does not set a new mark, its site ends with the tally that it had at the last one.
        let brings_mark = self.peak.move_to(with, event.stamp).is_none();
        let keep = self.peak.move_to(before, free.stamp);
        self.sites
            .short_lived(site, block, keep.filter(|_| brings_mark));
        self.sizes.add(event.size, 1);
        self.threads.allocated(slot, event.address);
        self.runs.short_lived(slot.run, block, event.size);
        // The thread has just allocated the block, so it is temporary, unless the site stands for many.
        if self.sites.entry(site) == slot.entry {
            self.sites.temporary(site, block);
        }
        self.log_allocation(event, slot);
        self.log_free(event.address, slot);
    }
}
