//! The effects of an allocation, a free and a reallocation of a block.

use super::Tables;
use super::lookup::{Lookup, site_key};
use crate::capture::event::{Event, Kind};
use crate::collector::live::Block;
use crate::collector::reallocs::UnderWay;
use crate::collector::runs::Place;
use crate::collector::sites::{SiteId, add, one};
use crate::collector::threads::ThreadSlot;
use heapray_report::model::Tally;

impl Tables {
    #[inline(always)]
    pub(super) fn allocate(&mut self, event: &Event, lookup: Lookup) {
        let slot = self.threads.slot(event.thread);
        self.allocate_as(event, slot, lookup);
    }

    #[inline(always)]
    fn allocate_as(&mut self, event: &Event, slot: ThreadSlot, lookup: Lookup) {
        if self.samples.is_some() {
            return self.allocate_sampled(event, slot, lookup);
        }
        let site = self.site(event, slot, lookup);
        let block = Block {
            size: event.size,
            site,
            birth: self.clock.birth(event.stamp),
        };
        if let Some(old) = self.live.insert(lookup.place, event.address, block) {
            self.replaced(event, &old);
        }
        self.count_allocation(event, slot, site, one(event.size));
    }

    /// Returns the site of an allocation by the thread in `slot`.
    #[inline(always)]
    pub(in crate::collector) fn site(
        &mut self,
        event: &Event,
        slot: ThreadSlot,
        lookup: Lookup,
    ) -> SiteId {
        let key = site_key(event, slot.entry);
        let tag = if slot.entry == lookup.entry {
            lookup.tag
        } else {
            key.tag()
        };
        self.sites.of(key, tag)
    }

    #[inline(always)]
    pub(super) fn free(&mut self, event: &Event, lookup: Lookup) {
        if !self.reallocs.is_empty() {
            self.reallocs.forget_block(event.address);
        }
        if self.samples.is_some() {
            return self.free_sampled(event);
        }
        match self.live.remove(lookup.place, event.address) {
            Some(block) => {
                self.counters.events += 1;
                let slot = self.count_free(event.stamp, event.thread, event.address, &block);
                self.freed_in_run(slot, block.site, one(block.size));
            }
            None => self.unknown_free(event),
        }
    }

    /// Counts a free of an unknown block. An untracked thread's free may be of a block that was not recorded. While
    /// sampling, most frees of unrecorded blocks are not recorded, so a count of the others would mean nothing.
    pub(super) fn unknown_free(&mut self, event: &Event) {
        if !event.is_untracked() && self.samples.is_none() {
            self.counters.events += 1;
            self.counters.unknown_frees += 1;
        }
    }

    /// Handles a block that was handed out at the address of the live block `old`.
    #[cold]
    pub(super) fn replaced(&mut self, event: &Event, old: &Block) {
        let thread = self.freeing_thread(event, old.site);
        let slot = self.count_free(event.stamp, thread, event.address, old);
        self.freed_in_run(slot, old.site, one(old.size));
    }

    /// Returns the thread that freed the block of `site` whose address was handed out again: one with a running realloc, or,
    /// if there is none, the event's own thread, because the free was lost.
    pub(in crate::collector) fn freeing_thread(&mut self, event: &Event, site: SiteId) -> u32 {
        let context = self.context_of(site);
        match self.reallocs.gone_at(event.address, context) {
            Some(realloc) => {
                self.counters.events += 1;
                realloc.thread
            }
            None => event.thread,
        }
    }

    /// Finishes the reallocation that the event's thread had begun, if any. Returns whether nothing else is to be done for
    /// the event.
    #[cold]
    pub(super) fn settle(&mut self, event: &Event) -> bool {
        // A thread starts again when its last events go through another ring.
        if event.kind == Kind::ThreadStart {
            return false;
        }
        let Some(realloc) = self.reallocs.end_of(event.thread) else {
            return false;
        };
        if event.kind == Kind::ReallocFailed && event.address == realloc.address {
            return true;
        }
        let old = match realloc.gone_in {
            Some(_) => None,
            None => self.finish(event.stamp, realloc),
        };
        let context = realloc
            .gone_in
            .or_else(|| old.map(|old| self.context_of(old.site)));
        if event.kind == Kind::Realloc
            && context.is_some_and(|context| self.reallocate_in(event, context))
        {
            // The block stays with its context. It is neither freed nor allocated by the thread's run.
            return true;
        }
        if let Some(old) = old {
            let slot = self.threads.slot(realloc.thread);
            self.freed_in_run(slot, old.site, one(old.size));
        }
        false
    }

    /// Applies a `Realloc` whose old block belonged to `context`, as the new one does. Returns false, and does nothing, if that
    /// is the thread's context now.
    fn reallocate_in(&mut self, event: &Event, context: u32) -> bool {
        let now = self.threads.slot(event.thread);
        let slot = self.threads.in_context(now, context);
        let differs = slot.entry != now.entry;
        if differs {
            self.allocate_as(event, slot, Lookup::of(event, &self.live, &self.threads));
        }
        differs
    }

    /// Returns the context of the blocks of a site.
    fn context_of(&self, site: SiteId) -> u32 {
        self.threads.thread_and_context(self.sites.entry(site)).1
    }

    /// Frees the reallocation's old block. Returns the block, if it was known.
    #[cold]
    pub(super) fn finish(&mut self, stamp: u64, realloc: UnderWay) -> Option<Block> {
        if self.samples.is_some() {
            return self.finish_sampled(stamp, realloc);
        }
        self.counters.events += 1;
        let block = if realloc.known {
            let place = self.live.place(realloc.address);
            self.live.remove(place, realloc.address)
        } else {
            None
        };
        match block {
            Some(block) => {
                self.count_free(stamp, realloc.thread, realloc.address, &block);
            }
            None => self.counters.unknown_frees += 1,
        }
        block
    }

    /// Counts blocks of `site` that the thread in `slot` has freed, for the run that it is in.
    #[inline(always)]
    pub(super) fn freed_in_run(&mut self, slot: ThreadSlot, site: SiteId, blocks: Tally) {
        if slot.run != Place::NONE {
            let context = self.context_of(site);
            self.runs.freed(slot.run, blocks, context);
        }
    }

    /// Adds an allocation to sums, peak and log. The block itself is in its table.
    #[inline(always)]
    pub(in crate::collector) fn count_allocation(
        &mut self,
        event: &Event,
        slot: ThreadSlot,
        site: SiteId,
        stands_for: Tally,
    ) {
        let counters = &mut self.counters;
        counters.events += 1;
        add(&mut counters.allocated, stands_for);
        add(&mut counters.live, stands_for);
        let keep = self.peak.move_to(counters.live, event.stamp);
        self.sites.allocate(site, stands_for, keep);
        self.sizes.add(event.size, stands_for.count);
        self.threads.allocated(slot, event.address);
        self.runs.allocated(slot.run, stands_for);
        self.log_allocation(event, slot);
    }

    /// Adds the free of `block` by `thread` to sums, peak and log. The block is out of its table. Returns the thread's slot.
    #[inline(always)]
    pub(super) fn count_free(
        &mut self,
        stamp: u64,
        thread: u32,
        address: u64,
        block: &Block,
    ) -> ThreadSlot {
        let slot = self.threads.slot(thread);
        self.subtract(stamp, block.site, 1, block.size);
        self.notice_temporary(slot, address, block.site, block.size);
        self.log_free(address, slot);
        slot
    }

    /// Subtracts live bytes, and blocks (or adds one).
    #[inline(always)]
    pub(in crate::collector) fn subtract(
        &mut self,
        stamp: u64,
        site: SiteId,
        blocks: i64,
        bytes: u64,
    ) {
        let counters = &mut self.counters;
        counters.freed.count += blocks.max(0) as u64;
        counters.freed.bytes = counters.freed.bytes.wrapping_add(bytes);
        counters.live.count = counters.live.count.wrapping_add_signed(-blocks);
        counters.live.bytes = counters.live.bytes.wrapping_sub(bytes);
        let keep = self.peak.move_to(counters.live, stamp);
        self.sites.free(site, blocks, bytes, keep);
    }

    /// Checks whether a whole block of `site` that the thread in `slot` freed was temporary.
    #[inline(always)]
    pub(super) fn notice_temporary(
        &mut self,
        slot: ThreadSlot,
        address: u64,
        site: SiteId,
        size: u64,
    ) {
        if self.threads.allocated_recently(slot, address) && self.is_of_thread(site, slot) {
            self.sites.temporary(site, one(size));
        }
    }

    /// Returns whether the thread in `slot`, or one that is counted together with it, allocated the blocks of `site`.
    #[inline(always)]
    pub(in crate::collector) fn is_of_thread(&self, site: SiteId, slot: ThreadSlot) -> bool {
        let entry = self.sites.entry(site);
        entry == slot.entry || self.threads.thread_and_context(entry).0 == slot.thread
    }
}
