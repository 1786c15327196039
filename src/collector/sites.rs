//! Call sites: what each (thread, call stack, function) allocated, and what of it is live. A thread is here the entry
//! that it is counted under.
//!
//! What changes with every event is one cache line a site; what is asked for less often lies in columns beside it.

use super::hash::mix;
use super::index::Index;
use crate::capture::arch::prefetch;
use crate::capture::event::{Kind, NodeId};
use heapray_report::model::Tally;

/// A number of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SiteId(pub(super) u32);

impl SiteId {
    /// Bits that a number needs: the live table has no more room.
    pub(super) const BITS: u32 = 28;
    /// The site that stands for all those past the last number. 256 million of them need 25 GB, so none is expected.
    const OVERFLOW: SiteId = SiteId((1 << SiteId::BITS) - 1);
}

/// Who allocates, from where, with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) entry: u32,
    pub(super) node: NodeId,
    pub(super) kind: Kind,
}

impl Key {
    /// A hash whose high 4 bits are the kind, so that equal tags mean equal kinds.
    #[inline]
    pub(super) fn tag(self) -> u32 {
        let hash = mix(u64::from(self.entry) << 32 | u64::from(self.node.0));
        (self.kind as u32) << 28 | (hash >> 36) as u32
    }
}

/// What changes with every event.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Hot {
    allocated: Tally,
    live: Tally,
    /// `live` at the high-water mark, if `kept` is its epoch; else `live` has not changed since.
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

/// All tallies of a site.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tallies {
    pub(super) allocated: Tally,
    pub(super) high_water: Tally,
    pub(super) live: Tally,
    pub(super) temporary: Tally,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Sites {
    hot: Vec<Hot>,
    kinds: Vec<Kind>,
    temporary: Vec<Tally>,
    index: Index,
    bound: SiteBound,
}

/// Where sites have no room.
#[derive(Debug)]
struct SiteBound {
    /// No site is added past so many, but for those of `others`.
    most: usize,
    /// The stack that stands for all others.
    others: NodeId,
    /// There are such sites.
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
    /// The site of `key`, whose tag is `tag`; it is added if it is new.
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

    /// Blocks were allocated. `keep` is [`Peak::move_to`](super::peak::Peak::move_to)'s answer.
    #[inline(always)]
    pub(super) fn allocate(&mut self, site: SiteId, blocks: Tally, keep: Option<u64>) {
        let site = &mut self.hot[site.0 as usize];
        if let Some(epoch) = keep {
            site.keep(epoch);
        }
        add(&mut site.allocated, blocks);
        add(&mut site.live, blocks);
    }

    /// `bytes` of the live ones are gone; with them `blocks` blocks, or -1 if a block was split in two.
    /// `keep` as for [`allocate`](Self::allocate).
    #[inline(always)]
    pub(super) fn free(&mut self, site: SiteId, blocks: i64, bytes: u64, keep: Option<u64>) {
        let site = &mut self.hot[site.0 as usize];
        if let Some(epoch) = keep {
            site.keep(epoch);
        }
        site.live.count = site.live.count.wrapping_add_signed(-blocks);
        site.live.bytes = site.live.bytes.wrapping_sub(bytes);
    }

    /// A block was allocated and freed, and nothing else between. `keep` is the epoch of the mark that
    /// it brought, if that is over now.
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

    /// As [`short_lived`](Self::short_lived), of a block that does not bring the mark; it is a temporary one if the site is of
    /// `entry`, and not one that stands for many.
    #[inline(always)]
    pub(super) fn short_lived_below_mark(&mut self, site: SiteId, size: u64, entry: u32) {
        let at = site.0 as usize;
        let site = &mut self.hot[at];
        add(&mut site.allocated, one(size));
        if site.entry == entry {
            add(&mut self.temporary[at], one(size));
        }
    }

    /// What was freed had been temporary.
    #[inline]
    pub(super) fn temporary(&mut self, site: SiteId, blocks: Tally) {
        self.temporary[site.0 as usize] += blocks;
    }

    /// The entry of the threads that allocated there.
    #[inline]
    pub(super) fn entry(&self, site: SiteId) -> u32 {
        self.hot[site.0 as usize].entry
    }

    /// Every site, in the order of its number. `epoch` is the peak's.
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

    /// So many sites may be added from now on. Past them those of a thread and a function are summed up under the stack
    /// `others`.
    pub(super) fn set_room(&mut self, sites: usize, others: NodeId) {
        self.bound.most = self.hot.len().saturating_add(sites);
        self.bound.others = others;
    }

    /// Whether sites were ever summed up for want of room.
    pub(super) fn has_folded(&self) -> bool {
        self.bound.has_folded
    }

    /// How many sites there are.
    pub(super) fn len(&self) -> usize {
        self.hot.len()
    }

    /// Lets the place where the search for the site of `tag` begins come into the cache.
    #[inline(always)]
    pub(super) fn prefetch_tag(&self, tag: u32) {
        self.index.prefetch(tag);
    }

    /// Lets the site that most probably has `tag` come into the cache.
    #[inline(always)]
    pub(super) fn prefetch_site_of(&self, tag: u32) {
        if let Some(at) = self.index.guess(tag) {
            self.prefetch_site(SiteId(at));
        }
    }

    /// Lets a site come into the cache.
    #[inline(always)]
    pub(super) fn prefetch_site(&self, site: SiteId) {
        if let Some(site) = self.hot.get(site.0 as usize) {
            prefetch(site);
        }
    }

    /// Bytes of memory it holds.
    pub(super) fn memory_bytes(&self) -> u64 {
        let columns = size_of::<Hot>() + size_of::<Kind>() + size_of::<Tally>();
        (self.len() * columns) as u64 + self.index.memory_bytes()
    }
}

/// What a block of `size` bytes stands for where every one is recorded.
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
