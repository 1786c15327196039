//! Live `mmap` ranges. `munmap` may take any part of any of them; ranges may overlap, since a capture need not know
//! every `munmap`. The same results as memray's interval list, which it scans whole for each `munmap`.

use std::collections::{BTreeMap, HashMap};

/// A piece of a mapping that is still there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) end: u64,
    pub(super) site: u32,
    pub(super) born: u64,
}

/// What a `munmap` took from one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Site of the mapping.
    pub(crate) site: u32,
    /// When it was made, as it was told.
    pub(crate) born: u64,
    /// Bytes that were there.
    pub(crate) bytes: u64,
    /// Pieces left of it: 0, 1, or 2 if its middle was taken.
    pub(crate) left: u8,
    /// Whether nothing is left of the whole mapping.
    pub(crate) last: bool,
}

/// How a piece is kept.
pub(super) type Entry = ((u64, u64), Piece, (u64, u32));

#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// By start and a number that tells ranges of one start apart.
    pieces: BTreeMap<(u64, u64), Piece>,
    next: u64,
    /// How many pieces there are of each mapping that is in more than one.
    split: HashMap<u64, u32>,
    /// No piece is longer: how far before an address one may begin that reaches it.
    longest: u64,
}

impl Ranges {
    /// Adds a mapping; one of no bytes is none.
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

    /// Takes `start..start + size` from every piece; `taken` says what was there.
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

    /// Notes that a piece of mapping `number` became `left` pieces; whether that was the mapping's end.
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

    /// How many pieces there are.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Every piece with its start and its mapping's number, by start.
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
