//! The live blocks and mappings during a stream of events, with the rules for everything that follows a log.
//!
//! A block is known by its address until it is freed, or until the address is handed out again: then its free was not
//! recorded. `munmap` removes any part of any mapping (`ranges.rs`). Sites and births are numbers of the caller's own.
//!
//! With millions of blocks, they are nearly all the memory for following a log. So a block has 20 bytes and lies in one of a
//! few maps of unequal size. Each map doubles by itself and at another time, so that there is never a moment at which all of
//! them are half empty, or exist twice.

use std::hash::{BuildHasher, Hash, Hasher};

use super::limit::{in_map, in_tree};
use super::ranges::{self, Ranges, Taken};
use crate::hash::{FastMap, FastState};
use crate::model::Allocator;

/// Live block, or block that was just freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    /// Requested bytes.
    pub(crate) bytes: u64,
    /// Time of its allocation, in the caller's units.
    pub(crate) born: u64,
    /// Site of its allocation.
    pub(crate) site: u32,
}

/// Address in two halves, so that it needs only 4-byte alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Address([u32; 2]);

impl Address {
    fn of(address: u64) -> Address {
        Address([(address >> 32) as u32, address as u32])
    }
}

impl Hash for Address {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Address([high, low]) = *self;
        state.write_u64(u64::from(high) << 32 | u64::from(low));
    }
}

/// Block whose numbers are all below 2^32, as for nearly all blocks.
#[derive(Debug, Clone, Copy)]
struct Small {
    bytes: u32,
    born: u32,
    site: u32,
}

impl Small {
    #[inline]
    fn of(block: Block) -> Option<Small> {
        Some(Small {
            bytes: u32::try_from(block.bytes).ok()?,
            born: u32::try_from(block.born).ok()?,
            site: block.site,
        })
    }

    #[inline]
    fn block(self) -> Block {
        Block {
            bytes: self.bytes.into(),
            born: self.born.into(),
            site: self.site,
        }
    }
}

type Part = std::collections::HashMap<Address, Small, FastState>;

/// Number of maps that small blocks are spread over.
const PARTS: usize = 32;

/// Spare room of each map, or else the map is counted as if it had grown already. The events between two checks allocate a
/// few times as many blocks, of which each map gets a few hundredths.
const ROOM: usize = 4096;

/// Map of each of 256 equal shares of all addresses. The largest map gets nearly twice as many as the smallest, and the
/// others are spread evenly between them.
const SHARES: [u8; 256] = {
    // Weights of 31, 32, 33, …, 62.
    const ALL: usize = PARTS * (31 + 62) / 2;
    let mut shares = [0; 256];
    let (mut at, mut part, mut weights) = (0, 0, 31);
    while at < shares.len() {
        // The middle of the share is beyond the map's end.
        if (2 * at + 1) * ALL > 2 * weights * shares.len() {
            part += 1;
            weights += 31 + part;
        }
        shares[at] = part as u8;
        at += 1;
    }
    shares
};

/// Live blocks and pieces of mappings.
#[derive(Debug)]
pub(crate) struct LiveBlocks {
    hasher: FastState,
    small: Box<[Part]>,
    /// Blocks that are not small.
    large: FastMap<u64, Block>,
    ranges: Ranges,
}

impl Default for LiveBlocks {
    fn default() -> Self {
        let hasher = FastState::default();
        LiveBlocks {
            hasher,
            small: (0..PARTS).map(|_| Part::with_hasher(hasher)).collect(),
            large: FastMap::default(),
            ranges: Ranges::default(),
        }
    }
}

impl LiveBlocks {
    /// Returns the map of an address, by bits of the hash that the map itself hardly uses.
    #[inline]
    fn part(&mut self, address: Address) -> &mut Part {
        let share = (self.hasher.hash_one(address) >> 40) as u8;
        &mut self.small[usize::from(SHARES[usize::from(share)])]
    }

    /// Adds an allocation. Returns the block that was at its address, if there was one. A mapping of no bytes is not added.
    #[inline]
    pub(crate) fn allocate(
        &mut self,
        allocator: Allocator,
        address: u64,
        block: Block,
    ) -> Option<Block> {
        if allocator == Allocator::Mmap {
            let Block { bytes, born, site } = block;
            self.ranges.add(address, bytes, site, born);
            return None;
        }
        let at = Address::of(address);
        match Small::of(block) {
            Some(small) => {
                let old = self.part(at).insert(at, small).map(Small::block);
                old.or_else(|| self.take_large(address))
            }
            None => {
                let old = self.part(at).remove(&at).map(Small::block);
                self.large.insert(address, block).or(old)
            }
        }
    }

    /// Removes a freed block, and returns it if it was known.
    #[inline]
    pub(crate) fn free(&mut self, address: u64) -> Option<Block> {
        let at = Address::of(address);
        let small = self.part(at).remove(&at).map(Small::block);
        small.or_else(|| self.take_large(address))
    }

    #[inline]
    fn take_large(&mut self, address: u64) -> Option<Block> {
        if self.large.is_empty() {
            return None;
        }
        self.large.remove(&address)
    }

    /// Applies a `munmap`. Adds to `taken` what it removed from which mapping.
    pub(crate) fn unmap(&mut self, address: u64, size: u64, taken: &mut Vec<Taken>) {
        self.ranges.remove(address, size, taken);
    }

    /// Returns every block of the maps.
    fn blocks(&self) -> impl Iterator<Item = Block> {
        let small = self.small.iter().flat_map(Part::values);
        small.map(|s| s.block()).chain(self.large.values().copied())
    }

    /// Returns every live block, and every piece of a mapping as a block of its own.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Block> {
        let pieces = self.ranges.iter().map(|(start, _, piece)| Block {
            bytes: piece.end - start,
            born: piece.born,
            site: piece.site,
        });
        self.blocks().chain(pieces)
    }

    /// Returns every live block and mapping. For a mapping in several pieces returns each piece, but only one with `true`.
    pub(crate) fn mappings_once(&self) -> impl Iterator<Item = (Block, bool)> {
        let mut seen = std::collections::HashSet::new();
        let pieces = self.ranges.iter().map(move |(start, number, piece)| {
            let block = Block {
                bytes: piece.end - start,
                born: piece.born,
                site: piece.site,
            };
            (block, seen.insert(number))
        });
        self.blocks().map(|block| (block, true)).chain(pieces)
    }

    /// Returns the number of blocks and pieces.
    pub(crate) fn len(&self) -> usize {
        let small: usize = self.small.iter().map(Part::len).sum();
        small + self.large.len() + self.ranges.len()
    }

    /// Returns the bytes of memory that they take, and will take until a few thousand more are added.
    pub(crate) fn memory(&self) -> u64 {
        const ENTRY: u64 = size_of::<(Address, Small)>() as u64 + 1;
        let (mut all, mut largest) = (0, 0);
        for part in &self.small {
            let bytes = part.capacity() as u64 * 8 / 7 * ENTRY;
            let grows = part.capacity() - part.len() < ROOM.min(part.len());
            all += if grows { 2 * bytes } else { bytes };
            largest = bytes.max(largest);
        }
        // One map grows at a time, into new memory.
        all + largest
            + self.large.len() as u64 * in_map::<(u64, Block)>()
            + self.ranges.len() as u64 * in_tree::<ranges::Entry>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn parts_are_of_many_sizes_and_the_largest_is_twice_the_smallest() {
        let mut sizes = [0u32; PARTS];
        for share in SHARES {
            sizes[usize::from(share)] += 1;
        }
        assert!(
            sizes.windows(2).all(|two| two[0] <= two[1] + 1),
            "{sizes:?}"
        );
        assert_eq!(sizes.iter().sum::<u32>(), 256);
        assert!((5..=6).contains(&sizes[0]), "{sizes:?}");
        assert!((10..=11).contains(&sizes[PARTS - 1]), "{sizes:?}");
    }

    #[test]
    fn no_number_of_blocks_takes_much_more_each_than_another() {
        let mut live = LiveBlocks::default();
        let block = Block {
            bytes: 1,
            born: 0,
            site: 0,
        };
        for n in 1..=2_500_000u64 {
            live.allocate(Allocator::Malloc, n * 16, block);
            if n >= 1_000_000 && n % 10_000 == 0 {
                let each = live.memory() / n;
                assert!((24..=45).contains(&each), "{n}: {each}");
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_a_map_by_address(
            steps in prop::collection::vec(
                (any::<bool>(), 0u64..20, prop_oneof![0u64..9, Just(u64::MAX), Just(1 << 32)], prop_oneof![0u64..9, Just(1u64 << 40)]),
                0..200,
            ),
        ) {
            let mut live = LiveBlocks::default();
            let mut model: HashMap<u64, Block> = HashMap::new();
            for (step, (allocates, address, bytes, born)) in (0u32..).zip(steps) {
                let address = address << 30;
                if allocates {
                    let block = Block { bytes, born, site: step };
                    let old = live.allocate(Allocator::Malloc, address, block);
                    prop_assert_eq!(old, model.insert(address, block));
                } else {
                    prop_assert_eq!(live.free(address), model.remove(&address));
                }
                prop_assert_eq!(live.len(), model.len());
            }
            let mut left: Vec<_> = live.pieces().map(|block| block.site).collect();
            let mut expected: Vec<_> = model.values().map(|block| block.site).collect();
            left.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(left, expected);
        }
    }
}
