//! A hash index of positions in another owner's vector, 4 bytes per slot: open addressing, linear probing.
//!
//! ```text
//! slot: [ tag, the bits that are left | position + 1, as many bits as the largest needs ]     0 = empty
//! ```
//!
//! It need not have all positions of the vector. It takes half of [`Index`](super::index::Index)'s memory, for rare look-ups. It
//! grows by half, so that fewer slots are empty. It keeps only a part of each hash, so the vector's owner passes the hashes
//! again when it grows.

use std::collections::VecDeque;

use crate::capture::arch::prefetch;
use crate::capture::memory::OwnedArray;

/// Number of slots that are on their way to the cache while the index grows.
const AHEAD: usize = 16;

/// Hash index; see the module.
#[derive(Debug, Default)]
pub(super) struct Positions {
    /// The slots, in pages of the index's own, or none.
    slots: Option<OwnedArray<u32>>,
    len: usize,
    /// The position bits of a slot.
    mask: u32,
}

impl Positions {
    /// Returns the position under `hash` for which `is_it` holds.
    #[inline]
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let slots = self.slots();
        let mask = self.mask;
        let mut at = first(slots, hash);
        loop {
            let slot = *slots.get(at)?;
            if slot == 0 {
                return None;
            }
            if (slot ^ hash as u32) & !mask == 0 && is_it((slot & mask) - 1) {
                return Some((slot & mask) - 1);
            }
            at = if at + 1 == slots.len() { 0 } else { at + 1 };
        }
    }

    /// Adds `position` under `hash`. The index must not have it yet, and has none as large. `all` returns every earlier position
    /// and its hash. Returns false, and adds nothing, without memory.
    #[must_use]
    pub(super) fn insert<All>(
        &mut self,
        hash: u64,
        position: u32,
        all: impl FnOnce() -> All,
    ) -> bool
    where
        All: Iterator<Item = (u64, u32)>,
    {
        let slots = self.slots().len();
        let is_full = (self.len + 1) * 4 > slots * 3;
        let slots = if is_full { slots / 2 * 3 } else { slots };
        if (is_full || position >= self.mask) && !self.fill(slots, position, all()) {
            return false;
        }
        let mask = self.mask;
        let Some(slots) = &mut self.slots else {
            return false;
        };
        self.len += 1;
        place(slots.as_mut_slice(), mask, hash, position);
        true
    }

    /// Replaces the index by one of so many slots, or somewhat more, which has room for positions up to `last`.
    #[cold]
    fn fill(&mut self, slots: usize, last: u32, all: impl Iterator<Item = (u64, u32)>) -> bool {
        let Some(mut grown) = OwnedArray::hash_table(slots.max(64)) else {
            return false;
        };
        let slots = grown.as_mut_slice();
        // One bit more than needed, or it would be filled again soon.
        let mask = u32::MAX >> last.leading_zeros().saturating_sub(1);
        let mut waiting = VecDeque::with_capacity(AHEAD);
        for (hash, position) in all {
            if waiting.len() == AHEAD
                && let Some((hash, position)) = waiting.pop_front()
            {
                place(slots, mask, hash, position);
            }
            prefetch(&slots[first(slots, hash)]);
            waiting.push_back((hash, position));
        }
        for (hash, position) in waiting {
            place(slots, mask, hash, position);
        }
        self.slots = Some(grown);
        self.mask = mask;
        true
    }

    /// Returns the index's bytes of memory, all of them pages of its own.
    pub(super) fn mapped_bytes(&self) -> u64 {
        size_of_val(self.slots()) as u64
    }

    #[inline]
    fn slots(&self) -> &[u32] {
        self.slots.as_ref().map_or(&[], OwnedArray::as_slice)
    }
}

#[inline]
fn first(slots: &[u32], hash: u64) -> usize {
    ((u128::from(hash) * slots.len() as u128) >> 64) as usize
}

fn place(slots: &mut [u32], mask: u32, hash: u64, position: u32) {
    let mut at = first(slots, hash);
    while slots[at] != 0 {
        at = if at + 1 == slots.len() { 0 } else { at + 1 };
    }
    slots[at] = hash as u32 & !mask | (position + 1);
}

#[cfg(test)]
mod tests {
    use super::super::hash::mix;
    use super::*;
    use crate::capture::arch::page_size;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_finds_what_was_added(
            keys in prop::collection::vec(0u64..5000, 0..3000),
            hashes in prop::sample::select(vec![1u64, 7, 1000, u64::MAX]),
            first in 0u32..2,
            apart in 1u32..9,
        ) {
            // Few hashes: the probing has to cross long runs and wrap around.
            let hash = |key: u64| mix(mix(key) % hashes);
            let position = |at: usize| first + at as u32 * apart;
            let mut added: Vec<u64> = Vec::new();
            let mut index = Positions::default();
            for key in keys.iter().copied().take(if hashes < 1000 { 300 } else { 3000 }) {
                let found = index.find(hash(key), |at| added[((at - first) / apart) as usize] == key);
                prop_assert_eq!(found, added.iter().position(|&one| one == key).map(position));
                if found.is_none() {
                    let all = || added.iter().enumerate().map(|(at, &key)| (hash(key), position(at)));
                    prop_assert!(index.insert(hash(key), position(added.len()), all));
                    added.push(key);
                }
            }
            prop_assert!(index.mapped_bytes() <= page_size() as u64 + added.len() as u64 * 9);
        }
    }
}
