//! The recent-address list: an address among the last 15 that were written out costs no byte (capture format,
//! section 3.4). A first-in first-out list that hits do not change; index 0 is the newest, all are 0 at first.

/// Index that says "not in the list: the address follows".
pub(super) const MISS: u8 = 15;

/// List of recent addresses, kept as a ring, so that a new entry moves nothing. Slot 15 is padding for the vectorised
/// search.
#[derive(Debug)]
pub(super) struct Recent {
    ring: [u64; 16],
    newest: u8,
}

impl Default for Recent {
    fn default() -> Self {
        let mut ring = [0; 16];
        ring[15] = u64::MAX; // no packed address
        Recent { ring, newest: 0 }
    }
}

impl Recent {
    /// Returns the index of `address`, or [`MISS`], in which case it is the newest from now on.
    #[inline]
    pub(super) fn find_or_add(&mut self, address: u64) -> u8 {
        let mut hits = 0u32;
        for (slot, &entry) in self.ring.iter().enumerate() {
            hits |= u32::from(entry == address) << slot;
        }
        let slot = hits.trailing_zeros() as u8;
        if slot >= MISS {
            self.add(address);
            return MISS;
        }
        if slot >= self.newest {
            slot - self.newest
        } else {
            slot + 15 - self.newest
        }
    }

    /// Returns the address at `index`, which is below [`MISS`].
    #[inline]
    pub(super) fn get(&self, index: u8) -> u64 {
        let slot = self.newest + index;
        let slot = if slot >= 15 { slot - 15 } else { slot };
        self.ring[usize::from(slot & 15)]
    }

    /// Adds `address` as the newest; the oldest is removed.
    #[inline]
    pub(super) fn add(&mut self, address: u64) {
        self.newest = if self.newest == 0 {
            14
        } else {
            self.newest - 1
        };
        self.ring[usize::from(self.newest & 15)] = address;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_is_the_list_of_the_format(addresses in prop::collection::vec(0u64..40, 0..400)) {
            let mut list = VecDeque::from([0u64; 15]);
            let (mut writer, mut reader) = (Recent::default(), Recent::default());
            for address in addresses {
                let index = writer.find_or_add(address);
                if index == MISS {
                    prop_assert!(!list.contains(&address));
                    list.push_front(address);
                    list.pop_back();
                    reader.add(address);
                } else {
                    prop_assert_eq!(list[usize::from(index)], address);
                    prop_assert_eq!(reader.get(index), address);
                }
            }
        }
    }
}
