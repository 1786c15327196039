//! The live table: every block that was handed out and not given back, by address.
//!
//! It is a hash table of cache lines with four slots each, in 64 shards. A block is in the line that its address chooses;
//! one that finds it full goes to a map beside, one in twenty or so, and the line counts how many did, so that most
//! searches are of one line only. A shard grows by a third when it is two thirds full, alone: no growth ever needs a
//! second table of the whole, nor stalls for long. Shards start at different sizes, so that they do not all grow at once.
//!
//! ```text
//! line     [ slot | slot | slot | slot ]                              64 bytes
//! word 0   [ key 42            | beside 6      | size, low 16 bits ]  key 0 = empty; beside: of the first slot only
//! word 1   [ site 28           | birth 26      | size, high 10     ]
//! ```
//!
//! An address of 48 bits is spread by a bijection; its top 6 bits then choose the shard, and the other 42 are the key. What
//! does not fit this is kept in ordinary maps: sizes of 64 MiB and more, and addresses that have more bits.

use super::birth::{self, Birth};
use super::hash::Map;
use super::sites::SiteId;

const SHARD_BITS: u32 = 6;
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
/// No shard shrinks below this.
const FEWEST_LINES: usize = 16;

const _: () = assert!(SiteId::BITS + birth::BITS + SIZE_HIGH_BITS == 64);

/// A live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) size: u64,
    pub(super) site: SiteId,
    pub(super) birth: Birth,
}

/// Where to look for an address: its spread 48 bits; 0 in the lower 42 if it has no slot.
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
        let lines = |number| FEWEST_LINES + number / 8;
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

    /// Whether there is a block at `address`.
    pub(super) fn contains(&self, address: u64) -> bool {
        let place = Place::of(address);
        if place.key() == 0 {
            return self.far.contains_key(&address);
        }
        self.shards[place.shard()].find(place.key()).is_some()
    }

    /// Reads the line of `place`, so that it is in the cache when it is needed.
    #[inline]
    pub(super) fn touch(&self, place: Place) -> u64 {
        let shard = &self.shards[place.shard()];
        shard.lines[shard.line(place.key())].0[0][0]
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
    let mut position = SLOTS;
    for (at, slot) in line.iter().enumerate() {
        position = if slot[0] >> KEY_SHIFT == key {
            at
        } else {
            position
        };
    }
    position
}

/// The bytes of a standard map: a table of a power of two entries, seven eighths of which count, and a byte beside each.
fn map_bytes<Entry>(capacity: usize) -> usize {
    (capacity * 8 / 7) * (size_of::<Entry>() + 1)
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Line([Slot; SLOTS]);

const _: () = assert!(size_of::<Line>() == 64);

#[derive(Debug)]
struct Shard {
    lines: Vec<Line>,
    /// Blocks, those beside included.
    len: usize,
    /// Slots of blocks whose line was full, by key. A count of them is in their line's first slot.
    beside: Map<u64, Slot>,
}

impl Shard {
    fn of(lines: usize) -> Shard {
        Shard {
            lines: vec![Line::default(); lines],
            len: 0,
            beside: Map::default(),
        }
    }

    /// The line of `key`.
    #[inline]
    fn line(&self, key: u64) -> usize {
        ((u128::from(key << KEY_SHIFT) * self.lines.len() as u128) >> 64) as usize
    }

    #[inline]
    fn slot(&self, key: u64) -> Option<&Slot> {
        let line = &self.lines[self.line(key)].0;
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
        let line = &mut self.lines[at].0;
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
        let line = &mut self.lines[at].0;
        if line[0][0] & BESIDE != 0
            && let Some(slot) = self.beside.get_mut(&key)
        {
            return Some(std::mem::replace(slot, new));
        }
        if empty < SLOTS {
            line[empty] = [new[0] | (line[empty][0] & BESIDE), new[1]];
        } else {
            if line[0][0] & BESIDE != BESIDE {
                line[0][0] += 1 << BESIDE_SHIFT;
            }
            self.beside.insert(key, new);
        }
        self.grown()
    }

    #[inline(always)]
    fn remove(&mut self, key: u64) -> Option<Slot> {
        let at = self.line(key);
        let line = &mut self.lines[at].0;
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
        let first = &mut self.lines[at].0[0][0];
        if *first & BESIDE != BESIDE {
            *first -= 1 << BESIDE_SHIFT;
        }
        self.shrunk();
        Some(old)
    }

    #[inline(always)]
    fn grown(&mut self) -> Option<Slot> {
        self.len += 1;
        if self.len * FULL.1 > self.lines.len() * FULL.0 {
            self.resize(self.lines.len() * 4 / 3);
        }
        None
    }

    #[inline(always)]
    fn shrunk(&mut self) {
        self.len -= 1;
        if self.len < self.lines.len() / 2 && self.lines.len() >= FEWEST_LINES * 3 {
            self.resize(self.lines.len() / 3);
        }
    }

    #[cold]
    fn resize(&mut self, lines: usize) {
        let old = std::mem::replace(self, Shard::of(lines));
        for slot in old.iter() {
            self.insert([slot[0] & !BESIDE, slot[1]]);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Slot> {
        let slots = self.lines.iter().flat_map(|line| &line.0);
        slots
            .filter(|slot| slot[0] >> KEY_SHIFT != 0)
            .chain(self.beside.values())
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self.lines.as_slice()) + map_bytes::<(u64, Slot)>(self.beside.capacity())
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
        assert!(places.iter().all(|place| place.1 >> 42 == 0));
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
        let mut beside = vec![0; shard.lines.len()];
        for &key in shard.beside.keys() {
            beside[shard.line(key)] += 1;
        }
        let counts = |slot: &Slot| (slot[0] & BESIDE) >> BESIDE_SHIFT;
        shard.lines.iter().zip(beside).all(|(line, beside)| {
            let first = counts(&line.0[0]);
            let only_there = line.0[1..].iter().all(|slot| counts(slot) == 0);
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
