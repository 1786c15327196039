//! All tables of a session, and what each event does to them.

use heapray_report::model::{Mark, Moment, Tally};

use super::call_tree::CallTree;
use super::clock::{Clock, CoarseClock};
use super::lately::TEMPORARY_WINDOW;
use super::live::{Block, LiveTable, Place};
use super::log::{Known, LogEntry, LogWriter};
use super::parts::Part;
use super::peak::Peak;
use super::ranges::Ranges;
use super::reallocs::{Reallocs, UnderWay};
use super::samples::Samples;
use super::sites::{self, SiteId, Sites, add, one};
use super::sizes::Sizes;
use super::threads::{Seat, Threads};
use super::timeline::Timeline;
use crate::capture::event::{Event, Kind, NodeId};
use crate::capture::modules;

/// Events that are looked up together, so that the cache misses of one are waited for with those of the others.
const TOGETHER: usize = 32;
/// With more sites than this, the cache does not hold them all.
const MANY_SITES: usize = 2048;

/// Marks of a session: a service that sets one at every turn must not fill its memory with them.
const MARKS: usize = 1_000;

/// Where an event is to be looked up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lookup {
    place: Place,
    /// The entry that an allocation's thread is most probably counted under.
    entry: u32,
    /// The tag of an allocation's site, if that is so.
    tag: u32,
    /// The next event is the free of this allocation, by the same thread.
    passing: bool,
}

impl Lookup {
    #[inline]
    fn of(event: &Event, threads: &Threads) -> Lookup {
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
            passing: false,
        }
    }
}

/// The sums that cost nothing to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Allocations and frees seen, unknown ones included. A `realloc` is one of each; a failed one is neither.
    pub events: u64,
    /// Allocations.
    pub allocated: Tally,
    /// Frees of known blocks. Of a range, the bytes of each `munmap` and the block when its last byte goes.
    pub freed: Tally,
    /// Live now. Its bytes are those allocated less those freed; so are its blocks, but for one more for each range that
    /// a `munmap` cut in two.
    pub live: Tally,
    /// Live at the high-water mark.
    pub high_water: Tally,
    /// Frees of blocks that the session did not see being allocated.
    pub unknown_frees: u64,
}

/// The tables of a session. Events come in the order of time; see [`Kind`] for what each means.
#[derive(Debug)]
pub struct Tables {
    pub(super) counters: Counters,
    pub(super) clock: CoarseClock,
    pub(super) peak: Peak,
    pub(super) live: LiveTable,
    pub(super) ranges: Ranges,
    pub(super) sites: Sites,
    pub(super) sizes: Sizes,
    pub(super) threads: Threads,
    reallocs: Reallocs,
    pub(super) call_tree: CallTree,
    pub(super) timeline: Timeline,
    pub(super) marks: Vec<Mark>,
    pub(super) log: Option<LogWriter>,
    /// Where events are samples: what each stands for, and the live table of these.
    pub(super) samples: Option<Box<Samples>>,
    /// What is summed up by itself besides.
    pub(super) parts: Vec<Part>,
}

impl Tables {
    /// Empty tables of a session that begins now, by `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Tables {
        Tables {
            counters: Counters::default(),
            clock: CoarseClock::new(clock),
            peak: Peak::new(clock.start_stamp),
            live: LiveTable::default(),
            ranges: Ranges::default(),
            sites: Sites::default(),
            sizes: Sizes::default(),
            threads: Threads::default(),
            reallocs: Reallocs::default(),
            call_tree: CallTree::default(),
            timeline: Timeline::default(),
            marks: Vec::new(),
            log: None,
            samples: None,
            parts: Vec::new(),
        }
    }

    /// Takes what is allocated for samples with a point each `mean` bytes, except ranges. Say so before the first event.
    #[must_use]
    pub fn with_samples(mut self, mean: u64) -> Tables {
        self.samples = Some(Box::new(Samples::new(mean)));
        self
    }

    /// Writes every event to `log`, too. Give it before the first event.
    #[must_use]
    pub fn with_log(mut self, log: LogWriter) -> Tables {
        self.log = Some(log);
        self
    }

    /// Keeps threads in `threads`, which are none yet. Give them before the first event.
    #[must_use]
    pub(super) fn with_threads(mut self, threads: Threads) -> Tables {
        self.threads = threads;
        self
    }

    /// The call tree that events' nodes belong to.
    pub fn call_tree_mut(&mut self) -> &mut CallTree {
        &mut self.call_tree
    }

    /// Writes to the log's file what is not in it yet, names before the events that need them.
    #[cold]
    pub fn flush_log(&mut self) {
        if let Some(log) = &mut self.log {
            log.tell(Known {
                modules: &modules::history(),
                nodes: self.call_tree.nodes(),
                threads: self.threads.list(),
                marks: &self.marks,
            });
            log.flush();
        }
    }

    /// The event log, to ask it how it stands.
    #[must_use]
    pub fn log(&self) -> Option<&LogWriter> {
        self.log.as_ref()
    }

    /// Why there is no event log, if one was given up.
    #[must_use]
    pub fn log_given_up(&self) -> Option<String> {
        self.log()?.given_up().map(str::to_owned)
    }

    /// The sums up to the last event.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            high_water: self.peak.mark(),
            ..self.counters
        }
    }

    /// Milliseconds between two rows of the timeline: [`reading`](Self::reading) more often tells nothing more.
    #[must_use]
    pub fn reading_step_ms(&self) -> u64 {
        self.timeline.step_ms()
    }

    /// A reading of the process's resident bytes and of heapray's own memory, taken at `stamp`.
    pub fn reading(&mut self, stamp: u64, rss: u64, own: u64) {
        let at_ms = self.clock.at_ms(stamp);
        let heap = self.counters.live.bytes;
        let new_row = self.timeline.push(Moment {
            at_ms,
            rss,
            heap,
            own,
        });
        // As seldom as rows: an idle service must not fill its log with readings.
        if new_row {
            self.tell(&LogEntry::Memory { at_ms, rss });
        }
        self.reading_of_parts(stamp, rss, own);
    }

    /// Names the moment at `stamp`. `None`, and nothing is named, where 1,000 are named already.
    pub fn mark(&mut self, name: String, stamp: u64) -> Option<Mark> {
        if self.marks.len() >= MARKS {
            return None;
        }
        let mark = Mark {
            name,
            at_ms: self.clock.at_ms(stamp),
            live: self.counters.live,
        };
        self.marks.push(mark.clone());
        self.mark_parts(&mark, stamp);
        Some(mark)
    }

    /// Takes in events, oldest first. Faster than one by one.
    pub fn apply_batch(&mut self, events: &[Event]) {
        if !self.parts.is_empty() {
            self.apply_to_parts(events);
        }
        if self.samples.is_some() {
            // There are few, and none of them passes by the tables.
            for (at, event) in events.iter().enumerate() {
                self.take(events, at, Lookup::of(event, &self.threads));
            }
            return;
        }
        // While one group is taken in, what the next one needs is on its way.
        let mut lookups = [[Lookup::default(); TOGETHER]; 2];
        let mut found = 0;
        let mut groups = events.chunks(TOGETHER).enumerate().peekable();
        if let Some((_, first)) = groups.peek() {
            found = self.look_up(first, &mut lookups[0]);
        }
        while let Some((number, group)) = groups.next() {
            let now = number % 2;
            let next = groups
                .peek()
                .map_or(0, |(_, next)| self.look_up(next, &mut lookups[1 - now]));
            let found = std::mem::replace(&mut found, next);
            self.prefetch_sites(group, &lookups[now][..found]);
            self.take_group(events, number * TOGETHER, &lookups[now][..found]);
        }
    }

    /// Takes in the events from `at` on that are those of `lookups`.
    #[inline(always)]
    fn take_group(&mut self, events: &[Event], mut at: usize, mut lookups: &[Lookup]) {
        while let [lookup, rest @ ..] = lookups {
            if lookup.passing {
                let passed = self.pass_below_mark(&events[at..], lookups);
                lookups = &lookups[passed..];
                at += 2 * passed;
                if passed == 0 {
                    self.take_passing(events, at, *lookup);
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

    /// Takes in an event.
    pub fn apply(&mut self, event: &Event) {
        let events = std::slice::from_ref(event);
        if !self.parts.is_empty() {
            self.apply_to_parts(events);
        }
        self.take(events, 0, Lookup::of(event, &self.threads));
    }

    /// Where `events` are to be looked up; of a block that is passing, both events at once. What is there comes
    /// into the cache meanwhile. Gives the number of lookups.
    #[inline]
    fn look_up(&self, events: &[Event], lookups: &mut [Lookup; TOGETHER]) -> usize {
        let (many_blocks, many_sites) = (self.live.is_large(), self.sites.len() > MANY_SITES);
        let (mut found, mut at) = (0, 0);
        while at < events.len() {
            let event = &events[at];
            let next = events.get(at + 1);
            let passing = next.is_some_and(|next| is_freed_by(event, next));
            let lookup = Lookup {
                passing,
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
            at += 1 + usize::from(passing);
        }
        found
    }

    /// Lets the sites that `events` are of come into the cache, once what tells them is there.
    #[inline(always)]
    fn prefetch_sites(&self, events: &[Event], lookups: &[Lookup]) {
        if self.sites.len() <= MANY_SITES {
            return;
        }
        let mut at = 0;
        for lookup in lookups {
            self.prefetch_site(&events[at], lookup);
            at += 1 + usize::from(lookup.passing);
        }
    }

    #[inline(always)]
    fn prefetch_site(&self, event: &Event, lookup: &Lookup) {
        if event.kind != Kind::Free {
            self.sites.prefetch_site_of(lookup.tag);
        } else if let Some(site) = self.live.site(lookup.place) {
            self.sites.prefetch_site(site);
        }
    }

    /// Takes in the event at `at`. Those after it are known to follow.
    #[inline(always)]
    fn take(&mut self, events: &[Event], at: usize, lookup: Lookup) {
        let event = &events[at];
        if !self.reallocs.is_empty() && self.settle(event) {
            return;
        }
        match event.kind {
            Kind::Free => self.free(event, lookup),
            Kind::Malloc
            | Kind::Realloc
            | Kind::Calloc
            | Kind::PosixMemalign
            | Kind::AlignedAlloc
            | Kind::Memalign
            | Kind::Valloc
            | Kind::Pvalloc => self.allocate(event, lookup),
            Kind::Mmap => self.map(event, lookup),
            Kind::Munmap => self.unmap(event),
            Kind::ReallocFree => {
                let known = match &self.samples {
                    None => self.live.contains(event.address),
                    Some(samples) => samples.contains(event.address),
                };
                if known || event.node != NodeId::QUIETLY {
                    self.reallocs.begin(event.thread, event.address, known);
                }
            }
            // Its beginning was lost, so nothing was done that need be undone.
            Kind::ReallocFailed => {}
            // `settle` has finished what it is the end of.
            Kind::ReallocDone => {}
            Kind::Sampling => self.note_mean(event),
            Kind::ThreadStart => self.threads.start(event, &events[at + 1..]),
            Kind::ThreadName => {
                self.threads.end(event);
                if let Some(samples) = &mut self.samples {
                    samples.forget_thread(event.thread);
                }
            }
        }
    }

    /// Bytes of memory that the tables hold.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.live.memory_bytes()
            + self.ranges.memory_bytes()
            + self.sites.memory_bytes()
            + self.sizes.memory_bytes()
            + self.threads.memory_bytes()
            + self.call_tree.memory_bytes()
            + self.timeline.memory_bytes()
            + self
                .marks
                .iter()
                .map(|mark| (size_of::<Mark>() + mark.name.len()) as u64)
                .sum::<u64>()
            + self.log.as_ref().map_or(0, LogWriter::memory_bytes)
            + self
                .samples
                .as_ref()
                .map_or(0, |samples| samples.memory_bytes())
            + self.memory_of_parts().0
    }

    /// Those of them that are pages of heapray's own, which [`memory::own_bytes`](crate::capture::memory::own_bytes)
    /// knows too.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        self.live.mapped_bytes() + self.memory_of_parts().1
    }

    #[inline(always)]
    fn allocate(&mut self, event: &Event, lookup: Lookup) {
        if self.samples.is_some() {
            return self.allocate_sampled(event, lookup);
        }
        let seat = self.threads.seat(event.thread);
        let site = self.site(event, seat, lookup);
        let block = Block {
            size: event.size,
            site,
            birth: self.clock.birth(event.stamp),
        };
        if let Some(old) = self.live.insert(lookup.place, event.address, block) {
            self.replaced(event, &old);
        }
        self.count_allocation(event, seat, site, one(event.size));
    }

    /// Takes in the allocation at `at` and the next event, which is its free.
    #[inline(always)]
    fn take_passing(&mut self, events: &[Event], at: usize, lookup: Lookup) {
        let (event, free) = (&events[at], &events[at + 1]);
        if self.reallocs.is_empty() && !self.live.may_have(lookup.place) {
            self.pass(event, free, lookup);
        } else {
            self.take(events, at, lookup);
            self.take(events, at + 1, lookup);
        }
    }

    /// Takes in as many of the first lookups as are of blocks that pass, all of one thread, of which none brings the
    /// mark: what [`pass`](Self::pass) does to each, with sums written once. `events` are those of the lookups. Gives
    /// how many blocks that were.
    #[inline(always)]
    fn pass_below_mark(&mut self, events: &[Event], lookups: &[Lookup]) -> usize {
        let thread = events[0].thread;
        let seat = self.threads.seat(thread);
        if !self.reallocs.is_empty() || self.threads.is_shared(seat) {
            return 0;
        }
        let room = self.peak.room(self.counters.live);
        let mut sum = Tally::default();
        let mut last: Option<(sites::Key, SiteId)> = None;
        for (pair, lookup) in events.chunks_exact(2).zip(lookups) {
            let event = &pair[0];
            let passes = lookup.passing & (event.thread == thread) & (event.size < room);
            if !passes || self.live.may_have(lookup.place) {
                break;
            }
            let key = site_key(event, seat.entry);
            let site = match last {
                Some((known, site)) if known == key => site,
                _ => self.site(event, seat, *lookup),
            };
            last = Some((key, site));
            self.sites.pass_below_mark(site, event.size, seat.entry);
            self.sizes.add(event.size, 1);
            add(&mut sum, one(event.size));
            if let Some(log) = &mut self.log
                && log.push_passing(
                    seat.entry,
                    event.kind,
                    event.address,
                    event.size,
                    event.node,
                )
            {
                self.flush_log();
            }
        }
        let count = sum.count as usize;
        let Some(free) = events[..2 * count].last() else {
            return 0;
        };
        self.counters.events += 2 * sum.count;
        add(&mut self.counters.allocated, sum);
        add(&mut self.counters.freed, sum);
        self.clock.at_ms(free.stamp);
        // Those before the last ones have left the window again.
        for event in events[..2 * count]
            .chunks_exact(2)
            .skip(count.saturating_sub(TEMPORARY_WINDOW))
        {
            self.threads.allocated(seat, event[0].address);
        }
        count
    }

    /// A block that its thread frees before anything else happens, at an address where there is none: it does to sums,
    /// peak and log what any block does, and need not go through the live table.
    #[inline(always)]
    fn pass(&mut self, event: &Event, free: &Event, lookup: Lookup) {
        let seat = self.threads.seat(event.thread);
        let site = self.site(event, seat, lookup);
        self.clock.at_ms(event.stamp);
        let counters = &mut self.counters;
        let before = counters.live;
        let mut with = before;
        let block = one(event.size);
        add(&mut with, block);
        counters.events += 2;
        add(&mut counters.allocated, block);
        add(&mut counters.freed, block);
        // If the block does not bring the mark, its site has at the end what it had at the last one.
        let brings_mark = self.peak.move_to(with, event.stamp).is_none();
        let keep = self.peak.move_to(before, free.stamp);
        self.sites.pass(site, block, keep.filter(|_| brings_mark));
        self.sizes.add(event.size, 1);
        self.threads.allocated(seat, event.address);
        // By the thread that allocated it last: temporary, unless the site is one that stands for many.
        if self.sites.entry(site) == seat.entry {
            self.sites.temporary(site, block);
        }
        self.tell_allocation(event, seat);
        self.tell_free(event.address, seat);
    }

    /// The site of an allocation by the thread that `seat` is.
    #[inline(always)]
    pub(super) fn site(&mut self, event: &Event, seat: Seat, lookup: Lookup) -> SiteId {
        let key = site_key(event, seat.entry);
        let tag = if seat.entry == lookup.entry {
            lookup.tag
        } else {
            key.tag()
        };
        self.sites.of(key, tag)
    }

    #[inline(always)]
    fn free(&mut self, event: &Event, lookup: Lookup) {
        if !self.reallocs.is_empty() {
            self.reallocs.forget_block(event.address);
        }
        if self.samples.is_some() {
            return self.free_sampled(event);
        }
        match self.live.remove(lookup.place, event.address) {
            Some(block) => {
                self.counters.events += 1;
                self.count_free(event.stamp, event.thread, event.address, &block);
            }
            None => self.unknown_free(event),
        }
    }

    /// A free of what the session does not know. A quiet thread's is of what was not to be seen.
    fn unknown_free(&mut self, event: &Event) {
        if event.node != NodeId::QUIETLY {
            self.counters.events += 1;
            self.counters.unknown_frees += 1;
        }
    }

    /// A block was handed out at the address of the live block `old`.
    #[cold]
    fn replaced(&mut self, event: &Event, old: &Block) {
        let thread = self.who_freed(event);
        self.count_free(event.stamp, thread, event.address, old);
    }

    /// Who freed the block at whose address another one was handed out: a realloc that is not yet through, on another
    /// thread; else its free was lost, and is made up for.
    pub(super) fn who_freed(&mut self, event: &Event) -> u32 {
        match self.reallocs.end_at(event.address) {
            Some(realloc) => {
                self.counters.events += 1;
                realloc.thread
            }
            None => event.thread,
        }
    }

    /// Finishes the reallocation that the event's thread had begun, if any. Whether the event is done with.
    #[cold]
    fn settle(&mut self, event: &Event) -> bool {
        // Told again when the thread's last events go through another ring.
        if event.kind == Kind::ThreadStart {
            return false;
        }
        let Some(realloc) = self.reallocs.end_of(event.thread) else {
            return false;
        };
        if event.kind == Kind::ReallocFailed && event.address == realloc.address {
            return true;
        }
        self.finish(event.stamp, realloc);
        false
    }

    /// The reallocation's old block is gone.
    #[cold]
    fn finish(&mut self, stamp: u64, realloc: UnderWay) {
        if self.samples.is_some() {
            return self.finish_sampled(stamp, realloc);
        }
        self.counters.events += 1;
        let block = if realloc.known {
            self.live
                .remove(Place::of(realloc.address), realloc.address)
        } else {
            None
        };
        match block {
            Some(block) => self.count_free(stamp, realloc.thread, realloc.address, &block),
            None => self.counters.unknown_frees += 1,
        }
    }

    #[cold]
    fn map(&mut self, event: &Event, lookup: Lookup) {
        // The kernel refuses to map nothing.
        if event.size == 0 {
            return;
        }
        // `MAP_FIXED` replaces what is there.
        self.cut(event);
        let seat = self.threads.seat(event.thread);
        let site = self.site(event, seat, lookup);
        let birth = self.clock.birth(event.stamp);
        self.ranges.insert(event.address, event.size, site, birth);
        self.count_allocation(event, seat, site, one(event.size));
        self.note_mark();
    }

    #[cold]
    fn unmap(&mut self, event: &Event) {
        if self.cut(event) {
            self.counters.events += 1;
        } else {
            self.unknown_free(event);
        }
    }

    /// Takes the event's range out of the range map. Whether there was anything of it.
    fn cut(&mut self, event: &Event) -> bool {
        let mut found = None;
        while let Some(cut) = self.ranges.cut(event.address, event.size) {
            let seat = self.threads.seat(event.thread);
            found = Some(seat);
            self.lower(event.stamp, cut.site, cut.blocks, cut.bytes);
            // A temporary range is given back as it was handed out.
            if cut.whole && cut.start == event.address && cut.bytes == event.size {
                self.notice_temporary(seat, cut.start, cut.site, cut.bytes);
            }
        }
        if let Some(seat) = found {
            self.tell(&LogEntry::Deallocation {
                thread: seat.entry,
                kind: Kind::Munmap,
                address: event.address,
                size: event.size,
            });
        }
        found.is_some()
    }

    /// Everything that an allocation does to sums, peak and log; the block itself is in its table.
    #[inline(always)]
    pub(super) fn count_allocation(
        &mut self,
        event: &Event,
        seat: Seat,
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
        self.threads.allocated(seat, event.address);
        self.tell_allocation(event, seat);
    }

    /// Everything that the free of `block` by `thread` does to sums, peak and log; it is out of its table.
    #[inline(always)]
    fn count_free(&mut self, stamp: u64, thread: u32, address: u64, block: &Block) {
        let seat = self.threads.seat(thread);
        self.lower(stamp, block.site, 1, block.size);
        self.notice_temporary(seat, address, block.site, block.size);
        self.tell_free(address, seat);
    }

    /// Fewer live bytes, and blocks fewer (or one more).
    #[inline(always)]
    pub(super) fn lower(&mut self, stamp: u64, site: SiteId, blocks: i64, bytes: u64) {
        let counters = &mut self.counters;
        counters.freed.count += blocks.max(0) as u64;
        counters.freed.bytes = counters.freed.bytes.wrapping_add(bytes);
        counters.live.count = counters.live.count.wrapping_add_signed(-blocks);
        counters.live.bytes = counters.live.bytes.wrapping_sub(bytes);
        let keep = self.peak.move_to(counters.live, stamp);
        self.sites.free(site, blocks, bytes, keep);
    }

    /// The thread that `seat` is freed a whole block of `site`: was it a temporary one?
    #[inline(always)]
    fn notice_temporary(&mut self, seat: Seat, address: u64, site: SiteId, size: u64) {
        // Both are asked, since neither can be predicted.
        let same_entry = self.sites.entry(site) == seat.entry;
        if same_entry & self.threads.allocated_lately(seat, address) {
            self.sites.temporary(site, one(size));
        }
    }

    #[inline(always)]
    fn tell_allocation(&mut self, event: &Event, seat: Seat) {
        if let Some(log) = &mut self.log
            && log.push_allocation(
                seat.entry,
                event.kind,
                event.address,
                event.size,
                event.node,
            )
        {
            self.flush_log();
        }
    }

    #[inline(always)]
    fn tell_free(&mut self, address: u64, seat: Seat) {
        if let Some(log) = &mut self.log
            && log.push_free(seat.entry, address)
        {
            self.flush_log();
        }
    }

    #[cold]
    fn tell(&mut self, entry: &LogEntry) {
        if let Some(log) = &mut self.log
            && log.push(entry)
        {
            self.flush_log();
        }
    }
}

/// Whether `next` frees the block that `event` hands out, on the same thread.
#[inline(always)]
fn is_freed_by(event: &Event, next: &Event) -> bool {
    // All at once: they are equal together or not at all, mostly.
    next.kind == Kind::Free
        && (next.address ^ event.address) | u64::from(next.thread ^ event.thread) == 0
        && (Kind::Malloc as u8..=Kind::Pvalloc as u8).contains(&(event.kind as u8))
}

#[inline]
fn site_key(event: &Event, entry: u32) -> sites::Key {
    sites::Key {
        entry,
        node: event.node,
        kind: event.kind,
    }
}
