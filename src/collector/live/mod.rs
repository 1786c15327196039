//! The live table: every live block, by address.
//!
//! It is a hash table of cache lines with four slots each, in 16 shards. A block belongs into the line that its address
//! chooses. If that line is full, as for about one block in fifteen, the block goes to one of the next four lines, which the
//! processor fetches along with it, and if these are full, to a map. The line counts its blocks that are elsewhere, so that
//! most searches look at one line only. A shard grows by a quarter when it is three quarters full, independently of the
//! others, so that no growth takes long. Shards start at different sizes, so that they do not all grow at once.
//!
//! Lines are in the order of keys. So a shard is resized in place, in one sweep: no block is searched for, and there is
//! never a second table. Lines lie in pages of their own, which the kernel moves without copying them.
//!
//! ```text
//! line     [ slot | slot | slot | slot ]                              64 bytes
//! word 0   [ key 44            | beside 4      | size, low 16 bits ]  key 0 = empty; beside: in the first slot only
//! word 1   [ site 28           | birth 26      | size, high 10     ]
//! ```
//!
//! An address of 48 bits is spread by a bijection. Its top 4 bits then choose the shard, and the other 44 are the key.
//! Larger values are kept in ordinary maps: sizes of 64 MiB and more, and addresses with more bits.

mod shard;
mod slot;

use super::birth::Birth;
use super::hash::Map;
use super::sites::SiteId;
use crate::capture::arch::prefetch;
use shard::{FEWEST_LINES, Shard};
use slot::{KEY_SHIFT, LARGE, Line, Slot, block, site, size};

const SHARD_BITS: u32 = 4;
const SHARDS: usize = 1 << SHARD_BITS;
const ADDRESS_BITS: u32 = 48;
const ADDRESSES: u64 = (1 << ADDRESS_BITS) - 1;
/// Lines of a shard at which the table has 256 KiB.
const CACHED_LINES: usize = (256 << 10) / size_of::<Line>() / SHARDS;

/// Live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) size: u64,
    pub(super) site: SiteId,
    pub(super) birth: Birth,
}

/// Place of an address in the table: its spread 48 bits. The lower 44 are 0 for an address that has no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place(u64);

impl Place {
    /// Returns the place of `address`.
    #[inline]
    pub(super) fn of(address: u64) -> Place {
        // Odd factors, and a shift of a number's own high half: each step is invertible, so no two addresses collide.
        let spread = address.wrapping_mul(0x9E37_79B9_7F4B) & ADDRESSES;
        let spread = (spread ^ (spread >> 24)).wrapping_mul(0xC2B2_AE3D_27D5);
        let has_slot = address.wrapping_sub(1) < ADDRESSES;
        Place(if has_slot { spread & ADDRESSES } else { 0 })
    }

    #[inline]
    fn shard(self) -> usize {
        (self.0 >> (ADDRESS_BITS - SHARD_BITS)) as usize % SHARDS
    }

    /// Returns the key; 0 for an address that has no slot.
    #[inline]
    fn key(self) -> u64 {
        self.0 & (u64::MAX >> KEY_SHIFT)
    }
}

/// Live table; see the module.
#[derive(Debug)]
pub(super) struct LiveTable {
    shards: Box<[Shard; SHARDS]>,
    /// Sizes of blocks that have a slot and [`LARGE`] or more bytes.
    large: Map<u64, u64>,
    /// Slots that are set aside while a shard is resized. Its capacity is kept for the next time.
    spare: Vec<Slot>,
    /// Blocks at addresses that have no slot.
    far: Map<u64, Block>,
}

impl Default for LiveTable {
    fn default() -> Self {
        // The largest shard begins with a quarter more lines than the smallest, because they grow by a quarter.
        let lines = |number| FEWEST_LINES + number * FEWEST_LINES / (4 * SHARDS);
        LiveTable {
            shards: Box::new(std::array::from_fn(|number| Shard::of(lines(number)))),
            large: Map::default(),
            spare: Vec::new(),
            far: Map::default(),
        }
    }
}

impl LiveTable {
    /// Adds a block at `address`, whose place is `place`. Returns the block that was there.
    #[inline(always)]
    pub(super) fn insert(&mut self, place: Place, address: u64, block: Block) -> Option<Block> {
        if place.key() == 0 {
            return self.far.insert(address, block);
        }
        let size = block.size.min(LARGE);
        let slot = slot::pack(place.key(), Block { size, ..block });
        let old = self.shards[place.shard()].insert(slot, &mut self.spare);
        let old = old.map(|old| self.unpack(address, old));
        if size == LARGE {
            self.large.insert(address, block.size);
        }
        old
    }

    /// Removes the block at `address`, whose place is `place`.
    #[inline(always)]
    pub(super) fn remove(&mut self, place: Place, address: u64) -> Option<Block> {
        if place.key() == 0 {
            return self.far.remove(&address);
        }
        let slot = self.shards[place.shard()].remove(place.key(), &mut self.spare)?;
        Some(self.unpack(address, slot))
    }

    /// Returns whether there may be a block at `place`. Looks at one line.
    #[inline(always)]
    pub(super) fn may_have(&self, place: Place) -> bool {
        if place.key() == 0 {
            return true;
        }
        self.shards[place.shard()].may_have(place.key())
    }

    /// Returns whether the table is too large for the nearest caches, so that [`prefetch`](Self::prefetch) pays.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.shards[0].count > CACHED_LINES
    }

    /// Returns whether there is a block at `address`.
    pub(super) fn contains(&self, address: u64) -> bool {
        let place = Place::of(address);
        if place.key() == 0 {
            return self.far.contains_key(&address);
        }
        self.shards[place.shard()].find(place.key()).is_some()
    }

    /// Prefetches the line of `place`.
    #[inline(always)]
    pub(super) fn prefetch(&self, place: Place) {
        let shard = &self.shards[place.shard()];
        if let Some(line) = shard.lines().get(shard.line(place.key())) {
            prefetch(line);
        }
    }

    /// Returns the site of the block at `place`, if it is in its line.
    #[inline]
    pub(super) fn site(&self, place: Place) -> Option<SiteId> {
        if place.key() == 0 {
            return None;
        }
        let slot = self.shards[place.shard()].slot(place.key())?;
        Some(site(slot))
    }

    /// Returns all blocks, in no order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        let slots = self.shards.iter().flat_map(Shard::iter);
        let small = slots
            .map(|slot| block(slot, size(slot)))
            .filter(|block| block.size != LARGE);
        // A slot alone does not say which of the large sizes is its own.
        let large = self.large.iter().filter_map(|(&address, &size)| {
            let place = Place::of(address);
            let slot = self.shards[place.shard()].find(place.key())?;
            Some(block(slot, size))
        });
        small.chain(large).chain(self.far.values().copied())
    }

    /// Returns the number of blocks.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len).sum::<usize>() + self.far.len()
    }

    /// Returns the table's bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        let shards: usize = self.shards.iter().map(Shard::memory_bytes).sum();
        let large = map_bytes::<(u64, u64)>(self.large.capacity());
        let spare = self.spare.capacity() * size_of::<Slot>();
        (shards + large + spare + map_bytes::<(u64, Block)>(self.far.capacity())) as u64
    }

    /// Returns those bytes that are pages of its own and not the allocator's.
    pub(super) fn mapped_bytes(&self) -> u64 {
        let shards = self.shards.iter();
        shards.map(|shard| shard.mapped_bytes() as u64).sum()
    }

    /// Returns the block of a slot that was removed, with its size from the map of large sizes.
    #[inline(always)]
    fn unpack(&mut self, address: u64, slot: Slot) -> Block {
        let mut size = size(&slot);
        if size == LARGE {
            size = self.large.remove(&address).unwrap_or(LARGE);
        }
        block(&slot, size)
    }
}

/// Returns the bytes of a standard map: a table of a power of two entries, seven eighths of which count, and a byte per
/// entry.
fn map_bytes<Entry>(capacity: usize) -> usize {
    (capacity * 8 / 7) * (size_of::<Entry>() + 1)
}

#[cfg(test)]
mod tests;
