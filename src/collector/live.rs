//! The live table: every block that was handed out and not given back, by address.
//!
//! It is a hash table of cache lines with four slots each, in 16 shards. A block is in the line that its address chooses;
//! one that finds it full goes to a map beside, one in twenty or so, and the line counts how many did, so that most
//! searches are of one line only. A shard grows by a third when it is two thirds full, alone, so that none stalls for
//! long. Shards start at different sizes, so that they do not all grow at once.
//!
//! Lines are in the order of keys. So a shard is resized where it lies, in one sweep: no block is searched for, and
//! there is never a second table. Lines lie in pages of their own, which the kernel moves without copying them.
//!
//! ```text
//! line     [ slot | slot | slot | slot ]                              64 bytes
//! word 0   [ key 44            | beside 4      | size, low 16 bits ]  key 0 = empty; beside: of the first slot only
//! word 1   [ site 28           | birth 26      | size, high 10     ]
//! ```
//!
//! An address of 48 bits is spread by a bijection; its top 4 bits then choose the shard, and the other 44 are the key. What
//! does not fit this is kept in ordinary maps: sizes of 64 MiB and more, and addresses that have more bits.

use super::birth::{self, Birth};
use super::hash::Map;
use super::sites::SiteId;
use crate::capture::arch::prefetch;
use crate::capture::memory::OwnedArray;

const SHARD_BITS: u32 = 4;
const SHARDS: usize = 1 << SHARD_BITS;
const ADDRESS_BITS: u32 = 48;
const ADDRESSES: u64 = (1 << ADDRESS_BITS) - 1;
const KEY_SHIFT: u32 = 64 - (ADDRESS_BITS - SHARD_BITS);
const BESIDE_SHIFT: u32 = 16;
/// A count that once came here stays, so that it is never too low.
const BESIDE_MOST: u64 = (1 << (KEY_SHIFT - BESIDE_SHIFT)) - 1;
const BESIDE: u64 = BESIDE_MOST << BESIDE_SHIFT;
const SIZE_LOW: u64 = (1 << BESIDE_SHIFT) - 1;
const SIZE_HIGH_BITS: u32 = 10;
/// Sizes from here on are kept in a map, and stand as this in the slot.
const LARGE: u64 = (1 << (BESIDE_SHIFT + SIZE_HIGH_BITS)) - 1;

const SLOTS: usize = 4;
/// A shard grows, by a third, when its lines hold more than this on average.
const FULL: (usize, usize) = (8, 3);
/// A shard of this size means a table of 256 KiB.
const CACHED_LINES: usize = (256 << 10) / size_of::<Line>() / SHARDS;
/// No shard shrinks below this: they begin with a page.
const FEWEST_LINES: usize = 48;

const _: () = assert!(SiteId::BITS + birth::BITS + SIZE_HIGH_BITS == 64);

/// A live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) size: u64,
    pub(super) site: SiteId,
    pub(super) birth: Birth,
}

/// Where to look for an address: its spread 48 bits; 0 in the lower 44 if it has no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place(u64);

impl Place {
    /// The place of `address`.
    #[inline]
    pub(super) fn of(address: u64) -> Place {
        // Odd factors and a shift of a number's own high half: each step can be undone, so no two addresses meet.
        let spread = address.wrapping_mul(0x9E37_79B9_7F4B) & ADDRESSES;
        let spread = (spread ^ (spread >> 24)).wrapping_mul(0xC2B2_AE3D_27D5);
        let has_slot = address.wrapping_sub(1) < ADDRESSES;
        Place(if has_slot { spread & ADDRESSES } else { 0 })
    }

    #[inline]
    fn shard(self) -> usize {
        (self.0 >> (ADDRESS_BITS - SHARD_BITS)) as usize % SHARDS
    }

    /// 0 for an address that has no slot.
    #[inline]
    fn key(self) -> u64 {
        self.0 & (u64::MAX >> KEY_SHIFT)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct LiveTable {
    shards: Box<[Shard; SHARDS]>,
    /// Sizes of blocks of [`LARGE`] bytes or more that have a slot.
    large: Map<u64, u64>,
    /// Blocks at addresses that have no slot.
    far: Map<u64, Block>,
}

impl Default for LiveTable {
    fn default() -> Self {
        let lines = |number| FEWEST_LINES + number;
        LiveTable {
            shards: Box::new(std::array::from_fn(|number| Shard::of(lines(number)))),
            large: Map::default(),
            far: Map::default(),
        }
    }
}

impl LiveTable {
    /// Adds a block at `address`, whose place is `place`; gives back the one that was there.
    #[inline(always)]
    pub(super) fn insert(&mut self, place: Place, address: u64, block: Block) -> Option<Block> {
        if place.key() == 0 {
            return self.far.insert(address, block);
        }
        let size = block.size.min(LARGE);
        let slot = [
            place.key() << KEY_SHIFT | (size & SIZE_LOW),
            u64::from(block.site.0) << (birth::BITS + SIZE_HIGH_BITS)
                | u64::from(block.birth.0) << SIZE_HIGH_BITS
                | size >> BESIDE_SHIFT,
        ];
        let old = self.shards[place.shard()].insert(slot);
        let old = old.map(|old| self.unpack(address, old));
        if size == LARGE {
            self.large.insert(address, block.size);
        }
        old
    }

    /// Takes out the block at `address`, whose place is `place`.
    #[inline(always)]
    pub(super) fn remove(&mut self, place: Place, address: u64) -> Option<Block> {
        if place.key() == 0 {
            return self.far.remove(&address);
        }
        let slot = self.shards[place.shard()].remove(place.key())?;
        Some(self.unpack(address, slot))
    }

    /// Whether there may be a block at `place`. One line is looked at.
    #[inline(always)]
    pub(super) fn may_have(&self, place: Place) -> bool {
        if place.key() == 0 {
            return true;
        }
        let shard = &self.shards[place.shard()];
        let line = &shard.lines()[shard.line(place.key())];
        position(line, place.key()) < SLOTS || line[0][0] & BESIDE != 0
    }

    /// Whether it is too large for the nearest caches, so that [`prefetch`](Self::prefetch) pays.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.shards[0].count > CACHED_LINES
    }

    /// Whether there is a block at `address`.
    pub(super) fn contains(&self, address: u64) -> bool {
        let place = Place::of(address);
        if place.key() == 0 {
            return self.far.contains_key(&address);
        }
        self.shards[place.shard()].find(place.key()).is_some()
    }

    /// Lets the line of `place` come into the cache.
    #[inline(always)]
    pub(super) fn prefetch(&self, place: Place) {
        let shard = &self.shards[place.shard()];
        if let Some(line) = shard.lines().get(shard.line(place.key())) {
            prefetch(line);
        }
    }

    /// The site of the block at `place`, if it is in its line.
    #[inline]
    pub(super) fn site(&self, place: Place) -> Option<SiteId> {
        if place.key() == 0 {
            return None;
        }
        let slot = self.shards[place.shard()].slot(place.key())?;
        Some(site(slot))
    }

    /// Every block, in no order.
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

    /// How many blocks there are.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len).sum::<usize>() + self.far.len()
    }

    /// Bytes of memory it holds.
    pub(super) fn memory_bytes(&self) -> u64 {
        let shards: usize = self.shards.iter().map(Shard::memory_bytes).sum();
        let large = map_bytes::<(u64, u64)>(self.large.capacity());
        (shards + large + map_bytes::<(u64, Block)>(self.far.capacity())) as u64
    }

    /// Those of them that are pages of its own and not the allocator's.
    pub(super) fn mapped_bytes(&self) -> u64 {
        let shards = self.shards.iter();
        shards.map(|shard| shard.mapped_bytes() as u64).sum()
    }

    /// What a slot that was taken out says, together with the map of large sizes.
    #[inline(always)]
    fn unpack(&mut self, address: u64, slot: Slot) -> Block {
        let mut size = size(&slot);
        if size == LARGE {
            size = self.large.remove(&address).unwrap_or(LARGE);
        }
        block(&slot, size)
    }
}

type Slot = [u64; 2];

#[inline]
fn site(slot: &Slot) -> SiteId {
    SiteId((slot[1] >> (birth::BITS + SIZE_HIGH_BITS)) as u32)
}

#[inline]
fn born(slot: &Slot) -> Birth {
    Birth((slot[1] >> SIZE_HIGH_BITS) as u32 & ((1 << birth::BITS) - 1))
}

/// [`LARGE`] if it did not fit.
#[inline]
fn size(slot: &Slot) -> u64 {
    let high = slot[1] & ((1 << SIZE_HIGH_BITS) - 1);
    high << BESIDE_SHIFT | (slot[0] & SIZE_LOW)
}

#[inline]
fn block(slot: &Slot, size: u64) -> Block {
    Block {
        size,
        site: site(slot),
        birth: born(slot),
    }
}

/// Which of the line's slots has `key`; past the last one if none has.
///
/// It looks at all of them: which one it is cannot be predicted, and a wrong guess costs more than the rest of them.
#[inline(always)]
fn position(line: &[Slot; SLOTS], key: u64) -> usize {
    let wanted = key << KEY_SHIFT;
    let mut position = SLOTS;
    for (at, slot) in line.iter().enumerate() {
        // Equal keys leave only what is below them.
        position = if slot[0] ^ wanted < 1 << KEY_SHIFT {
            at
        } else {
            position
        };
    }
    position
}

/// The line of `key` among `lines` lines. It never falls as the key rises, nor as there are more lines.
#[inline]
fn line_among(lines: usize, key: u64) -> usize {
    ((u128::from(key << KEY_SHIFT) * lines as u128) >> 64) as usize
}

/// The bytes of a standard map: a table of a power of two entries, seven eighths of which count, and a byte beside each.
fn map_bytes<Entry>(capacity: usize) -> usize {
    (capacity * 8 / 7) * (size_of::<Entry>() + 1)
}

type Line = [Slot; SLOTS];

const EMPTY: Line = [[0; 2]; SLOTS];

const _: () = assert!(size_of::<Line>() == 64);

#[derive(Debug)]
struct Shard {
    lines: OwnedArray<Line>,
    /// How many of the lines are in use; there is nothing in the others.
    count: usize,
    /// Blocks, those beside included.
    len: usize,
    /// It shrinks with fewer blocks than this, and grows with more than `most`.
    fewest: usize,
    most: usize,
    /// Slots of blocks whose line was full, by key. A count of them is in their line's first slot.
    beside: Map<u64, Slot>,
}

impl Shard {
    fn of(count: usize) -> Shard {
        let mut shard = Shard {
            lines: OwnedArray::mapped(count).expect("a session needs its first pages"),
            count,
            len: 0,
            fewest: 0,
            most: 0,
            beside: Map::default(),
        };
        shard.set_bounds();
        shard
    }

    fn set_bounds(&mut self) {
        self.most = self.count * FULL.0 / FULL.1;
        self.fewest = if self.count >= FEWEST_LINES * 3 {
            self.count / 2
        } else {
            0
        };
    }

    #[inline(always)]
    fn lines(&self) -> &[Line] {
        self.lines.as_slice()
    }

    #[inline(always)]
    fn line_mut(&mut self, at: usize) -> &mut Line {
        &mut self.lines.as_mut_slice()[at]
    }

    /// The line of `key`.
    #[inline(always)]
    fn line(&self, key: u64) -> usize {
        line_among(self.count, key)
    }

    #[inline]
    fn slot(&self, key: u64) -> Option<&Slot> {
        let line = &self.lines()[self.line(key)];
        line.get(position(line, key))
    }

    /// As [`slot`](Self::slot), also beside the lines.
    fn find(&self, key: u64) -> Option<&Slot> {
        self.slot(key).or_else(|| self.beside.get(&key))
    }

    #[inline(always)]
    fn insert(&mut self, new: Slot) -> Option<Slot> {
        let key = new[0] >> KEY_SHIFT;
        let at = self.line(key);
        let line = self.line_mut(at);
        let found = position(line, key);
        if let Some(slot) = line.get_mut(found) {
            let old = *slot;
            *slot = [new[0] | (old[0] & BESIDE), new[1]];
            return Some(old);
        }
        let empty = position(line, 0);
        if empty == SLOTS || line[0][0] & BESIDE != 0 {
            return self.insert_crowded(at, empty, new);
        }
        line[empty] = new;
        self.grown()
    }

    /// Some of the line's blocks are beside it, or it is full.
    #[cold]
    fn insert_crowded(&mut self, at: usize, empty: usize, new: Slot) -> Option<Slot> {
        let key = new[0] >> KEY_SHIFT;
        let line = &mut self.lines.as_mut_slice()[at];
        if line[0][0] & BESIDE != 0
            && let Some(slot) = self.beside.get_mut(&key)
        {
            return Some(std::mem::replace(slot, new));
        }
        if empty < SLOTS {
            line[empty] = [new[0] | (line[empty][0] & BESIDE), new[1]];
        } else {
            self.put_beside(at, new);
        }
        self.grown()
    }

    #[inline(always)]
    fn remove(&mut self, key: u64) -> Option<Slot> {
        let at = self.line(key);
        let line = self.line_mut(at);
        let found = position(line, key);
        if let Some(slot) = line.get_mut(found) {
            let old = *slot;
            slot[0] &= BESIDE;
            self.shrunk();
            return Some(old);
        }
        if line[0][0] & BESIDE == 0 {
            return None;
        }
        self.remove_beside(at, key)
    }

    #[cold]
    fn remove_beside(&mut self, at: usize, key: u64) -> Option<Slot> {
        let old = self.beside.remove(&key)?;
        let first = &mut self.line_mut(at)[0][0];
        if *first & BESIDE != BESIDE {
            *first -= 1 << BESIDE_SHIFT;
        }
        self.shrunk();
        Some(old)
    }

    #[inline(always)]
    fn grown(&mut self) -> Option<Slot> {
        self.len += 1;
        if self.len > self.most {
            self.grow();
        }
        None
    }

    #[inline(always)]
    fn shrunk(&mut self) {
        self.len -= 1;
        if self.len < self.fewest {
            self.shrink();
        }
    }

    /// From the last line to the first, since a block's line becomes a later one or stays: none comes upon a line
    /// whose blocks have yet to move.
    #[cold]
    fn grow(&mut self) {
        let (before, now) = (self.count, self.count * 4 / 3);
        if !self.lines.grow(now) {
            // Without memory more blocks are beside; asked again when there are twice as many.
            self.most *= 2;
            return;
        }
        self.count = now;
        let beside = std::mem::take(&mut self.beside);
        for at in (0..before).rev() {
            self.move_line(at);
        }
        self.put_all(beside);
    }

    /// The other way round, as [`grow`](Self::grow).
    #[cold]
    fn shrink(&mut self) {
        let (before, now) = (self.count, self.count / 3);
        self.count = now;
        let beside = std::mem::take(&mut self.beside);
        for at in 0..before {
            self.move_line(at);
        }
        self.lines.shrink(now);
        self.put_all(beside);
    }

    /// Moves the blocks of a line to where they belong now.
    #[inline(always)]
    fn move_line(&mut self, at: usize) {
        let line = *self.line_mut(at);
        *self.line_mut(at) = EMPTY;
        for slot in &line {
            let key = slot[0] >> KEY_SHIFT;
            if key != 0 {
                self.put(self.line(key), [slot[0] & !BESIDE, slot[1]]);
            }
        }
    }

    /// Those that were beside their lines, when all others have been moved.
    fn put_all(&mut self, beside: Map<u64, Slot>) {
        for (key, slot) in beside {
            self.put(self.line(key), slot);
        }
        self.set_bounds();
    }

    /// Puts a block, whose key is nowhere yet, into a line from which none was taken since it was empty.
    #[inline]
    fn put(&mut self, at: usize, slot: Slot) {
        let line = self.line_mut(at);
        match line.iter_mut().find(|slot| slot[0] >> KEY_SHIFT == 0) {
            Some(empty) => *empty = slot,
            None => self.put_beside(at, slot),
        }
    }

    fn put_beside(&mut self, at: usize, slot: Slot) {
        let first = &mut self.line_mut(at)[0][0];
        if *first & BESIDE != BESIDE {
            *first += 1 << BESIDE_SHIFT;
        }
        self.beside.insert(slot[0] >> KEY_SHIFT, slot);
    }

    fn iter(&self) -> impl Iterator<Item = &Slot> {
        let slots = self.lines().iter().flatten();
        slots
            .filter(|slot| slot[0] >> KEY_SHIFT != 0)
            .chain(self.beside.values())
    }

    fn mapped_bytes(&self) -> usize {
        self.lines.bytes()
    }

    fn memory_bytes(&self) -> usize {
        self.mapped_bytes() + map_bytes::<(u64, Slot)>(self.beside.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    fn block(size: u64, site: u32) -> Block {
        Block {
            size,
            site: SiteId(site),
            birth: Birth::at_ms(size),
        }
    }

    #[test]
    fn places_are_as_many_as_addresses() {
        let near = (0..1u64 << 16).map(|low| 0x7f12_3400_0000 + low);
        let bits = (0..48).map(|bit| 1u64 << bit);
        let places: HashSet<_> = near
            .chain(bits)
            .map(Place::of)
            .map(|place| (place.shard(), place.key()))
            .collect();
        assert_eq!(places.len(), (1 << 16) + 48);
        assert!(
            places
                .iter()
                .all(|place| place.1 >> (ADDRESS_BITS - SHARD_BITS) == 0)
        );
        for address in [0, 1 << 48, u64::MAX] {
            assert_eq!(Place::of(address).key(), 0);
        }
        assert_ne!(Place::of(ADDRESSES).key(), 0);
    }

    #[test]
    fn a_live_block_costs_forty_bytes_at_most_and_a_dead_one_nothing() {
        let mut table = LiveTable::default();
        let address = |number: u64| 0x7f00_0000_0000 + number * 48;
        for number in 0..200_000 {
            insert(&mut table, address(number), block(40, 1));
            if number % 5_000 == 4_999 {
                let each = table.memory_bytes() as f64 / table.len() as f64;
                assert!(each <= 38.0, "{each} bytes a block at {number}");
            }
        }
        for number in 0..200_000 {
            assert!(remove(&mut table, address(number)).is_some());
        }
        assert!(table.memory_bytes() <= 200_000);
    }

    #[test]
    fn regular_addresses_do_not_crowd() {
        for stride in [16, 48, 1040, 4096, 4112, 65536, 1 << 20, 15_792] {
            let mut table = LiveTable::default();
            for number in 0..40_000 {
                insert(&mut table, 0x5500_0000_0010 + number * stride, block(8, 1));
            }
            let beside: usize = table.shards.iter().map(|shard| shard.beside.len()).sum();
            assert!(beside < 5_000, "stride {stride}: {beside}");
        }
    }

    fn insert(table: &mut LiveTable, address: u64, block: Block) -> Option<Block> {
        table.insert(Place::of(address), address, block)
    }

    fn remove(table: &mut LiveTable, address: u64) -> Option<Block> {
        table.remove(Place::of(address), address)
    }

    /// Whether each line counts its blocks beside it, and only there.
    fn counts_are_right(shard: &Shard) -> bool {
        let mut beside = vec![0; shard.lines().len()];
        for &key in shard.beside.keys() {
            beside[shard.line(key)] += 1;
        }
        let counts = |slot: &Slot| (slot[0] & BESIDE) >> BESIDE_SHIFT;
        shard.lines().iter().zip(beside).all(|(line, beside)| {
            let first = counts(&line[0]);
            let only_there = line[1..].iter().all(|slot| counts(slot) == 0);
            (first == beside || first == BESIDE_MOST) && only_there
        })
    }

    fn address() -> impl Strategy<Value = u64> {
        prop_oneof![
            8 => (0u64..4000).prop_map(|n| 0x7f00_0000_0000 + n * 16),
            1 => 0u64..3,
            1 => (0u64..3).prop_map(|n| (1 << 48) - 2 + n),
            1 => (0u64..3).prop_map(|n| u64::MAX - n),
        ]
    }

    fn size() -> impl Strategy<Value = u64> {
        prop_oneof![
            0u64..100,
            LARGE - 2..LARGE + 2,
            (1u64 << 32)..(1 << 40),
            Just(u64::MAX)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn it_behaves_as_a_map(
            filled in 0u64..12_000,
            steps in prop::collection::vec((0u8..5, address(), size(), 0u32..1 << SiteId::BITS), 0..3000),
        ) {
            let (mut table, mut model) = (LiveTable::default(), HashMap::new());
            for number in 0..filled {
                let address = 0x7f00_0000_0000 + number * 16;
                prop_assert_eq!(insert(&mut table, address, block(number, 7)), model.insert(address, block(number, 7)));
            }
            for (what, address, size, site) in steps {
                if what < 3 {
                    prop_assert_eq!(insert(&mut table, address, block(size, site)), model.insert(address, block(size, site)));
                } else {
                    prop_assert_eq!(remove(&mut table, address), model.remove(&address));
                }
                prop_assert_eq!(table.contains(address), model.contains_key(&address));
                let seen = table.site(Place::of(address));
                prop_assert!(seen.is_none() || seen == model.get(&address).map(|block| block.site));
                prop_assert_eq!(table.len(), model.len());
            }
            prop_assert!(table.shards.iter().all(counts_are_right));
            let columns = |block: Block| (block.site, block.birth, block.size);
            let mut blocks: Vec<_> = table.blocks().map(columns).collect();
            let mut expected: Vec<_> = model.values().copied().map(columns).collect();
            blocks.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(blocks, expected);
            for (&address, block) in &model {
                prop_assert_eq!(remove(&mut table, address), Some(*block));
            }
            prop_assert_eq!(table.len() + table.large.len() + table.far.len(), 0);
        }
    }
}
