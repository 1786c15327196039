//! A line of the table: five slots, and how far its other blocks lie.

use super::super::birth::{self, Birth};
use super::super::sites::SiteId;
use super::{Block, OFFSET_BITS};
use crate::capture::memory::Plain;

const USED: u32 = 1 << OFFSET_BITS;
/// Bits of a key that tell slots apart.
const KEY: u32 = (USED << 1) - 1;
const LOW_SHIFT: u32 = OFFSET_BITS + 1;
const LOW_BITS: u32 = 32 - LOW_SHIFT;
const HIGH_BITS: u32 = 7;
const BIRTH_SHIFT: u32 = HIGH_BITS;
const SITE_SHIFT: u32 = HIGH_BITS + birth::BITS;
/// Size from which on blocks have their size in a map, and this value in the slot.
pub(super) const LARGE: u64 = (1 << (LOW_BITS + HIGH_BITS)) - 1;

const _: () = assert!(SITE_SHIFT + SiteId::BITS <= u64::BITS);

/// A block in a line: its key and its value; see the module above for their bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) key: u32,
    pub(super) value: u64,
}

/// Number of slots in a line.
pub(super) const SLOTS: usize = 5;

/// A cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line {
    keys: [u32; SLOTS],
    /// Of the blocks that belong here and lie in other lines: how many, and how many lines further the farthest may be.
    pub(super) beside: Beside,
    values: [u64; SLOTS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub(super) struct Beside {
    pub(super) count: u16,
    pub(super) farthest: u16,
}

// SAFETY: integers, with nothing between them; the assertion below says so.
unsafe impl Plain for Line {}

const _: () = assert!(size_of::<Line>() == SLOTS * 12 + size_of::<Beside>());

impl Line {
    pub(super) const EMPTY: Line = Line {
        keys: [0; SLOTS],
        beside: Beside {
            count: 0,
            farthest: 0,
        },
        values: [0; SLOTS],
    };

    /// Returns the position of the block at `offset`; past the last slot if it is not here.
    ///
    /// It looks at all slots: the right one cannot be predicted, and a wrong guess costs more than the rest of them.
    #[inline(always)]
    pub(super) fn position(&self, offset: u32) -> usize {
        self.position_of(KEY, offset | USED)
    }

    /// Returns the position of an empty slot; past the last slot if there is none.
    #[inline(always)]
    pub(super) fn room(&self) -> usize {
        self.position_of(USED, 0)
    }

    #[inline(always)]
    fn position_of(&self, mask: u32, wanted: u32) -> usize {
        let mut position = SLOTS;
        for (at, key) in self.keys.iter().enumerate() {
            let equal = (key ^ wanted) & mask == 0;
            position = if equal { at } else { position };
        }
        position
    }

    /// Returns the slot at a position, if it is one.
    #[inline(always)]
    pub(super) fn get(&self, position: usize) -> Option<Slot> {
        let (&key, &value) = (self.keys.get(position)?, self.values.get(position)?);
        Some(Slot { key, value })
    }

    #[inline(always)]
    pub(super) fn set(&mut self, position: usize, slot: Slot) {
        self.keys[position] = slot.key;
        self.values[position] = slot.value;
    }

    #[inline(always)]
    pub(super) fn clear(&mut self, position: usize) {
        self.keys[position] = 0;
    }

    /// Returns the slots that are in use.
    pub(super) fn used(&self) -> impl Iterator<Item = Slot> {
        let slots = self.keys.iter().zip(&self.values);
        let used = slots.filter(|(key, _)| *key & USED != 0);
        used.map(|(&key, &value)| Slot { key, value })
    }
}

impl Slot {
    /// Returns the slot of `block`, whose size is at most [`LARGE`], at `offset` of its region.
    #[inline(always)]
    pub(super) fn of(offset: u32, block: Block) -> Slot {
        let birth = u64::from(block.birth.0) << BIRTH_SHIFT;
        Slot {
            key: (block.size as u32) << LOW_SHIFT | USED | offset,
            value: u64::from(block.site.0) << SITE_SHIFT | birth | block.size >> LOW_BITS,
        }
    }

    #[inline(always)]
    pub(super) fn offset(self) -> u32 {
        self.key & (USED - 1)
    }

    #[inline(always)]
    pub(super) fn site(self) -> SiteId {
        SiteId((self.value >> SITE_SHIFT) as u32)
    }

    /// Returns the size in the slot; [`LARGE`] if the size did not fit.
    #[inline(always)]
    pub(super) fn size(self) -> u64 {
        let high = self.value & ((1 << HIGH_BITS) - 1);
        u64::from(self.key >> LOW_SHIFT) | high << LOW_BITS
    }

    #[inline(always)]
    pub(super) fn block(self, size: u64) -> Block {
        let birth = (self.value >> BIRTH_SHIFT) as u32 & ((1 << birth::BITS) - 1);
        Block {
            size,
            site: self.site(),
            birth: Birth(birth),
        }
    }
}
