//! Call sites: the allocations and the live blocks of each (thread, call stack, function). A thread is the entry that it is
//! counted under.
//!
//! The fields that change with every event take one cache line per site; the others lie in columns beside it.

use super::hash::mix;
use super::index::Index;
use crate::capture::arch::prefetch;
use crate::capture::event::{Kind, NodeId};
use heapray_report::checkpoints::SiteBytes;
use heapray_report::model::Tally;

/// Number of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SiteId(pub(super) u32);

impl SiteId {
    /// Bits of a number: the live table has no room for more.
    pub(super) const BITS: u32 = 28;
    /// Site that stands for all those past the last number. 256 million of them need 25 GB, so this is not expected.
    const OVERFLOW: SiteId = SiteId((1 << SiteId::BITS) - 1);
}

/// Key of a site: thread entry, call stack and function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) entry: u32,
    pub(super) node: NodeId,
    pub(super) kind: Kind,
}

impl Key {
    /// Returns a hash whose high 4 bits are the kind, so that equal tags mean equal kinds.
    #[inline]
    pub(super) fn tag(self) -> u32 {
        let hash = mix(u64::from(self.entry) << 32 | u64::from(self.node.0));
        (self.kind as u32) << 28 | (hash >> 36) as u32
    }
}

/// Fields of a site that change with every event.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Hot {
    allocated: Tally,
    live: Tally,
    /// `live` at the high-water mark, if `kept` is its epoch. Otherwise `live` has not changed since the mark.
    high_water: Tally,
    kept: u64,
    entry: u32,
    node: NodeId,
}

const _: () = assert!(size_of::<Hot>() == 64, "a site is one cache line");

impl Hot {
    #[inline]
    fn keep(&mut self, epoch: u64) {
        if self.kept != epoch {
            self.kept = epoch;
            self.high_water = self.live;
        }
    }
}

/// Sums of a site.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tallies {
    pub(super) allocated: Tally,
    pub(super) high_water: Tally,
    pub(super) live: Tally,
    pub(super) temporary: Tally,
}

/// Call sites; see the module.
#[derive(Debug, Default)]
pub(super) struct Sites {
    hot: Vec<Hot>,
    kinds: Vec<Kind>,
    temporary: Vec<Tally>,
    index: Index,
    bound: SiteBound,
}

/// Limit on the number of sites.
#[derive(Debug)]
struct SiteBound {
    /// Largest number of sites, not counting those of `others`.
    most: usize,
    /// The stack that stands for all other stacks.
    others: NodeId,
    /// Set if such sites exist.
    has_folded: bool,
}

impl Default for SiteBound {
    fn default() -> Self {
        SiteBound {
            most: usize::MAX,
            others: NodeId::ROOT,
            has_folded: false,
        }
    }
}

impl Sites {
    /// Returns the site of `key`, whose tag is `tag`, and adds it if it is new.
    #[inline(always)]
    pub(super) fn of(&mut self, key: Key, tag: u32) -> SiteId {
        let hot = &self.hot;
        let found = self.index.find(tag, |at| {
            hot.get(at as usize)
                .is_some_and(|site| site.node == key.node && site.entry == key.entry)
        });
        match found {
            Some(at) => SiteId(at),
            None => self.add(key, tag),
        }
    }

    #[cold]
    fn add(&mut self, mut key: Key, tag: u32) -> SiteId {
        if self.hot.len() >= self.bound.most && key.node != self.bound.others {
            self.bound.has_folded = true;
            key.node = self.bound.others;
            return self.of(key, key.tag());
        }
        let next = SiteId(self.hot.len() as u32);
        if next > SiteId::OVERFLOW {
            return SiteId::OVERFLOW;
        }
        if next == SiteId::OVERFLOW {
            key.node = NodeId::ROOT;
        } else {
            self.index.insert(tag, next.0);
        }
        self.hot.push(Hot {
            allocated: Tally::default(),
            live: Tally::default(),
            high_water: Tally::default(),
            kept: 0,
            entry: key.entry,
            node: key.node,
        });
        self.kinds.push(key.kind);
        self.temporary.push(Tally::default());
        next
    }

    /// Counts allocated blocks. `keep` is the result of [`Peak::move_to`](super::peak::Peak::move_to).
    #[inline(always)]
    pub(super) fn allocate(&mut self, site: SiteId, blocks: Tally, keep: Option<u64>) {
        let site = &mut self.hot[site.0 as usize];
        if let Some(epoch) = keep {
            site.keep(epoch);
        }
        add(&mut site.allocated, blocks);
        add(&mut site.live, blocks);
    }

    /// Counts `bytes` freed bytes, and with them `blocks` blocks, or -1 if a block was split in two. `keep` is the same as
    /// for [`allocate`](Self::allocate).
    #[inline(always)]
    pub(super) fn free(&mut self, site: SiteId, blocks: i64, bytes: u64, keep: Option<u64>) {
        let site = &mut self.hot[site.0 as usize];
        if let Some(epoch) = keep {
            site.keep(epoch);
        }
        site.live.count = site.live.count.wrapping_add_signed(-blocks);
        site.live.bytes = site.live.bytes.wrapping_sub(bytes);
    }

    /// Counts a block that was allocated and freed with nothing between. If the block set a new high-water mark that is over
    /// now, `keep` is its epoch.
    #[inline(always)]
    pub(super) fn short_lived(&mut self, site: SiteId, block: Tally, keep: Option<u64>) {
        let site = &mut self.hot[site.0 as usize];
        if let Some(epoch) = keep {
            site.kept = epoch;
            site.high_water = site.live;
            add(&mut site.high_water, block);
        }
        add(&mut site.allocated, block);
    }

    /// Does what [`short_lived`](Self::short_lived) does, for a block that does not set a new mark. The block is temporary
    /// if the site belongs to `entry`, unless the site stands for many.
    #[inline(always)]
    pub(super) fn short_lived_below_mark(&mut self, site: SiteId, size: u64, entry: u32) {
        let at = site.0 as usize;
        let site = &mut self.hot[at];
        add(&mut site.allocated, one(size));
        if site.entry == entry {
            add(&mut self.temporary[at], one(size));
        }
    }

    /// Counts freed blocks that were temporary.
    #[inline]
    pub(super) fn temporary(&mut self, site: SiteId, blocks: Tally) {
        self.temporary[site.0 as usize] += blocks;
    }

    /// Returns the entry of the threads that allocated at the site.
    #[inline]
    pub(super) fn entry(&self, site: SiteId) -> u32 {
        self.hot[site.0 as usize].entry
    }

    /// Returns all sites, in the order of their numbers. `epoch` is the peak's.
    pub(super) fn iter(&self, epoch: u64) -> impl Iterator<Item = (Key, Tallies)> + '_ {
        let columns = self.hot.iter().zip(&self.kinds).zip(&self.temporary);
        columns.map(move |((hot, &kind), &temporary)| {
            let key = Key {
                entry: hot.entry,
                node: hot.node,
                kind,
            };
            let at_mark = if hot.kept == epoch {
                hot.high_water
            } else {
                hot.live
            };
            let tallies = Tallies {
                allocated: hot.allocated,
                high_water: at_mark,
                live: hot.live,
                temporary,
            };
            (key, tallies)
        })
    }

    /// Returns each site's number, live bytes and allocated bytes.
    pub(super) fn bytes(&self) -> impl Iterator<Item = SiteBytes> + '_ {
        let sites = (0..).zip(&self.hot);
        sites.map(|(number, hot)| (number, hot.live.bytes, hot.allocated.bytes))
    }

    /// Allows so many sites from now on. Further ones of a thread and a function are summed up under the stack `others`.
    pub(super) fn set_room(&mut self, sites: usize, others: NodeId) {
        self.bound.most = self.hot.len().saturating_add(sites);
        self.bound.others = others;
    }

    /// Returns whether sites were ever summed up for lack of room.
    pub(super) fn has_folded(&self) -> bool {
        self.bound.has_folded
    }

    /// Returns the number of sites.
    pub(super) fn len(&self) -> usize {
        self.hot.len()
    }

    /// Prefetches the place where the search for the site of `tag` begins.
    #[inline(always)]
    pub(super) fn prefetch_tag(&self, tag: u32) {
        self.index.prefetch(tag);
    }

    /// Prefetches the site that most probably has `tag`.
    #[inline(always)]
    pub(super) fn prefetch_site_of(&self, tag: u32) {
        if let Some(at) = self.index.guess(tag) {
            self.prefetch_site(SiteId(at));
        }
    }

    /// Prefetches a site.
    #[inline(always)]
    pub(super) fn prefetch_site(&self, site: SiteId) {
        if let Some(site) = self.hot.get(site.0 as usize) {
            prefetch(site);
        }
    }

    /// Returns the bytes of memory of the sites.
    pub(super) fn memory_bytes(&self) -> u64 {
        let columns = size_of::<Hot>() + size_of::<Kind>() + size_of::<Tally>();
        (self.len() * columns) as u64 + self.index.memory_bytes()
    }
}

/// Returns the tally of one block of `size` bytes.
#[inline]
pub(super) fn one(size: u64) -> Tally {
    Tally {
        count: 1,
        bytes: size,
    }
}

#[inline]
pub(super) fn add(tally: &mut Tally, more: Tally) {
    tally.count += more.count;
    tally.bytes = tally.bytes.wrapping_add(more.bytes);
}
