//! Call sites and the sums over them.

use super::{ContextId, StackId, ThreadId};
use crate::hash::FastMap;

/// Function that allocates or frees memory. Numbers are memray's (capture format, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // each is the C function of that name
pub enum Allocator {
    /// Python's own allocator, which only captures that memray wrote have.
    PymallocFree = 1,
    PymallocMalloc = 2,
    PymallocCalloc = 3,
    PymallocRealloc = 4,
    Free = 5,
    Malloc = 6,
    Realloc = 7,
    Calloc = 8,
    PosixMemalign = 9,
    AlignedAlloc = 10,
    Memalign = 11,
    Valloc = 12,
    Pvalloc = 13,
    Mmap = 14,
    Munmap = 15,
}

impl Allocator {
    /// All allocators, in the order of their numbers.
    pub const ALL: [Allocator; 15] = [
        Allocator::PymallocFree,
        Allocator::PymallocMalloc,
        Allocator::PymallocCalloc,
        Allocator::PymallocRealloc,
        Allocator::Free,
        Allocator::Malloc,
        Allocator::Realloc,
        Allocator::Calloc,
        Allocator::PosixMemalign,
        Allocator::AlignedAlloc,
        Allocator::Memalign,
        Allocator::Valloc,
        Allocator::Pvalloc,
        Allocator::Mmap,
        Allocator::Munmap,
    ];

    /// Returns the allocator with memray's number `id`.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Allocator> {
        Allocator::ALL.get(usize::from(id).wrapping_sub(1)).copied()
    }

    /// Returns memray's number.
    #[must_use]
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// Returns memray's name, in capitals.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Allocator::PymallocFree => "PYMALLOC_FREE",
            Allocator::PymallocMalloc => "PYMALLOC_MALLOC",
            Allocator::PymallocCalloc => "PYMALLOC_CALLOC",
            Allocator::PymallocRealloc => "PYMALLOC_REALLOC",
            Allocator::Free => "FREE",
            Allocator::Malloc => "MALLOC",
            Allocator::Realloc => "REALLOC",
            Allocator::Calloc => "CALLOC",
            Allocator::PosixMemalign => "POSIX_MEMALIGN",
            Allocator::AlignedAlloc => "ALIGNED_ALLOC",
            Allocator::Memalign => "MEMALIGN",
            Allocator::Valloc => "VALLOC",
            Allocator::Pvalloc => "PVALLOC",
            Allocator::Mmap => "MMAP",
            Allocator::Munmap => "MUNMAP",
        }
    }

    /// Returns whether the function frees memory.
    #[must_use]
    pub const fn is_free(self) -> bool {
        matches!(
            self,
            Allocator::PymallocFree | Allocator::Free | Allocator::Munmap
        )
    }
}

/// Number of blocks and their bytes, as requested by the caller (without the allocator's rounding).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Tally {
    /// Blocks.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
}

impl std::ops::AddAssign for Tally {
    /// Stops at the largest number: a damaged capture may have any size.
    fn add_assign(&mut self, other: Tally) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Call site: the sums of one thread, one function and one call stack, in one context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Site {
    /// The thread.
    pub thread: ThreadId,
    /// The call stack.
    pub stack: StackId,
    /// On whose behalf the memory was allocated.
    pub context: ContextId,
    /// The allocation function.
    pub allocator: Allocator,
    /// Everything that was ever allocated here. Zero if the source format does not have it (memray's aggregated captures).
    pub allocated: Tally,
    /// Live at the moment of the process's high-water mark.
    pub high_water: Tally,
    /// Live at the end of the capture.
    pub live: Tally,
    /// Freed by the same thread with at most one other allocation of it in between (memray's default threshold, 1).
    pub temporary: Tally,
    /// Time at which the oldest live block was allocated, in milliseconds since the start, if known.
    pub oldest_live_ms: Option<u64>,
}

impl Site {
    /// Adds the sums of `other`.
    pub fn add(&mut self, other: &Site) {
        self.allocated += other.allocated;
        self.high_water += other.high_water;
        self.live += other.live;
        self.temporary += other.temporary;
        let oldest = [self.oldest_live_ms, other.oldest_live_ms];
        self.oldest_live_ms = oldest.into_iter().flatten().min();
    }
}

/// Call sites, each (thread, stack, allocator, context) once, in the order of their first addition.
#[derive(Debug, Default)]
pub struct Sites {
    list: Vec<Site>,
    index: FastMap<(ThreadId, StackId, Allocator, ContextId), u32>,
}

impl Sites {
    /// Adds `site` to the equal one, or as a new one. Returns its number.
    pub fn add(&mut self, site: Site) -> u32 {
        let list = &mut self.list;
        let mut new = false;
        let number = *self
            .index
            .entry((site.thread, site.stack, site.allocator, site.context))
            .or_insert_with(|| {
                new = true;
                list.push(site);
                u32::try_from(list.len() - 1).expect("fewer sites than 2^32")
            });
        if !new {
            list[number as usize].add(&site);
        }
        number
    }

    /// Returns the sites.
    #[must_use]
    pub fn into_list(self) -> Vec<Site> {
        self.list
    }
}

/// Number of allocations of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SizeCount {
    /// Requested bytes.
    pub size: u64,
    /// Allocations of that size.
    pub count: u64,
}

/// Sums over the whole session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Totals {
    /// All allocations.
    pub allocated: Tally,
    /// Frees of known blocks.
    pub freed: Tally,
    /// Live at the end.
    pub live: Tally,
    /// Live at the high-water mark: the last moment at which the heap was at its largest.
    pub high_water: Tally,
    /// Time of the high-water mark in milliseconds since the start, if known.
    pub high_water_ms: Option<u64>,
    /// Allocations by size, smallest first; exact unless `sizes_rounded`.
    pub sizes: Vec<SizeCount>,
    /// Set if large sizes were counted in steps of under 1 %, because there were too many distinct ones.
    pub sizes_rounded: bool,
    /// Allocations by function, in the order of their first use if known: memray breaks ties by it.
    pub by_allocator: Vec<(Allocator, Tally)>,
}
