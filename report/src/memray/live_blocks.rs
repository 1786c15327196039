//! Which blocks and mappings are live while events go by: the rules that everything shares that follows a log.
//!
//! A block is known by its address until it is freed, or until the address is handed out again: then its free went
//! unseen. `munmap` takes any part of any mapping (`ranges.rs`). Sites and births are numbers of the caller's own.

use super::ranges::{Ranges, Taken};
use crate::hash::FastMap;
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

/// The blocks and pieces of mappings that are live.
#[derive(Debug, Default)]
pub(crate) struct LiveBlocks {
    blocks: FastMap<u64, Block>,
    ranges: Ranges,
}

impl LiveBlocks {
    /// Enters an allocation: the block that was at its address until now, if one was. A mapping of no bytes is none.
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
        self.blocks.insert(address, block)
    }

    /// Enters a free: the block, if it was known.
    #[inline]
    pub(crate) fn free(&mut self, address: u64) -> Option<Block> {
        self.blocks.remove(&address)
    }

    /// Enters a `munmap`; `taken` says what it took from which mapping, nothing if none was known.
    pub(crate) fn unmap(&mut self, address: u64, size: u64, taken: &mut Vec<Taken>) {
        self.ranges.remove(address, size, taken);
    }

    /// Every live block, and every piece of a mapping as a block of its own.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Block> {
        let pieces = self.ranges.iter().map(|(start, _, piece)| Block {
            bytes: piece.end - start,
            born: piece.born,
            site: piece.site,
        });
        self.blocks.values().copied().chain(pieces)
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
        self.blocks.values().map(|&b| (b, true)).chain(pieces)
    }
}
