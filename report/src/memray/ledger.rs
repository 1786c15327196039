//! Sums over a stream of events: all sums of a report.
//!
//! The rules are memray's, so that its figures and ours agree: the high-water mark is the last moment at which the heap was
//! as large as ever; a mapping whose middle is unmapped counts as two; an allocation is temporary if its thread frees it
//! with at most one other allocation in between. One rule differs: if an address is handed out again, its old block was
//! freed without a record, and is subtracted. memray goes on counting its bytes.

use std::collections::HashMap;

use super::limit::{in_list, in_map};
use super::live_blocks::{Block, LiveBlocks};
use super::ranges::Taken;
use super::timeline::Timeline;
use crate::checkpoints::{Checkpoints, MOST_GENERATIONS, generations, survivors};
use crate::hash::FastMap;
use crate::model::{
    Allocator, ContextId, Event, Moment, Report, Site, SizeCount, StackId, Survivor, Survivors,
    Tally, ThreadId, Totals,
};

/// Sizes below this are counted in an array.
const SMALL: usize = 4096;

/// Number of call sites that are found without the map. Must be a power of two.
const RECENT: usize = 1 << 13;

/// Index for "no call site".
const NONE: u32 = u32::MAX;

/// Stack, thread and allocator of a site; its context.
type Key = (u64, u64);

/// Present sums of a site, and those at the last high-water mark that has ended.
#[derive(Debug, Clone, Copy)]
struct Account {
    thread: ThreadId,
    context: ContextId,
    stack: StackId,
    allocator: Allocator,
    allocated: Tally,
    live: Tally,
    high_water: Tally,
    /// The peak of `high_water`.
    peak: u32,
    temporary: Tally,
}

/// Largest memory of a site, in the ledger and in the report.
const SITE: u64 = in_list::<Account>() + in_map::<(Key, u32)>() + in_list::<(Site, Option<u64>)>();
const SURVIVOR: u64 = in_map::<(u64, Tally)>() + in_list::<Survivor>();
const LARGE_SIZE: u64 = in_map::<(u64, u64)>() + in_list::<SizeCount>();

/// Last two allocations of a thread, the newest first: address, size and site.
type Window = [Option<(u64, u64, u32)>; 2];

/// Ledger that sums up events. Its memory grows with live blocks and distinct call sites, never with the number of events;
/// [`Ledger::memory`] returns how far it has grown.
#[derive(Debug)]
pub struct Ledger {
    accounts: Vec<Account>,
    sites: FastMap<Key, u32>,
    /// The most recent sites, by their keys.
    recent: Box<[(Key, u32)]>,
    blocks: LiveBlocks,
    windows: Vec<Window>,
    small_sizes: Box<[u64]>,
    large_sizes: HashMap<u64, u64>,
    by_allocator: Vec<(Allocator, Tally)>,
    allocated: Tally,
    freed: Tally,
    live: Tally,
    high_water: Tally,
    /// Set while no byte was freed since the heap was at its largest.
    at_peak: bool,
    /// Number of high-water marks that have ended.
    peaks: u32,
    peak_ms: u64,
    now_ms: u64,
    timeline: Timeline,
    checkpoints: Checkpoints,
    events: u64,
    unknown_frees: u64,
    handed_out_again: u64,
    taken: Vec<Taken>,
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger {
            accounts: Vec::new(),
            sites: FastMap::default(),
            recent: vec![((0, 0), NONE); RECENT].into_boxed_slice(),
            blocks: LiveBlocks::default(),
            windows: Vec::new(),
            small_sizes: vec![0; SMALL].into_boxed_slice(),
            large_sizes: HashMap::new(),
            by_allocator: Vec::new(),
            allocated: Tally::default(),
            freed: Tally::default(),
            live: Tally::default(),
            high_water: Tally::default(),
            at_peak: true,
            peaks: 0,
            peak_ms: 0,
            now_ms: 0,
            timeline: Timeline::default(),
            checkpoints: Checkpoints::default(),
            events: 0,
            unknown_frees: 0,
            handed_out_again: 0,
            taken: Vec::new(),
        }
    }
}

/// Receiver of events as separate fields: these stay in registers, whereas an [`Event`] would be passed in memory.
pub(super) trait Sink {
    fn allocation(
        &mut self,
        thread: ThreadId,
        context: ContextId,
        allocator: Allocator,
        address: u64,
        size: u64,
        stack: StackId,
    );
    fn deallocation(&mut self, thread: ThreadId, allocator: Allocator, address: u64, size: u64);
    fn reading(&mut self, at_ms: u64, rss: u64);
    /// Returns the bytes of memory, now and when it is closed.
    fn memory(&self) -> u64;
}

impl Sink for Ledger {
    /// Sums up what a capture has without its extension. The labels of contexts are there, so contexts mean nothing here.
    #[inline]
    fn allocation(
        &mut self,
        thread: ThreadId,
        _context: ContextId,
        allocator: Allocator,
        address: u64,
        size: u64,
        stack: StackId,
    ) {
        let site = self.site(thread, ContextId::NONE, stack, allocator);
        self.allocated_by(thread, site, allocator, address, size);
    }

    #[inline]
    fn deallocation(&mut self, thread: ThreadId, allocator: Allocator, address: u64, size: u64) {
        let ranged = allocator == Allocator::Munmap;
        let of = |&&(at, bytes, _): &&(u64, u64, u32)| at == address && (!ranged || bytes == size);
        if let Some(&(_, bytes, site)) = self.window(thread).iter().flatten().find(of) {
            self.accounts[site as usize].temporary += Tally { count: 1, bytes };
        }
        if ranged {
            self.unmap(address, size);
        } else if let Some(block) = self.blocks.free(address) {
            self.take(block.site, 1, block.bytes);
        } else {
            self.unknown_frees += 1;
        }
        self.entered();
    }

    #[cold]
    fn reading(&mut self, at_ms: u64, rss: u64) {
        self.now_ms = at_ms;
        self.timeline.add(Moment {
            at_ms,
            rss,
            heap: self.live.bytes,
            own: 0,
        });
        if self.checkpoints.is_due(at_ms, self.allocated) {
            let sites = (0..).zip(&self.accounts);
            let sites = sites.map(|(site, it)| (site, it.live.bytes, it.allocated.bytes));
            self.checkpoints.add(at_ms, self.allocated, sites);
        }
    }

    fn memory(&self) -> u64 {
        Ledger::memory(self)
    }
}

impl Ledger {
    /// Adds the next event.
    #[inline]
    pub fn enter(&mut self, event: &Event) {
        match *event {
            Event::Allocation {
                thread,
                context,
                allocator,
                address,
                size,
                stack,
            } => {
                let site = self.site(thread, context, stack, allocator);
                self.allocated_by(thread, site, allocator, address, size);
            }
            Event::Deallocation {
                thread,
                allocator,
                address,
                size,
            } => self.deallocation(thread, allocator, address, size),
            Event::Memory { at_ms, rss } => self.reading(at_ms, rss),
        }
    }

    /// Returns the largest memory of the ledger in bytes, including what closing it takes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let blocks = self.blocks.len() as u64;
        let sites = self.accounts.len() as u64;
        let survivors = blocks.min(sites.saturating_mul(MOST_GENERATIONS));
        self.blocks.memory()
            + sites * SITE
            + survivors * SURVIVOR
            // The checkpoints, their history, and the history of the report's own sites.
            + 3 * self.checkpoints.memory_bytes()
            + self.large_sizes.len() as u64 * LARGE_SIZE
            + self.windows.capacity() as u64 * size_of::<Window>() as u64
    }

    #[inline]
    fn allocated_by(
        &mut self,
        thread: ThreadId,
        site: u32,
        allocator: Allocator,
        address: u64,
        size: u64,
    ) {
        let window = self.window(thread);
        *window = [Some((address, size, site)), window[0]];
        self.allocate(site, allocator, address, size);
        self.entered();
    }

    #[inline]
    fn entered(&mut self) {
        self.events += 1;
        if self.at_peak {
            self.peak_ms = self.now_ms;
        }
    }

    #[inline]
    fn site(
        &mut self,
        thread: ThreadId,
        context: ContextId,
        stack: StackId,
        allocator: Allocator,
    ) -> u32 {
        // There are fewer than 2^28 threads, since a larger table would not fit into memory.
        let of_stack = u64::from(stack.0) << 32
            | u64::from(thread.0) << 4 & 0xffff_ffff
            | u64::from(allocator.id());
        let context_number = u64::from(context.0);
        let key = (of_stack, context_number);
        let slot = u64::from(stack.0) + u64::from(thread.0) * 1031 + context_number * 4099;
        let slot = slot as usize % RECENT;
        let (known, site) = self.recent[slot];
        if known == key && site != NONE {
            return site;
        }
        let accounts = &mut self.accounts;
        let site = *self.sites.entry(key).or_insert_with(|| {
            accounts.push(Account {
                thread,
                context,
                stack,
                allocator,
                allocated: Tally::default(),
                live: Tally::default(),
                high_water: Tally::default(),
                peak: 0,
                temporary: Tally::default(),
            });
            accounts.len() as u32 - 1
        });
        self.recent[slot] = (key, site);
        site
    }

    #[inline]
    fn window(&mut self, thread: ThreadId) -> &mut Window {
        let index = thread.0 as usize;
        if index >= self.windows.len() {
            self.windows.resize(index + 1, [None; 2]);
        }
        &mut self.windows[index]
    }

    #[inline]
    fn allocate(&mut self, site: u32, allocator: Allocator, address: u64, size: u64) {
        let one = Tally {
            count: 1,
            bytes: size,
        };
        self.allocated += one;
        self.accounts[site as usize].allocated += one;
        match self.small_sizes.get_mut(size as usize) {
            Some(count) => *count += 1,
            None => *self.large_sizes.entry(size).or_default() += 1,
        }
        match self.by_allocator.iter_mut().find(|(a, _)| *a == allocator) {
            Some((_, tally)) => *tally += one,
            None => self.by_allocator.push((allocator, one)),
        }
        let block = Block {
            bytes: size,
            born: self.now_ms,
            site,
        };
        if let Some(old) = self.blocks.allocate(allocator, address, block) {
            self.handed_out_again += 1;
            self.take(old.site, 1, old.bytes);
        }
        if allocator == Allocator::Mmap && size == 0 {
            return;
        }
        self.live += one;
        if self.live.bytes >= self.high_water.bytes {
            self.high_water = self.live;
            self.at_peak = true;
        } else {
            self.keep(site);
        }
        self.accounts[site as usize].live += one;
    }

    /// Subtracts `bytes` from the heap, and `blocks` from the count (-1 for a split mapping).
    #[inline]
    fn take(&mut self, site: u32, blocks: i64, bytes: u64) {
        if self.at_peak && bytes > 0 {
            self.at_peak = false;
            self.peaks = self.peaks.wrapping_add(1);
        }
        if !self.at_peak {
            self.keep(site);
        }
        // The same rule as the collector's: a split adds one live block, and frees none.
        self.freed.count += blocks.max(0) as u64;
        let blocks = blocks as u64;
        for live in [&mut self.live, &mut self.accounts[site as usize].live] {
            live.count = live.count.wrapping_sub(blocks);
            live.bytes = live.bytes.saturating_sub(bytes);
        }
        self.freed.bytes = self.freed.bytes.saturating_add(bytes);
        if self.at_peak {
            self.high_water = self.live;
        }
    }

    /// Keeps a site's sums at the last peak, before they change for the first time after the peak.
    #[inline]
    fn keep(&mut self, site: u32) {
        let account = &mut self.accounts[site as usize];
        if account.peak != self.peaks {
            account.peak = self.peaks;
            account.high_water = account.live;
        }
    }

    fn unmap(&mut self, address: u64, size: u64) {
        let mut taken = std::mem::take(&mut self.taken);
        self.blocks.unmap(address, size, &mut taken);
        if taken.is_empty() {
            self.unknown_frees += 1;
        }
        for part in &taken {
            self.take(part.site, 1 - i64::from(part.left), part.bytes);
        }
        self.taken = taken;
    }

    /// Returns the live memory by age.
    fn survivors(&self) -> Survivors {
        if self.now_ms == 0 {
            return Survivors::default();
        }
        let starts_ms = generations(&self.checkpoints, std::iter::empty(), self.now_ms);
        let starts = starts_ms.clone();
        let blocks = self.blocks.pieces();
        let blocks = blocks.map(|Block { bytes, born, site }| Survivor {
            site,
            generation: (starts.partition_point(|&start| start <= born) - 1) as u32,
            live: Tally { count: 1, bytes },
        });
        survivors(starts_ms, blocks)
    }

    /// Closes the ledger: fills in the sites (in the order of their first allocation), totals, timeline, survivors, event
    /// and unknown-free counts of `report`, whose threads and call stacks the events used.
    pub fn close(self, report: &mut Report) {
        report.survivors = self.survivors();
        report.history = self.checkpoints.history();
        let mut oldest: Vec<Option<u64>> = vec![None; self.accounts.len()];
        for Block { site, born, .. } in self.blocks.pieces() {
            let oldest = &mut oldest[site as usize];
            *oldest = Some(oldest.map_or(born, |known| known.min(born)));
        }
        report.sites = self
            .accounts
            .iter()
            .zip(oldest)
            .map(|(account, oldest_live_ms)| Site {
                context: account.context,
                thread: account.thread,
                stack: account.stack,
                allocator: account.allocator,
                allocated: account.allocated,
                high_water: if self.at_peak || account.peak != self.peaks {
                    account.live
                } else {
                    account.high_water
                },
                live: account.live,
                temporary: account.temporary,
                oldest_live_ms,
            })
            .collect();
        let mut sizes: Vec<SizeCount> = (0u64..)
            .zip(self.small_sizes)
            .chain(self.large_sizes)
            .filter(|&(_, count)| count > 0)
            .map(|(size, count)| SizeCount { size, count })
            .collect();
        sizes.sort_unstable_by_key(|size| size.size);
        report.totals = Totals {
            allocated: self.allocated,
            freed: self.freed,
            live: self.live,
            high_water: self.high_water,
            high_water_ms: (!self.timeline.is_empty()).then_some(self.peak_ms),
            sizes,
            sizes_rounded: false,
            by_allocator: self.by_allocator,
        };
        report.timeline = self.timeline.into_moments();
        report.about.events = self.events;
        report.conditions.unknown_frees = self.unknown_frees;
        if self.handed_out_again > 0 {
            report.conditions.notes.push(format!(
                "{} blocks were handed out again without a record of their free",
                self.handed_out_again
            ));
        }
    }
}
