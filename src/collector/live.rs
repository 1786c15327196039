//! The live table: every block that was handed out and not given back, by address.
//!
//! It is a hash table of 16-byte slots in 64 shards, each with open addressing and linear probing. A shard grows by half
//! when it is three quarters full, alone: no growth ever needs a second table of the whole, nor stalls for long. Shards
//! start at different sizes, so that they do not all grow at one time.
//!
//! ```text
//! word 0   [ spread address 48                          | size, low 16 bits ]     0 = empty
//! word 1   [ site 28            | birth 26              | size, high 10     ]
//! ```
//!
//! The spread address is a bijection of the address's 48 bits: its top 6 bits choose the shard, the rest the slot.
//! What does not fit goes to ordinary maps beside: sizes of 64 MiB and more, and addresses that have more than 48 bits.

use super::birth::{self, Birth};
use super::hash::Map;
use super::sites::SiteId;

const SHARD_BITS: u32 = 6;
const SHARDS: usize = 1 << SHARD_BITS;
const ADDRESS_BITS: u32 = 48;
const ADDRESSES: u64 = (1 << ADDRESS_BITS) - 1;
const SIZE_LOW_BITS: u32 = 16;
const SIZE_HIGH_BITS: u32 = 10;
/// Sizes from here on are kept in a map beside, and stand as this in the slot.
const LARGE: u64 = (1 << (SIZE_LOW_BITS + SIZE_HIGH_BITS)) - 1;
/// No shard shrinks below this.
const FEWEST_SLOTS: usize = 48;

const _: () = assert!(ADDRESS_BITS + SIZE_LOW_BITS == 64);
const _: () = assert!(SiteId::BITS + birth::BITS + SIZE_HIGH_BITS == 64);

/// A live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) size: u64,
    pub(super) site: SiteId,
    pub(super) birth: Birth,
}

/// See the module.
#[derive(Debug)]
pub(super) struct LiveTable {
    shards: Vec<Shard>,
    /// Sizes of blocks of [`LARGE`] bytes or more that have a slot.
    large: Map<u64, u64>,
    /// Blocks at addresses that have no slot: 0, and those of more than 48 bits.
    far: Map<u64, Block>,
}

impl Default for LiveTable {
    fn default() -> Self {
        LiveTable {
            shards: (0..SHARDS)
                .map(|number| Shard::of(FEWEST_SLOTS + number / 4))
                .collect(),
            large: Map::default(),
            far: Map::default(),
        }
    }
}

impl LiveTable {
    /// Adds a block; gives back the one that was at its address.
    #[inline]
    pub(super) fn insert(&mut self, address: u64, block: Block) -> Option<Block> {
        let Some(key) = Key::of(address) else {
            return self.far.insert(address, block);
        };
        let size = block.size.min(LARGE);
        let old = self.shards[key.shard()].insert(pack(key, size, block.site, block.birth));
        let old = old.map(|slot| self.unpack(address, slot));
        if size == LARGE {
            self.large.insert(address, block.size);
        }
        old
    }

    /// Takes out the block at `address`.
    #[inline]
    pub(super) fn remove(&mut self, address: u64) -> Option<Block> {
        let Some(key) = Key::of(address) else {
            return self.far.remove(&address);
        };
        let slot = self.shards[key.shard()].remove(key)?;
        Some(self.unpack(address, slot))
    }

    /// Whether there is a block at `address`.
    pub(super) fn contains(&self, address: u64) -> bool {
        match Key::of(address) {
            Some(key) => self.shards[key.shard()].find(key).is_ok(),
            None => self.far.contains_key(&address),
        }
    }

    /// Reads the slot at which a search for `address` begins, so that it is in the cache when it is needed.
    #[inline]
    pub(super) fn touch(&self, address: u64) -> u64 {
        match Key::of(address) {
            Some(key) => self.shards[key.shard()].touch(key),
            None => 0,
        }
    }

    /// Site and birth of every block, in no order.
    pub(super) fn births(&self) -> impl Iterator<Item = (SiteId, Birth)> + '_ {
        let slots = self.shards.iter().flat_map(|shard| &shard.slots);
        slots
            .filter(|slot| slot[0] != 0)
            .map(|slot| (site(slot), born(slot)))
            .chain(self.far.values().map(|block| (block.site, block.birth)))
    }

    /// How many blocks there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len).sum::<usize>() + self.far.len()
    }

    /// Bytes of memory it holds.
    pub(super) fn memory_bytes(&self) -> u64 {
        let slots: usize = self.shards.iter().map(|shard| shard.slots.len()).sum();
        let beside = (self.large.capacity() + self.far.capacity()) * size_of::<(u64, Block)>();
        (slots * size_of::<Slot>() + beside) as u64
    }

    /// What a slot that was taken out says, together with the maps beside.
    #[inline]
    fn unpack(&mut self, address: u64, slot: Slot) -> Block {
        let low = slot[0] & ((1 << SIZE_LOW_BITS) - 1);
        let high = slot[1] & ((1 << SIZE_HIGH_BITS) - 1);
        let mut size = high << SIZE_LOW_BITS | low;
        if size == LARGE {
            size = self.large.remove(&address).unwrap_or(LARGE);
        }
        Block {
            size,
            site: site(&slot),
            birth: born(&slot),
        }
    }
}

type Slot = [u64; 2];

#[inline]
fn pack(key: Key, size: u64, site: SiteId, birth: Birth) -> Slot {
    let low = size & ((1 << SIZE_LOW_BITS) - 1);
    let high = size >> SIZE_LOW_BITS;
    [
        key.0 << SIZE_LOW_BITS | low,
        u64::from(site.0) << (birth::BITS + SIZE_HIGH_BITS)
            | u64::from(birth.0) << SIZE_HIGH_BITS
            | high,
    ]
}

#[inline]
fn site(slot: &Slot) -> SiteId {
    SiteId((slot[1] >> (birth::BITS + SIZE_HIGH_BITS)) as u32)
}

#[inline]
fn born(slot: &Slot) -> Birth {
    Birth((slot[1] >> SIZE_HIGH_BITS) as u32 & ((1 << birth::BITS) - 1))
}

/// A spread address: 48 bits, not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key(u64);

impl Key {
    /// `None` for an address that has no slot.
    #[inline]
    fn of(address: u64) -> Option<Key> {
        // Odd factors and a shift of a number's own high half: each step can be undone, so no two addresses meet.
        let spread = address.wrapping_mul(0x9E37_79B9_7F4B) & ADDRESSES;
        let spread = (spread ^ (spread >> 24)).wrapping_mul(0xC2B2_AE3D_27D5) & ADDRESSES;
        (address.wrapping_sub(1) < ADDRESSES).then_some(Key(spread))
    }

    #[inline]
    fn shard(self) -> usize {
        (self.0 >> (ADDRESS_BITS - SHARD_BITS)) as usize % SHARDS
    }

    /// Where of `slots` slots its search begins.
    #[inline]
    fn home(self, slots: usize) -> usize {
        let fraction = self.0 << (64 - ADDRESS_BITS + SHARD_BITS);
        ((u128::from(fraction) * slots as u128) >> 64) as usize
    }
}

#[derive(Debug)]
struct Shard {
    slots: Vec<Slot>,
    len: usize,
}

impl Shard {
    fn of(slots: usize) -> Shard {
        Shard {
            slots: vec![[0; 2]; slots],
            len: 0,
        }
    }

    /// The key's position, or that of the empty slot which ends its search.
    #[inline]
    fn find(&self, key: Key) -> Result<usize, usize> {
        let slots = self.slots.as_slice();
        let mut at = key.home(slots.len());
        loop {
            let word = slots[at][0];
            if word >> SIZE_LOW_BITS == key.0 {
                return Ok(at);
            }
            if word == 0 {
                return Err(at);
            }
            at += 1;
            if at == slots.len() {
                at = 0;
            }
        }
    }

    #[inline]
    fn touch(&self, key: Key) -> u64 {
        self.slots[key.home(self.slots.len())][0]
    }

    #[inline]
    fn insert(&mut self, slot: Slot) -> Option<Slot> {
        match self.find(Key(slot[0] >> SIZE_LOW_BITS)) {
            Ok(at) => Some(std::mem::replace(&mut self.slots[at], slot)),
            Err(at) => {
                self.slots[at] = slot;
                self.len += 1;
                // Below 1 always: the search for a key that is not there needs an empty slot to end at.
                if self.len * 4 > self.slots.len() * 3 {
                    self.resize(self.slots.len() / 2 * 3);
                }
                None
            }
        }
    }

    #[inline]
    fn remove(&mut self, key: Key) -> Option<Slot> {
        let mut hole = self.find(key).ok()?;
        let slots = self.slots.as_mut_slice();
        let found = slots[hole];
        let mut at = hole;
        loop {
            at += 1;
            if at == slots.len() {
                at = 0;
            }
            let slot = slots[at];
            if slot[0] == 0 {
                break;
            }
            // It may move to the hole unless that lies before its home.
            let home = Key(slot[0] >> SIZE_LOW_BITS).home(slots.len());
            if steps(home, at, slots.len()) >= steps(hole, at, slots.len()) {
                slots[hole] = slot;
                hole = at;
            }
        }
        slots[hole] = [0; 2];
        self.len -= 1;
        if self.len * 6 < self.slots.len() && self.slots.len() >= FEWEST_SLOTS * 3 {
            self.resize(self.slots.len() / 3);
        }
        Some(found)
    }

    #[cold]
    fn resize(&mut self, slots: usize) {
        let mut bigger = Shard::of(slots);
        for slot in self.slots.iter().filter(|slot| slot[0] != 0) {
            if let Err(at) = bigger.find(Key(slot[0] >> SIZE_LOW_BITS)) {
                bigger.slots[at] = *slot;
            }
        }
        bigger.len = self.len;
        *self = bigger;
    }
}

/// Steps from `from` forward to `to` in a ring.
#[inline]
fn steps(from: usize, to: usize, slots: usize) -> usize {
    if to >= from {
        to - from
    } else {
        to + slots - from
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
    fn keys_are_as_many_as_addresses() {
        let near = (0..1u64 << 16).map(|low| 0x7f12_3400_0000 + low);
        let bits = (0..48).map(|bit| 1u64 << bit);
        let keys: HashSet<u64> = near
            .chain(bits)
            .filter_map(|address| Key::of(address).map(|key| key.0))
            .collect();
        assert_eq!(keys.len(), (1 << 16) + 48);
        assert!(!keys.contains(&0));
        assert_eq!(Key::of(0), None);
        assert_eq!(Key::of(1 << 48), None);
        assert!(Key::of(ADDRESSES).is_some());
    }

    #[test]
    fn a_live_block_costs_forty_bytes_at_most_and_a_dead_one_nothing() {
        let mut table = LiveTable::default();
        let address = |number: u64| 0x7f00_0000_0000 + number * 48;
        for number in 0..200_000 {
            table.insert(address(number), block(40, 1));
            if number % 5_000 == 4_999 {
                let each = table.memory_bytes() as f64 / table.len() as f64;
                assert!(each <= 33.0, "{each} bytes a block at {number}");
            }
        }
        for number in 0..200_000 {
            assert!(table.remove(address(number)).is_some());
        }
        assert!(table.memory_bytes() <= 200_000);
    }

    #[test]
    fn regular_addresses_do_not_pile_up() {
        for stride in [16, 48, 1040, 4096, 4112, 65536, 1 << 20, 15_792] {
            let mut table = LiveTable::default();
            for number in 0..40_000 {
                table.insert(0x5500_0000_0010 + number * stride, block(8, 1));
            }
            let longest = table.shards.iter().map(longest_run).max();
            assert!(longest < Some(150), "stride {stride}: {longest:?}");
        }
    }

    fn longest_run(shard: &Shard) -> usize {
        shard
            .slots
            .split(|slot| slot[0] == 0)
            .map(<[Slot]>::len)
            .max()
            .unwrap_or(0)
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
        fn it_behaves_as_a_map(steps in prop::collection::vec((0u8..5, address(), size(), 0u32..1 << SiteId::BITS), 0..6000)) {
            let (mut table, mut model) = (LiveTable::default(), HashMap::new());
            for (what, address, size, site) in steps {
                if what < 3 {
                    prop_assert_eq!(table.insert(address, block(size, site)), model.insert(address, block(size, site)));
                } else {
                    prop_assert_eq!(table.remove(address), model.remove(&address));
                }
                prop_assert_eq!(table.contains(address), model.contains_key(&address));
                prop_assert_eq!(table.len(), model.len());
            }
            let mut births: Vec<_> = table.births().collect();
            let mut expected: Vec<_> = model.values().map(|block| (block.site, block.birth)).collect();
            births.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(births, expected);
            for (&address, block) in &model {
                prop_assert_eq!(table.remove(address), Some(*block));
            }
            prop_assert_eq!(table.len() + table.large.len() + table.far.len(), 0);
        }
    }
}
