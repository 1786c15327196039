//! The bits of a slot, and the search of a line.

use super::super::birth::{self, Birth};
use super::super::sites::SiteId;
use super::{ADDRESS_BITS, Block, SHARD_BITS};

pub(super) const KEY_SHIFT: u32 = 64 - (ADDRESS_BITS - SHARD_BITS);
pub(super) const BESIDE_SHIFT: u32 = 16;
/// Largest count of blocks beside a line. A count that reached it stays, so that it is never too low.
pub(super) const BESIDE_MOST: u64 = (1 << (KEY_SHIFT - BESIDE_SHIFT)) - 1;
pub(super) const BESIDE: u64 = BESIDE_MOST << BESIDE_SHIFT;
const SIZE_LOW: u64 = (1 << BESIDE_SHIFT) - 1;
const SIZE_HIGH_BITS: u32 = 10;
/// Size from which on blocks have their size in a map, and this value in the slot.
pub(super) const LARGE: u64 = (1 << (BESIDE_SHIFT + SIZE_HIGH_BITS)) - 1;

pub(super) const SLOTS: usize = 4;

const _: () = assert!(SiteId::BITS + birth::BITS + SIZE_HIGH_BITS == 64);

pub(super) type Slot = [u64; 2];

/// Returns the slot of `block`, whose size is at most [`LARGE`].
#[inline(always)]
pub(super) fn pack(key: u64, block: Block) -> Slot {
    [
        key << KEY_SHIFT | (block.size & SIZE_LOW),
        u64::from(block.site.0) << (birth::BITS + SIZE_HIGH_BITS)
            | u64::from(block.birth.0) << SIZE_HIGH_BITS
            | block.size >> BESIDE_SHIFT,
    ]
}

#[inline]
pub(super) fn site(slot: &Slot) -> SiteId {
    SiteId((slot[1] >> (birth::BITS + SIZE_HIGH_BITS)) as u32)
}

#[inline]
pub(super) fn born(slot: &Slot) -> Birth {
    Birth((slot[1] >> SIZE_HIGH_BITS) as u32 & ((1 << birth::BITS) - 1))
}

/// Returns the size in a slot; [`LARGE`] if the size did not fit.
#[inline]
pub(super) fn size(slot: &Slot) -> u64 {
    let high = slot[1] & ((1 << SIZE_HIGH_BITS) - 1);
    high << BESIDE_SHIFT | (slot[0] & SIZE_LOW)
}

#[inline]
pub(super) fn block(slot: &Slot, size: u64) -> Block {
    Block {
        size,
        site: site(slot),
        birth: born(slot),
    }
}

/// Returns the position of the slot with `key` in the line; past the last one if there is none.
///
/// It looks at all slots: the right one cannot be predicted, and a wrong guess costs more than the rest of them.
#[inline(always)]
pub(super) fn position(line: &[Slot; SLOTS], key: u64) -> usize {
    let wanted = key << KEY_SHIFT;
    let mut position = SLOTS;
    for (at, slot) in line.iter().enumerate() {
        // Equal keys leave only the bits below them.
        position = if slot[0] ^ wanted < 1 << KEY_SHIFT {
            at
        } else {
            position
        };
    }
    position
}

/// Returns whether one of the line's slots has `key`.
#[inline(always)]
pub(super) fn has(line: &[Slot; SLOTS], key: u64) -> bool {
    let wanted = key << KEY_SHIFT;
    let equal = |slot: &Slot| slot[0] ^ wanted < 1 << KEY_SHIFT;
    line.iter().fold(false, |found, slot| found | equal(slot))
}

pub(super) type Line = [Slot; SLOTS];

pub(super) const EMPTY: Line = [[0; 2]; SLOTS];

const _: () = assert!(size_of::<Line>() == 64);
