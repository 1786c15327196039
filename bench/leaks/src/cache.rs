//! A cache: bounded or not, with an optional index that is regrown by `realloc`.

use crate::Site;
use crate::heap::Heap;
use crate::rng::Rng;
use std::collections::BTreeMap;
use std::ops::Range;

/// Entries differ little in size, so that a full cache's bytes stay nearly constant.
const ENTRY_BYTES: Range<u64> = 448..576;
const INDEX_SLOT_BYTES: u64 = 16;

/// Which entry leaves a full cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eviction {
    LeastRecentlyUsed,
    Random,
}

#[derive(Debug)]
struct Entry {
    block: u64,
    last_use: u64,
}

/// The cache's container: one block that doubles.
#[derive(Debug)]
struct Index {
    site: Site,
    block: u64,
    capacity: u64,
}

/// A cache of blocks of one call site.
#[derive(Debug)]
pub(crate) struct Cache {
    site: Site,
    bound: Option<u64>,
    eviction: Eviction,
    entries: BTreeMap<u64, Entry>,
    keys_by_use: BTreeMap<u64, u64>,
    uses: u64,
    index: Option<Index>,
}

impl Cache {
    /// Makes an empty cache of at most `bound` entries (`None`: without a bound).
    pub(crate) fn new(site: Site, bound: Option<u64>, eviction: Eviction) -> Self {
        let (entries, keys_by_use) = (BTreeMap::new(), BTreeMap::new());
        Self {
            site,
            bound: bound.map(|bound| bound.max(2)),
            eviction,
            entries,
            keys_by_use,
            uses: 0,
            index: None,
        }
    }

    /// Adds an index, allocated now.
    pub(crate) fn with_index(mut self, heap: &mut Heap, site: Site) -> Self {
        let capacity = 8;
        let block = heap.allocate(0, site, capacity * INDEX_SLOT_BYTES);
        self.index = Some(Index {
            site,
            block,
            capacity,
        });
        self
    }

    /// Looks `key` up. A missing entry is made, and another one evicted where the cache is full.
    pub(crate) fn look_up(&mut self, heap: &mut Heap, rng: &mut Rng, thread: u8, key: u64) {
        self.uses += 1;
        if let Some(entry) = self.entries.get_mut(&key) {
            self.keys_by_use.remove(&entry.last_use);
            entry.last_use = self.uses;
        } else {
            if self
                .bound
                .is_some_and(|bound| self.entries.len() as u64 >= bound)
            {
                self.evict(heap, rng, thread);
            }
            let block = heap.allocate_some(rng, thread, self.site, &ENTRY_BYTES);
            self.entries.insert(
                key,
                Entry {
                    block,
                    last_use: self.uses,
                },
            );
            self.regrow_index(heap, thread);
        }
        self.keys_by_use.insert(self.uses, key);
    }

    fn evict(&mut self, heap: &mut Heap, rng: &mut Rng, thread: u8) {
        let oldest = self
            .keys_by_use
            .first_key_value()
            .map_or(0, |(last_use, _)| *last_use);
        let from = match self.eviction {
            Eviction::LeastRecentlyUsed => oldest,
            // Near enough to uniform: the first entry that was used after a random moment.
            Eviction::Random => rng.within(&(oldest..self.uses)),
        };
        let found = self
            .keys_by_use
            .range(from..)
            .next()
            .or(self.keys_by_use.first_key_value());
        if let Some((&last_use, &key)) = found {
            self.keys_by_use.remove(&last_use);
            if let Some(entry) = self.entries.remove(&key) {
                heap.free(thread, entry.block);
            }
        }
    }

    fn regrow_index(&mut self, heap: &mut Heap, thread: u8) {
        let Some(index) = &mut self.index else { return };
        if self.entries.len() as u64 > index.capacity {
            index.capacity *= 2;
            heap.resize(
                thread,
                index.block,
                index.site,
                index.capacity * INDEX_SLOT_BYTES,
            );
        }
    }
}

/// Keys of a key space that grows with the requests: half of the look-ups are for a key never seen before.
#[derive(Debug, Default)]
pub(crate) struct GrowingKeys(u64);

impl GrowingKeys {
    /// Returns the next key to look up.
    pub(crate) fn next(&mut self, rng: &mut Rng) -> u64 {
        if rng.one_of(2) {
            self.0 += 1;
            self.0
        } else {
            rng.below(self.0 + 1)
        }
    }
}
