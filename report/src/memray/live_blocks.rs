//! Which blocks and mappings are live while events go by: the rules that everything shares that follows a log.
//!
//! A block is known by its address until it is freed, or until the address is handed out again: then its free went
//! unseen. `munmap` takes any part of any mapping (`ranges.rs`). Sites and births are numbers of the caller's own.
//!
//! With millions of blocks this is all the memory that following a log takes. So a block is 20 bytes and lies in one of a
//! few maps of unequal size: each doubles by itself and at another time, so that there is no moment at which all of them
//! are half empty, or are there twice.

use std::hash::{BuildHasher, Hash, Hasher};

use super::limit::{in_map, in_tree};
use super::ranges::{self, Ranges, Taken};
use crate::hash::{FastMap, FastState};
use crate::model::Allocator;

/// A block as it is live, or as it was until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    /// Bytes asked for.
    pub(crate) bytes: u64,
    /// When it was allocated, as the caller told.
    pub(crate) born: u64,
    /// By which site.
    pub(crate) site: u32,
}

/// An address, in halves so that it can lie beside other numbers of four bytes.
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

/// A block whose numbers are all below 2^32: nearly every one is.
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

/// Maps that small blocks are spread over.
const PARTS: usize = 32;

/// A part of the maps has room for so many more blocks, or is counted as if it had grown already. A stretch of a capture
/// between two looks holds a few times as many, of which each part gets a few hundredths.
const ROOM: usize = 4096;

/// The part of each of 256 equal shares of all addresses. The largest part gets nearly twice as many as the smallest, and
/// those between lie evenly between.
const SHARES: [u8; 256] = {
    // Weights of 31, 32, 33, …, 62.
    const ALL: usize = PARTS * (31 + 62) / 2;
    let mut shares = [0; 256];
    let (mut at, mut part, mut weights) = (0, 0, 31);
    while at < shares.len() {
        // The middle of the share is beyond the part's end.
        if (2 * at + 1) * ALL > 2 * weights * shares.len() {
            part += 1;
            weights += 31 + part;
        }
        shares[at] = part as u8;
        at += 1;
    }
    shares
};

/// The blocks and pieces of mappings that are live.
#[derive(Debug)]
pub(crate) struct LiveBlocks {
    hasher: FastState,
    small: Box<[Part]>,
    /// The others.
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
    /// By bits of the hash that the map itself hardly uses.
    #[inline]
    fn part(&mut self, address: Address) -> &mut Part {
        let share = (self.hasher.hash_one(address) >> 40) as u8;
        &mut self.small[usize::from(SHARES[usize::from(share)])]
    }

    /// Enters an allocation: the block that was at its address until now, if one was. A mapping of no bytes is not entered.
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

    /// Enters a free: the block, if it was known.
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

    /// Enters a `munmap`; `taken` says what it took from which mapping, nothing if none was known.
    pub(crate) fn unmap(&mut self, address: u64, size: u64, taken: &mut Vec<Taken>) {
        self.ranges.remove(address, size, taken);
    }

    /// Every block of the maps.
    fn blocks(&self) -> impl Iterator<Item = Block> {
        let small = self.small.iter().flat_map(Part::values);
        small.map(|s| s.block()).chain(self.large.values().copied())
    }

    /// Every live block, and every piece of a mapping as a block of its own.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Block> {
        let pieces = self.ranges.iter().map(|(start, _, piece)| Block {
            bytes: piece.end - start,
            born: piece.born,
            site: piece.site,
        });
        self.blocks().chain(pieces)
    }

    /// Every live block and mapping; of a mapping in several pieces each, but only one with `true`.
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

    /// How many blocks and pieces there are.
    pub(crate) fn len(&self) -> usize {
        let small: usize = self.small.iter().map(Part::len).sum();
        small + self.large.len() + self.ranges.len()
    }

    /// Bytes of memory that they take, and will take before a few thousand more have come.
    pub(crate) fn memory(&self) -> u64 {
        const ENTRY: u64 = size_of::<(Address, Small)>() as u64 + 1;
        let (mut all, mut largest) = (0, 0);
        for part in &self.small {
            let bytes = part.capacity() as u64 * 8 / 7 * ENTRY;
            let grows = part.capacity() - part.len() < ROOM.min(part.len());
            all += if grows { 2 * bytes } else { bytes };
            largest = bytes.max(largest);
        }
        // One part grows at a time, into a new place.
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
