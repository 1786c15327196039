//! Times of allocations and frees, coarse in time: enough for any range of the session, without its log.
//!
//! They are made in one pass over the log. The session is divided into slots of equal time. Blocks of one call site that
//! were allocated in one slot and freed in another are summed up to a row. By adding rows one can find what was allocated
//! between any two slots and still live in a third, or the heap in any slot.

use crate::hash::FastMap;
use crate::memray::limit::in_map;
use crate::memray::live_blocks::{Block, LiveBlocks};
use crate::memray::ranges::Taken;
use crate::memray::{MemoryLimit, TooLarge};
use crate::model::{Allocator, ContextId, Event, Report, StackId, Tally, ThreadId};

/// Resolution of [`Intervals`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalOptions {
    /// Largest number of time slots; 256 by default.
    pub slots: u32,
    /// Largest number of rows; 2,000,000 by default. If there are more, pairs of neighbouring slots are joined, and so on.
    pub rows: usize,
    /// Memory limit for following the events.
    pub memory: MemoryLimit,
}

impl Default for IntervalOptions {
    fn default() -> Self {
        IntervalOptions {
            slots: 256,
            rows: 2_000_000,
            memory: MemoryLimit::default(),
        }
    }
}

/// Times of allocations and frees. All rows of a site together are everything that it ever allocated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Intervals {
    /// Start of each slot, in milliseconds since the start of the capture: 0 first, then rising.
    pub starts_ms: Vec<u64>,
    /// Rows, ordered by site, birth and end (never freed last). No two rows have the same three.
    pub rows: Vec<Interval>,
}

/// Blocks of one call site, one slot of birth and one slot of end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Index into [`Report::sites`].
    pub site: u32,
    /// The slot in which they were allocated.
    pub born: u32,
    /// The slot in which they were freed, or `None` if they were not.
    pub freed: Option<u32>,
    /// Blocks and bytes. A mapping that is unmapped in parts is in several rows: its bytes end as they are unmapped, and it
    /// counts as a block until nothing is left of it, as in memray's temporal views.
    pub blocks: Tally,
}

impl Intervals {
    /// Divides `report` into intervals; `events` are its log.
    ///
    /// An event happens at the last [`Event::Memory`] reading before it, or at 0 before the first. Events of call sites that
    /// the report does not have are left out: they belong to another capture. Memory grows with live blocks and rows, never
    /// with the number of events. There are more rows than `options` allow only if a single slot for the whole session has
    /// more: two per call site.
    ///
    /// # Errors
    /// An error of `events`, or [`TooLarge`] at the limit of memory.
    pub fn of<E: From<TooLarge>>(
        report: &Report,
        events: impl Iterator<Item = Result<Event, E>>,
        options: IntervalOptions,
    ) -> Result<Intervals, E> {
        let mut builder = Builder::new(report, options);
        for (number, event) in events.enumerate() {
            builder.enter(&event?);
            if number.is_multiple_of(LOOK) {
                options.memory.holds(builder.memory())?;
            }
        }
        Ok(builder.finish())
    }

    /// Returns the slot that `at_ms` falls into.
    #[must_use]
    pub fn slot(&self, at_ms: u64) -> u32 {
        let behind = self.starts_ms.partition_point(|&start| start <= at_ms);
        u32::try_from(behind.saturating_sub(1)).unwrap_or(u32::MAX)
    }
}

/// Returns the time of the last reading of memory, or the session's end if there is none.
pub(super) fn duration_ms(report: &Report) -> u64 {
    let by_clock = report.about.end_ms.saturating_sub(report.about.start_ms);
    report
        .timeline
        .last()
        .map_or(u64::try_from(by_clock).unwrap_or(0), |last| last.at_ms)
}

/// Index of each site, by the fields of events.
#[derive(Debug)]
pub(super) struct SiteNumbers {
    sites: FastMap<(u64, u64), u32>,
    /// For each thread, the thread that its sites have.
    threads: Vec<ThreadId>,
    /// Whether contexts are compared. A report that lost its contexts has sites without.
    contexts: bool,
}

impl SiteNumbers {
    pub(super) fn of(report: &Report) -> SiteNumbers {
        let mut numbers = FastMap::default();
        for (number, site) in (0u32..).zip(&report.sites) {
            numbers
                .entry(key(
                    site.thread,
                    site.context,
                    site.stack,
                    site.allocator.id(),
                ))
                .or_insert(number);
        }
        SiteNumbers {
            sites: numbers,
            threads: threads_of_sites(report),
            contexts: !report.contexts.is_empty(),
        }
    }

    /// Returns `None` for an event that is not an allocation, or for one of a site that the report does not have.
    #[inline]
    pub(super) fn get(&self, event: &Event) -> Option<u32> {
        match *event {
            Event::Allocation {
                thread,
                context,
                allocator,
                stack,
                ..
            } => {
                let thread = self.threads.get(thread.0 as usize).unwrap_or(&thread);
                let context = if self.contexts {
                    context
                } else {
                    ContextId::NONE
                };
                let key = key(*thread, context, stack, allocator.id());
                self.sites.get(&key).copied()
            }
            _ => None,
        }
    }
}

/// Returns, for each thread, itself or the thread that stands for it in sites.
fn threads_of_sites(report: &Report) -> Vec<ThreadId> {
    let mut by_name = FastMap::default();
    let threads = || (0u32..).map(ThreadId).zip(&report.threads);
    for (id, thread) in threads() {
        if thread.threads > 0 {
            by_name.entry(thread.name).or_insert(id);
        }
    }
    threads()
        .map(|(id, thread)| match by_name.get(&thread.name) {
            Some(&of_all) if thread.threads == 0 => of_all,
            _ => id,
        })
        .collect()
}

fn key(thread: ThreadId, context: ContextId, stack: StackId, allocator: u8) -> (u64, u64) {
    let thread = u64::from(thread.0) << 8 | u64::from(allocator);
    (u64::from(context.0) << 32 | u64::from(stack.0), thread)
}

/// Value for "never freed", in the key of a row.
const NEVER: u32 = u32::MAX;

/// Number of events that are followed between two checks of the memory.
pub(super) const LOOK: usize = 4096;

struct Builder {
    sites: SiteNumbers,
    live: LiveBlocks,
    /// Rows by site, birth and end.
    rows: FastMap<(u64, u64), Tally>,
    most_rows: usize,
    /// Number of slots at first, and the length of each.
    slots: u64,
    width_ms: u64,
    /// Number of times that neighbours were joined. Births in `live` are of the first slots.
    halved: u32,
    /// The slot of the last reading, out of the first slots.
    now: u64,
    taken: Vec<Taken>,
}

impl Builder {
    fn new(report: &Report, options: IntervalOptions) -> Builder {
        let duration = duration_ms(report);
        let most = u64::from(options.slots.clamp(1, NEVER - 1));
        let width_ms = (duration / most).saturating_add(1);
        Builder {
            sites: SiteNumbers::of(report),
            live: LiveBlocks::default(),
            rows: FastMap::default(),
            most_rows: options.rows,
            slots: duration / width_ms + 1,
            width_ms,
            halved: 0,
            now: 0,
            taken: Vec::new(),
        }
    }

    fn memory(&self) -> u64 {
        self.live.memory() + self.rows.len() as u64 * in_map::<((u64, u64), Tally)>()
    }

    #[inline]
    fn enter(&mut self, event: &Event) {
        match *event {
            Event::Allocation {
                allocator,
                address,
                size,
                ..
            } => {
                // A block of an unknown site still ends the block that was at its address.
                let site = self.sites.get(event).unwrap_or(NEVER);
                let block = Block {
                    bytes: size,
                    born: self.now,
                    site,
                };
                if let Some(old) = self.live.allocate(allocator, address, block) {
                    self.end(old, true);
                } else if allocator == Allocator::Mmap && size == 0 {
                    self.end(block, true);
                }
            }
            Event::Deallocation {
                allocator: Allocator::Munmap,
                address,
                size,
                ..
            } => {
                let mut taken = std::mem::take(&mut self.taken);
                self.live.unmap(address, size, &mut taken);
                for part in &taken {
                    let (bytes, born, site) = (part.bytes, part.born, part.site);
                    self.end(Block { bytes, born, site }, part.last);
                }
                self.taken = taken;
            }
            Event::Deallocation { address, .. } => {
                if let Some(block) = self.live.free(address) {
                    self.end(block, true);
                }
            }
            // If the clock goes back, or past the report's end, the event stays in the existing slots.
            Event::Memory { at_ms, .. } => self.now = (at_ms / self.width_ms).min(self.slots - 1),
        }
    }

    /// Adds a block that ends now. `counts` is false if more of its mapping is left.
    #[inline]
    fn end(&mut self, block: Block, counts: bool) {
        let freed = (self.now >> self.halved) as u32;
        self.add(block, freed, counts);
        self.make_room();
    }

    fn make_room(&mut self) {
        while self.rows.len() > self.most_rows && (self.slots - 1) >> self.halved > 0 {
            self.halve();
        }
    }

    fn add(&mut self, block: Block, freed: u32, counts: bool) {
        if block.site == NEVER {
            return;
        }
        let born = block.born >> self.halved;
        let row = (u64::from(block.site), (born << 32) | u64::from(freed));
        *self.rows.entry(row).or_default() += Tally {
            count: u64::from(counts),
            bytes: block.bytes,
        };
    }

    #[cold]
    fn halve(&mut self) {
        self.halved += 1;
        let mut rows = FastMap::default();
        for ((site, times), blocks) in self.rows.drain() {
            let (born, freed) = (times >> 32, times as u32);
            let freed = if freed == NEVER { NEVER } else { freed / 2 };
            let row = (site, ((born / 2) << 32) | u64::from(freed));
            *rows.entry(row).or_default() += blocks;
        }
        self.rows = rows;
    }

    fn finish(mut self) -> Intervals {
        let live = std::mem::take(&mut self.live);
        for (block, counts) in live.mappings_once() {
            self.add(block, NEVER, counts);
            self.make_room();
        }
        let mut rows: Vec<Interval> = self
            .rows
            .into_iter()
            .map(|((site, times), blocks)| {
                let freed = times as u32;
                Interval {
                    site: site as u32,
                    born: (times >> 32) as u32,
                    freed: (freed != NEVER).then_some(freed),
                    blocks,
                }
            })
            .collect();
        rows.sort_unstable_by_key(|row| (row.site, row.born, row.freed.unwrap_or(NEVER)));
        let width_ms = self.width_ms.saturating_mul(1 << self.halved);
        let slots = ((self.slots - 1) >> self.halved) + 1;
        Intervals {
            starts_ms: (0..slots).map(|slot| slot * width_ms).collect(),
            rows,
        }
    }
}
