//! A hash index of positions in another owner's vector: 8 bytes per slot, open addressing, linear probing.
//!
//! ```text
//! slot: [ tag 32 | position + 1  32 ]     0 = empty
//! ```
//!
//! The tag is the caller's hash. For two keys with the same tag, the caller compares what is at the positions.

use crate::capture::arch::prefetch;

/// Hash index; see the module.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The slots: a power of two of them, or none.
    slots: Vec<u64>,
    len: usize,
}

impl Index {
    /// Returns the position under `tag` for which `is_it` holds.
    #[inline]
    pub(super) fn find(&self, tag: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = tag as usize & mask;
        loop {
            let slot = *self.slots.get(at)?;
            if slot == 0 {
                return None;
            }
            let position = (slot as u32).wrapping_sub(1);
            if (slot >> 32) as u32 == tag && is_it(position) {
                return Some(position);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds `position` under `tag`. The index must not have it yet.
    pub(super) fn insert(&mut self, tag: u32, position: u32) {
        // Different tags are compared without a look at the vector, so that long runs are cheap. It grows at 7 of 8; a lower
        // limit would leave memory half empty more often.
        if self.len * 8 >= self.slots.len() * 7 {
            self.grow();
        }
        self.len += 1;
        place(
            &mut self.slots,
            u64::from(tag) << 32 | (u64::from(position) + 1),
        );
    }

    /// Removes the positions for which `stays` does not hold. This looks at all of them.
    pub(super) fn retain(&mut self, stays: impl Fn(u32) -> bool) {
        let before = std::mem::take(&mut self.slots);
        self.slots = vec![0; before.len()];
        self.len = 0;
        for slot in before {
            if slot != 0 && stays((slot as u32).wrapping_sub(1)) {
                place(&mut self.slots, slot);
                self.len += 1;
            }
        }
    }

    /// Prefetches the slot at which a search for `tag` begins.
    #[inline(always)]
    pub(super) fn prefetch(&self, tag: u32) {
        if let Some(slot) = self.slots.get(self.first(tag)) {
            prefetch(slot);
        }
    }

    /// Returns the position in that slot, if the slot has that tag.
    #[inline(always)]
    pub(super) fn guess(&self, tag: u32) -> Option<u32> {
        let slot = *self.slots.get(self.first(tag))?;
        ((slot >> 32) as u32 == tag).then(|| (slot as u32).wrapping_sub(1))
    }

    #[inline(always)]
    fn first(&self, tag: u32) -> usize {
        tag as usize & self.slots.len().wrapping_sub(1)
    }

    /// Returns the index's bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        size_of_val(self.slots.as_slice()) as u64
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![0; (self.slots.len() * 2).max(64)];
        for &slot in self.slots.iter().filter(|&&slot| slot != 0) {
            place(&mut slots, slot);
        }
        self.slots = slots;
    }
}

#[inline]
fn place(slots: &mut [u64], slot: u64) {
    let mask = slots.len() - 1;
    let mut at = (slot >> 32) as usize & mask;
    while slots[at] != 0 {
        at = (at + 1) & mask;
    }
    slots[at] = slot;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn it_finds_what_was_added(
            positions in prop::collection::vec(0u32..500, 0..500),
            tags in prop::sample::select(vec![1u32, 7, 64, u32::MAX]),
        ) {
            // Few tags: the probing has to cross long runs and wrap around.
            let tag = |position: u32| position.wrapping_mul(0x9E37_79B9) % tags;
            let (mut index, mut model) = (Index::default(), HashSet::new());
            for position in positions {
                if model.insert(position) {
                    index.insert(tag(position), position);
                }
            }
            let finds_all = |index: &Index, model: &HashSet<u32>| {
                (0..500).all(|position| {
                    let found = index.find(tag(position), |at| at == position);
                    found.is_some() == model.contains(&position)
                })
            };
            prop_assert!(finds_all(&index, &model));
            index.retain(|position| position % 3 == 0);
            model.retain(|position| position % 3 == 0);
            prop_assert!(finds_all(&index, &model));
            for position in (0..500).step_by(3) {
                if model.insert(position) {
                    index.insert(tag(position), position);
                }
            }
            prop_assert!(finds_all(&index, &model));
        }
    }
}
