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
    fn new(key: Key) -> Hot {
        let none = Tally::default();
        Hot {
            allocated: none,
            live: none,
            high_water: none,
            kept: 0,
            entry: key.entry,
            node: key.node,
        }
    }

    #[inline]
    fn keep(&mut self, epoch: u64) {
        if self.kept != epoch {
            self.kept = epoch;
            self.high_water = self.live;
        }
    }
}

/// The stack of a number that belongs to no site. The call tree has fewer nodes.
const NO_NODE: NodeId = NodeId(u32::MAX);

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
    /// Numbers of no site: those of retired contexts.
    free: Vec<u32>,
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
        if self.len() >= self.bound.most && key.node != self.bound.others {
            self.bound.has_folded = true;
            key.node = self.bound.others;
            return self.of(key, key.tag());
        }
        if let Some(free) = self.free.pop() {
            self.index.insert(tag, free);
            self.hot[free as usize] = Hot::new(key);
            self.kinds[free as usize] = key.kind;
            return SiteId(free);
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
        self.hot.push(Hot::new(key));
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

    /// Adds the sites of some entries, of which nothing is live, to those of others, which `entry_for` returns. `epoch` is the
    /// peak's. Returns the number of each such site with that of the site that its sums are in now. The first number is free.
    pub(super) fn fold(
        &mut self,
        epoch: u64,
        entry_for: impl Fn(u32) -> Option<u32>,
    ) -> Vec<(u32, u32)> {
        let mut folded = Vec::new();
        let most = std::mem::replace(&mut self.bound.most, usize::MAX);
        for at in 0..self.hot.len() {
            let hot = self.hot[at];
            let is_site = hot.node != NO_NODE && at != SiteId::OVERFLOW.0 as usize;
            let Some(entry) = entry_for(hot.entry).filter(|_| is_site) else {
                continue;
            };
            debug_assert_eq!(hot.live, Tally::default(), "nothing of it is live");
            let key = Key {
                entry,
                node: hot.node,
                kind: self.kinds[at],
            };
            let into = self.of(key, key.tag());
            let temporary = std::mem::take(&mut self.temporary[at]);
            self.temporary[into.0 as usize] += temporary;
            let into_hot = &mut self.hot[into.0 as usize];
            add(&mut into_hot.allocated, hot.allocated);
            if hot.kept == epoch {
                into_hot.keep(epoch);
                add(&mut into_hot.high_water, hot.high_water);
            }
            self.hot[at] = Hot {
                node: NO_NODE,
                ..Hot::new(key)
            };
            folded.push((at as u32, into.0));
        }
        self.bound.most = most;
        let hot = &self.hot;
        self.index.retain(|at| hot[at as usize].node != NO_NODE);
        self.free.extend(folded.iter().map(|&(at, _)| at));
        folded
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

    /// Returns all sites with their numbers, in that order. `epoch` is the peak's.
    pub(super) fn iter(&self, epoch: u64) -> impl Iterator<Item = (SiteId, Key, Tallies)> + '_ {
        let columns = self.hot.iter().zip(&self.kinds).zip(&self.temporary);
        let sites = (0..)
            .zip(columns)
            .filter(|(_, ((hot, _), _))| hot.node != NO_NODE);
        sites.map(move |(at, ((hot, &kind), &temporary))| {
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
            (SiteId(at), key, tallies)
        })
    }

    /// Returns each site's number, live bytes and allocated bytes.
    pub(super) fn bytes(&self) -> impl Iterator<Item = SiteBytes> + '_ {
        let sites = (0..).zip(&self.hot);
        sites.map(|(number, hot)| (number, hot.live.bytes, hot.allocated.bytes))
    }

    /// Allows so many sites from now on. Further ones of a thread and a function are summed up under the stack `others`.
    pub(super) fn set_room(&mut self, sites: usize, others: NodeId) {
        self.bound.most = self.len().saturating_add(sites);
        self.bound.others = others;
    }

    /// Returns whether sites were ever summed up for lack of room.
    pub(super) fn has_folded(&self) -> bool {
        self.bound.has_folded
    }

    /// Returns the number of sites.
    pub(super) fn len(&self) -> usize {
        self.hot.len() - self.free.len()
    }

    /// Returns the end of the sites' numbers: none is as large.
    pub(super) fn end(&self) -> usize {
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
        (self.end() * columns + size_of_val(self.free.as_slice())) as u64
            + self.index.memory_bytes()
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
