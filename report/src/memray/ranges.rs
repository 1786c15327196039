//! Live `mmap` ranges. `munmap` may remove any part of any of them. Ranges may overlap, since a capture need not have every
//! `munmap`. The results are those of memray's interval list, which is scanned whole for each `munmap`.

use std::collections::{BTreeMap, HashMap};

/// Piece of a mapping that is still mapped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) end: u64,
    pub(super) site: u32,
    pub(super) born: u64,
}

/// Part that a `munmap` removed from one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Site of the mapping.
    pub(crate) site: u32,
    /// Time of its allocation, in the caller's units.
    pub(crate) born: u64,
    /// Removed bytes.
    pub(crate) bytes: u64,
    /// Pieces that are left: 0, 1, or 2 if the middle was removed.
    pub(crate) left: u8,
    /// Set if nothing is left of the whole mapping.
    pub(crate) last: bool,
}

/// Form in which a piece is stored.
pub(super) type Entry = ((u64, u64), Piece, (u64, u32));

#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// Pieces by start, and by a number for ranges with the same start.
    pieces: BTreeMap<(u64, u64), Piece>,
    next: u64,
    /// Number of pieces of each mapping that has more than one.
    split: HashMap<u64, u32>,
    /// Length of the longest piece: a piece that reaches an address begins at most so far before it.
    longest: u64,
}

impl Ranges {
    /// Adds a mapping. Ignores one of no bytes.
    pub(super) fn add(&mut self, start: u64, size: u64, site: u32, born: u64) {
        if size == 0 {
            return;
        }
        let end = start.saturating_add(size);
        self.longest = self.longest.max(end - start);
        self.pieces
            .insert((start, self.next), Piece { end, site, born });
        self.next += 1;
    }

    /// Removes `start..start + size` from every piece. Adds the removed parts to `taken`.
    pub(super) fn remove(&mut self, start: u64, size: u64, taken: &mut Vec<Taken>) {
        taken.clear();
        if size == 0 {
            return;
        }
        let end = start.saturating_add(size);
        let reach = (start.saturating_sub(self.longest), 0)..(end, 0);
        let hit: Vec<_> = self
            .pieces
            .range(reach)
            .filter(|(_, piece)| piece.end > start)
            .map(|(&key, &piece)| (key, piece))
            .collect();
        for ((from, number), piece) in hit {
            let mut left = 0;
            self.pieces.remove(&(from, number));
            if from < start {
                let head = Piece {
                    end: start,
                    ..piece
                };
                self.pieces.insert((from, number), head);
                left += 1;
            }
            if piece.end > end {
                self.pieces.insert((end, number), piece);
                left += 1;
            }
            taken.push(Taken {
                site: piece.site,
                born: piece.born,
                bytes: piece.end.min(end) - from.max(start),
                left,
                last: self.count(number, left),
            });
        }
    }

    /// Notes that a piece of mapping `number` became `left` pieces. Returns whether that was the mapping's end.
    fn count(&mut self, number: u64, left: u8) -> bool {
        match left {
            2 => *self.split.entry(number).or_insert(1) += 1,
            0 => match self.split.get_mut(&number) {
                Some(pieces) if *pieces > 2 => *pieces -= 1,
                Some(_) => {
                    self.split.remove(&number);
                }
                None => return true,
            },
            _ => {}
        }
        false
    }

    /// Returns the number of pieces.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns every piece with its start and its mapping's number, by start.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64, &Piece)> {
        self.pieces
            .iter()
            .map(|(&(start, number), piece)| (start, number, piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The model keeps each byte of each mapping.
        #[test]
        fn every_byte_is_accounted_for(
            steps in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..30), 0..40),
        ) {
            let mut ranges = Ranges::default();
            let mut model: Vec<(u32, u64)> = Vec::new();
            let mut taken = Vec::new();
            let mut ended = 0;
            for (step, (add, start, size)) in steps.into_iter().enumerate() {
                let site = step as u32;
                if add {
                    ranges.add(start, size, site, 0);
                    model.extend((start..start + size).map(|byte| (site, byte)));
                } else {
                    ranges.remove(start, size, &mut taken);
                    ended += taken.iter().filter(|t| t.last).count();
                    let gone = |&(_, byte): &(u32, u64)| byte >= start && byte < start + size;
                    let mut expected: Vec<u32> =
                        model.iter().copied().filter(gone).map(|(site, _)| site).collect();
                    model.retain(|byte| !gone(byte));
                    let mut got: Vec<u32> = taken
                        .iter()
                        .flat_map(|t| std::iter::repeat_n(t.site, t.bytes as usize))
                        .collect();
                    expected.sort_unstable();
                    got.sort_unstable();
                    prop_assert_eq!(got, expected);
                }
            }
            let live: u64 = ranges.pieces.iter().map(|(key, piece)| piece.end - key.0).sum();
            prop_assert_eq!(live, model.len() as u64);
            model.sort_unstable();
            model.dedup_by_key(|(site, _)| *site);
            prop_assert_eq!(ranges.next - ended as u64, model.len() as u64);
            prop_assert!(ranges.split.values().all(|&pieces| pieces > 1));
        }
    }
}
