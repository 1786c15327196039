//! The regions of memory, by address, in a tree of four levels of 512 like the processor's page tables.

use std::ops::Range;

use super::run::{CLASSES, LINES, most_blocks};
use super::{ADDRESSES, OFFSET_BITS, POOLS};
use crate::capture::memory::{OwnedArray, Plain};

const LEVEL_BITS: u32 = 9;
/// Number of children of a node, and of regions of a leaf.
const WIDTH: usize = 1 << LEVEL_BITS;

/// Where the blocks of a region are. Without blocks it has no lines.
///
/// ```text
/// [ first line 32 | lines 11 | - | swings 1 | shrunk 1 | class 5 | blocks 13 ]
/// ```
///
/// A region that has grown again after it shrank *swings*, like the heap of a service that does the same for each request.
/// Then it shrinks later, and by more, because each change of the run moves all blocks. And when it gets its first block again,
/// it gets a run of its last class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub(super) struct Region(u64);

// SAFETY: an integer.
unsafe impl Plain for Region {}

const LINES_SHIFT: u32 = 21;
const CLASS_SHIFT: u32 = 13;
const CLASS_BITS: u32 = 5;
const CLASS: u64 = ((1 << CLASS_BITS) - 1) << CLASS_SHIFT;
const SHRUNK: u64 = 1 << (CLASS_SHIFT + CLASS_BITS);
const SWINGS: u64 = SHRUNK << 1;
/// Lines of which a region that swings gives none back while it has a block.
const SWINGING_LINES: u32 = 8;

const _: () = assert!((LINES[CLASSES - 1] as u64) < 1 << (32 - LINES_SHIFT));
const _: () = assert!(1 << OFFSET_BITS < 1 << CLASS_SHIFT);
const _: () = assert!(CLASSES <= 1 << CLASS_BITS && SWINGS < 1 << LINES_SHIFT);

impl Region {
    /// Returns the number of its lines.
    #[inline(always)]
    pub(super) fn lines(self) -> u32 {
        (self.0 as u32) >> LINES_SHIFT
    }

    /// Returns its first line in the pool.
    #[inline(always)]
    pub(super) fn first(self) -> usize {
        (self.0 >> 32) as usize
    }

    /// Returns its lines in the pool.
    pub(super) fn range(self) -> Range<usize> {
        self.first()..self.first() + self.lines() as usize
    }

    /// Returns its run's class, if it has one.
    pub(super) fn class(self) -> Option<usize> {
        (self.lines() != 0).then_some(self.last_class())
    }

    /// Returns the class of its run, or of the last one that it had.
    fn last_class(self) -> usize {
        ((self.0 & CLASS) >> CLASS_SHIFT) as usize
    }

    /// Returns the class that it should have for another block than it has room for.
    pub(super) fn larger_class(self) -> usize {
        // The last class has room for a block at each address.
        let next = |class: usize| (class + 1).min(CLASSES - 1);
        self.class().map_or(self.last_class(), next)
    }

    /// Returns the number of its blocks.
    #[inline(always)]
    pub(super) fn blocks(self) -> u32 {
        self.0 as u32 & ((1 << CLASS_SHIFT) - 1)
    }

    /// Returns whether it needs more lines before it gets another block.
    #[inline(always)]
    pub(super) fn is_full(self) -> bool {
        self.blocks() >= most_blocks(self.lines())
    }

    /// Returns whether it has more lines than it needs, and not only one.
    #[inline(always)]
    pub(super) fn is_sparse(self) -> bool {
        let (sixteenths, least) = if self.0 & SWINGS == 0 {
            (7, 1)
        } else {
            (3, SWINGING_LINES)
        };
        self.blocks() * 16 < most_blocks(self.lines()) * sixteenths && self.lines() > least
    }

    /// Returns the class that it should have when it is sparse.
    pub(super) fn smaller_class(self) -> Option<usize> {
        let smaller = self.class()?.checked_sub(1)?;
        if self.0 & SWINGS == 0 {
            return Some(smaller);
        }
        let is_enough = |&lines: &u16| {
            let lines = u32::from(lines);
            lines >= SWINGING_LINES && most_blocks(lines) >= 2 * self.blocks()
        };
        let fitting = LINES.iter().position(is_enough);
        fitting.map(|class| class.min(smaller))
    }

    #[inline(always)]
    pub(super) fn with_one_more(self) -> Region {
        Region(self.0 + 1)
    }

    #[inline(always)]
    pub(super) fn with_one_less(self) -> Region {
        Region(self.0 - 1)
    }

    /// Returns the region without its run, when it has no blocks.
    pub(super) fn emptied(self) -> Region {
        // A region that does not swing has shrunk to the first class by now.
        Region(self.0 & (CLASS | SWINGS) | SHRUNK)
    }

    /// Returns the region with its blocks in another run.
    pub(super) fn moved(self, first: u32, class: usize) -> Region {
        let lines = u64::from(LINES[class]);
        let mut flags = self.0 & (SHRUNK | SWINGS);
        if self.class().is_some_and(|old| class < old) {
            flags |= SHRUNK;
        } else if self.class() != Some(class) && flags & SHRUNK != 0 {
            flags |= SWINGS;
        }
        Region(
            u64::from(first) << 32
                | lines << LINES_SHIFT
                | flags
                | (class as u64) << CLASS_SHIFT
                | u64::from(self.blocks()),
        )
    }
}

/// Number of an address's region in the index, for as long as the table is there. 0 if the region is not known yet, and for an
/// address that has no region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::collector) struct Place(pub(super) u32);

/// A leaf that was found before: its first region, and what leads to it.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// The bits of its addresses that lead to the leaf. 0 before any was found.
    upper: u64,
    /// Its first region.
    first: u32,
}

/// Number of leaves that are found again without a way through the tree: those of 128 MiB in a row.
const FOUND: usize = 64;

impl Place {
    pub(super) const NONE: Place = Place(0);

    /// Returns the number of the pool that has the region's run.
    #[inline(always)]
    pub(super) fn pool(self) -> usize {
        self.0 as usize / WIDTH % POOLS
    }
}

#[derive(Debug)]
pub(super) struct Index {
    /// The nodes of the upper three levels: the numbers of their children, which in the third level are leaves. Node 0 is the
    /// root, and as a child 0 stands for none.
    nodes: OwnedArray<u32>,
    node_count: usize,
    /// The leaves, the first of which is not used.
    regions: OwnedArray<Region>,
    leaf_count: usize,
    /// Leaves that were found before, by the lower bits of what leads to them.
    found: [Found; FOUND],
}

impl Index {
    pub(super) fn new() -> Index {
        Index {
            nodes: OwnedArray::mapped(WIDTH).expect("a session needs its first pages"),
            node_count: 1,
            regions: OwnedArray::mapped(WIDTH).expect("a session needs its first pages"),
            leaf_count: 1,
            found: [Found::default(); FOUND],
        }
    }

    /// Does what [`place`](Self::place) does, faster for regions near those of the calls before.
    #[inline(always)]
    pub(super) fn place_again(&mut self, address: u64) -> Place {
        let upper = address >> (OFFSET_BITS + LEVEL_BITS);
        let found = &self.found[upper as usize % FOUND];
        if found.upper == upper && upper != 0 {
            return Place(found.first + (address >> OFFSET_BITS) as u32 % WIDTH as u32);
        }
        self.find(address)
    }

    #[cold]
    fn find(&mut self, address: u64) -> Place {
        let place = self.place(address);
        if place != Place::NONE {
            let upper = address >> (OFFSET_BITS + LEVEL_BITS);
            self.found[upper as usize % FOUND] = Found {
                upper,
                first: place.0 - place.0 % WIDTH as u32,
            };
        }
        place
    }

    /// Returns the place of an address's region.
    pub(super) fn place(&self, address: u64) -> Place {
        if !has_region(address) {
            return Place::NONE;
        }
        let mut node = 0;
        for level in (1..4).rev() {
            node = self.nodes.as_slice()[child(node, address, level)];
            if node == 0 {
                return Place::NONE;
            }
        }
        Place(child(node, address, 0) as u32)
    }

    /// Returns the place of an address's region, which is there from now on. Returns `None` for an address that has no region, and
    /// without memory.
    #[cold]
    pub(super) fn add(&mut self, address: u64) -> Option<Place> {
        if !has_region(address) {
            return None;
        }
        let mut node = 0;
        for level in (1..4).rev() {
            let at = child(node, address, level);
            node = self.nodes.as_slice()[at];
            if node == 0 {
                node = if level > 1 {
                    add_one(&mut self.nodes, &mut self.node_count)?
                } else {
                    add_one(&mut self.regions, &mut self.leaf_count)?
                };
                self.nodes.as_mut_slice()[at] = node;
            }
        }
        Some(Place(child(node, address, 0) as u32))
    }

    #[inline(always)]
    pub(super) fn region(&self, place: Place) -> Region {
        self.regions.as_slice()[place.0 as usize]
    }

    #[inline(always)]
    pub(super) fn set(&mut self, place: Place, region: Region) {
        self.regions.as_mut_slice()[place.0 as usize] = region;
    }

    /// Returns the leaves, in the order of their numbers.
    pub(super) fn leaves(&self) -> impl Iterator<Item = &[Region]> {
        self.regions.as_slice().chunks(WIDTH)
    }

    pub(super) fn leaves_mut(&mut self) -> impl Iterator<Item = &mut [Region]> {
        self.regions.as_mut_slice().chunks_mut(WIDTH)
    }

    pub(super) fn mapped_bytes(&self) -> usize {
        self.nodes.bytes() + self.regions.bytes()
    }
}

/// Returns whether the index can have an address.
#[inline(always)]
fn has_region(address: u64) -> bool {
    address.wrapping_sub(1) < ADDRESSES
}

/// Returns where the child of a node is that `address` leads to. The leaves are at level 0.
#[inline(always)]
fn child(node: u32, address: u64, level: u32) -> usize {
    let number = (address >> (OFFSET_BITS + level * LEVEL_BITS)) as usize % WIDTH;
    node as usize * WIDTH + number
}

/// Adds a node or a leaf to `all`, of which there are `count`. Returns its number, or `None` without memory.
fn add_one<T: Plain>(all: &mut OwnedArray<T>, count: &mut usize) -> Option<u32> {
    let number = *count;
    let wanted = (number + 1) * WIDTH;
    // Places have 32 bits.
    u32::try_from(wanted).ok()?;
    let capacity = all.as_slice().len();
    if wanted > capacity && !all.grow(wanted.max(capacity + capacity / 8)) {
        return None;
    }
    *count += 1;
    Some(number as u32)
}
