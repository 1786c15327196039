//! The live table: every live block, by address.
//!
//! Memory is divided into regions of 4 KiB. The blocks of a region are together in a run of cache lines, a small hash table of
//! its own, with five slots in each line. The run is in the cache while the service allocates in that region, and so its
//! growth costs little. An index like the processor's page tables has the run of each region.
//!
//! A block belongs into the line that its offset in the region chooses. If that line is full, the block goes to the next one of the
//! run that has room. The line counts its blocks that are elsewhere, so that most searches look at one line only.
//!
//! ```text
//! line     [ 5 keys of 4 bytes | beside 4 bytes | 5 values of 8 bytes ]      64 bytes
//! key      [ size, low 19 bits | used 1 | offset 12 ]
//! value    [ - 3 | site 28 | birth 26 | size, high 7 ]
//! ```
//!
//! Larger values are kept in ordinary maps: sizes of 64 MiB and more, and addresses of more than 48 bits. So are blocks for which
//! the kernel has no pages.

mod index;
mod pool;
mod run;
mod slot;

use super::birth::Birth;
use super::hash::Map;
use super::sites::SiteId;
use crate::capture::arch::prefetch;
use index::Index;
pub(super) use index::Place;
use pool::Pool;
use slot::{LARGE, Line, SLOTS, Slot};

/// Bits of an address that say where in its region it is.
const OFFSET_BITS: u32 = 12;
const ADDRESSES: u64 = (1 << 48) - 1;
/// Number of pools. Each grows on its own, and its runs are moved together on their own, so that neither takes long.
const POOLS: usize = 16;
/// Lines with which the table is too large for the nearest caches: 256 KiB.
const CACHED_LINES: usize = (256 << 10) / size_of::<Line>();

/// Live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) size: u64,
    pub(super) site: SiteId,
    pub(super) birth: Birth,
}

/// Live table; see the module.
#[derive(Debug)]
pub(super) struct LiveTable {
    index: Index,
    /// The runs of a leaf of the index are in one pool.
    pools: Box<[Pool; POOLS]>,
    /// Sizes of blocks that have a slot and [`LARGE`] or more bytes.
    large: Map<u64, u64>,
    /// Blocks that have no slot.
    far: Map<u64, Block>,
}

impl Default for LiveTable {
    fn default() -> Self {
        LiveTable {
            index: Index::new(),
            pools: pools(),
            large: Map::default(),
            far: Map::default(),
        }
    }
}

impl LiveTable {
    /// Returns the place of an address's region.
    #[inline(always)]
    pub(super) fn place(&self, address: u64) -> Place {
        self.index.place(address)
    }

    /// Does what [`place`](Self::place) does, faster for regions near those of the calls before.
    #[inline(always)]
    pub(super) fn place_again(&mut self, address: u64) -> Place {
        self.index.place_again(address)
    }

    /// Adds a block at `address`, whose region has been at `place`. Returns the block that was there.
    #[inline(always)]
    pub(super) fn insert(&mut self, place: Place, address: u64, block: Block) -> Option<Block> {
        if place == Place::NONE || !self.far.is_empty() {
            return self.insert_anywhere(address, block);
        }
        self.insert_at(place, address, block)
    }

    /// Inserts into a region that may be new, or into the map of blocks that have no slot.
    #[cold]
    fn insert_anywhere(&mut self, address: u64, block: Block) -> Option<Block> {
        let old = self.far.remove(&address);
        match self.index.add(address) {
            Some(place) => self.insert_at(place, address, block).or(old),
            None => {
                self.far.insert(address, block);
                old
            }
        }
    }

    #[inline(always)]
    fn insert_at(&mut self, place: Place, address: u64, block: Block) -> Option<Block> {
        if self.index.region(place).is_full() && !self.make_room(place) {
            let old = self.remove_at(place, address);
            self.far.insert(address, block);
            return old;
        }
        let (region, offset) = (self.index.region(place), offset(address));
        let size = block.size.min(LARGE);
        let slot = Slot::of(offset, Block { size, ..block });
        let pool = &mut self.pools[place.pool()];
        let line = pool.home_mut(region, offset);
        let (position, room) = (line.position(offset), line.room());
        let old = if let Some(old) = line.get(position) {
            line.set(position, slot);
            Some(old)
        } else if line.beside.count == 0 && room < SLOTS {
            line.set(room, slot);
            None
        } else {
            let home = run::home(offset, region.lines());
            run::insert_beside(pool.run_mut(region), home, slot)
        };
        let old = match old {
            Some(old) => Some(self.unpack(address, old)),
            None => {
                self.index.set(place, region.with_one_more());
                None
            }
        };
        if size == LARGE {
            self.large.insert(address, block.size);
        }
        old
    }

    /// Removes the block at `address`, whose region has been at `place`.
    #[inline(always)]
    pub(super) fn remove(&mut self, place: Place, address: u64) -> Option<Block> {
        if place == Place::NONE || !self.far.is_empty() {
            return self.remove_anywhere(address);
        }
        self.remove_at(place, address)
    }

    #[cold]
    fn remove_anywhere(&mut self, address: u64) -> Option<Block> {
        let far = self.far.remove(&address);
        far.or_else(|| self.remove_at(self.index.place(address), address))
    }

    #[inline(always)]
    fn remove_at(&mut self, place: Place, address: u64) -> Option<Block> {
        let region = self.index.region(place);
        if region.lines() == 0 {
            return None;
        }
        let offset = offset(address);
        let pool = &mut self.pools[place.pool()];
        let line = pool.home_mut(region, offset);
        let position = line.position(offset);
        let slot = if let Some(slot) = line.get(position) {
            line.clear(position);
            slot
        } else if line.beside.count == 0 {
            return None;
        } else {
            let home = run::home(offset, region.lines());
            run::take_beside(pool.run_mut(region), home, offset)?
        };
        let region = region.with_one_less();
        self.index.set(place, region);
        if region.blocks() == 0 || region.is_sparse() {
            self.give_room(place);
        }
        Some(self.unpack(address, slot))
    }

    /// Gives a region a larger run. Returns whether the region has room for another block then.
    #[cold]
    fn make_room(&mut self, place: Place) -> bool {
        let class = self.index.region(place).larger_class();
        if self.pools[place.pool()].wants_order(class) {
            self.compact(place.pool());
        }
        let region = self.index.region(place);
        match self.pools[place.pool()].move_to(region, class) {
            Some(moved) => self.index.set(place, moved),
            None => return region.blocks() < region.lines() * SLOTS as u32,
        }
        true
    }

    /// Gives a region a smaller run, or none.
    #[cold]
    fn give_room(&mut self, place: Place) {
        let region = self.index.region(place);
        let pool = &mut self.pools[place.pool()];
        if region.blocks() == 0 {
            pool.give(region);
            self.index.set(place, region.emptied());
        } else if let Some(class) = region.smaller_class()
            && let Some(moved) = pool.move_to(region, class)
        {
            self.index.set(place, moved);
        }
        if pool.is_mostly_free() {
            self.compact(place.pool());
        }
    }

    /// Moves the runs of a pool together.
    #[cold]
    fn compact(&mut self, pool: usize) {
        let leaves = self.index.leaves_mut().skip(pool).step_by(POOLS);
        let regions = leaves.flatten().filter(|region| region.lines() != 0);
        self.pools[pool].compact(regions.collect());
    }

    /// Returns whether there may be a block at `address`, whose region has been at `place`. Looks at one line.
    #[inline(always)]
    pub(super) fn may_have(&self, place: Place, address: u64) -> bool {
        if place == Place::NONE || !self.far.is_empty() {
            return true;
        }
        self.home(place, address)
            .is_some_and(|line| line.beside.count != 0 || line.position(offset(address)) < SLOTS)
    }

    /// Returns whether the table is too large for the nearest caches, so that [`prefetch`](Self::prefetch) pays.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.pools.iter().map(Pool::used).sum::<usize>() > CACHED_LINES
    }

    /// Returns whether there is a block at `address`.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.far.contains_key(&address) || self.slot(address).is_some()
    }

    /// Prefetches the line of the block at `address`.
    #[inline(always)]
    pub(super) fn prefetch(&self, place: Place, address: u64) {
        let region = self.index.region(place);
        prefetch(self.pools[place.pool()].home(region, offset(address)));
    }

    /// Returns the site of the block at `address`, if it is in its line.
    #[inline]
    pub(super) fn site(&self, place: Place, address: u64) -> Option<SiteId> {
        let line = self.home(place, address)?;
        let slot = line.get(line.position(offset(address)))?;
        Some(slot.site())
    }

    /// Returns all blocks, in no order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        let small = self
            .slots()
            .map(|slot| slot.block(slot.size()))
            .filter(|block| block.size != LARGE);
        // A slot alone does not say which of the large sizes is its own.
        let large = self.large.iter().filter_map(|(&address, &size)| {
            let slot = self.slot(address)?;
            Some(slot.block(size))
        });
        small.chain(large).chain(self.far.values().copied())
    }

    /// Returns the number of blocks.
    #[cfg(test)]
    fn len(&self) -> usize {
        let regions = self.index.leaves().flatten();
        regions
            .map(|region| region.blocks() as usize)
            .sum::<usize>()
            + self.far.len()
    }

    /// Returns the table's bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        let pools: usize = self.pools.iter().map(Pool::memory_bytes).sum();
        let large = map_bytes::<(u64, u64)>(self.large.capacity());
        let far = map_bytes::<(u64, Block)>(self.far.capacity());
        (self.index.mapped_bytes() + pools + large + far) as u64
    }

    /// Returns those bytes that are pages of its own and not the allocator's.
    pub(super) fn mapped_bytes(&self) -> u64 {
        let pools: usize = self.pools.iter().map(Pool::mapped_bytes).sum();
        (self.index.mapped_bytes() + pools) as u64
    }

    /// Returns the line to which the block at `address` belongs.
    #[inline(always)]
    fn home(&self, place: Place, address: u64) -> Option<&Line> {
        let region = self.index.region(place);
        let line = self.pools[place.pool()].home(region, offset(address));
        (region.lines() != 0).then_some(line)
    }

    fn slot(&self, address: u64) -> Option<Slot> {
        let place = self.index.place(address);
        let run = self.pools[place.pool()].run(self.index.region(place));
        run::find(run, offset(address))
    }

    fn slots(&self) -> impl Iterator<Item = Slot> {
        self.index.leaves().enumerate().flat_map(|(leaf, regions)| {
            let pool = &self.pools[leaf % POOLS];
            let lines = regions.iter().flat_map(|&region| pool.run(region));
            lines.flat_map(Line::used)
        })
    }

    /// Returns the block of a slot that was removed, with its size from the map of large sizes.
    #[inline(always)]
    fn unpack(&mut self, address: u64, slot: Slot) -> Block {
        let mut size = slot.size();
        if size == LARGE {
            size = self.large.remove(&address).unwrap_or(LARGE);
        }
        slot.block(size)
    }
}

/// Returns empty pools, which are on the stack one at a time only: a small stack has no room for all.
fn pools() -> Box<[Pool; POOLS]> {
    let pools: Vec<Pool> = (0..POOLS).map(|_| Pool::new()).collect();
    pools.try_into().expect("as many as were made")
}

/// Returns where in its region an address is.
#[inline(always)]
fn offset(address: u64) -> u32 {
    address as u32 % (1 << OFFSET_BITS)
}

/// Returns the bytes of a standard map: a table of a power of two entries, seven eighths of which count, and a byte per
/// entry.
fn map_bytes<Entry>(capacity: usize) -> usize {
    (capacity * 8 / 7) * (size_of::<Entry>() + 1)
}

#[cfg(test)]
mod tests;
