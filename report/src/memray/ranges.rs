//! Live `mmap` ranges. `munmap` may take any part of any of them; ranges may overlap, since a capture need not know
//! every `munmap`. The same results as memray's interval list, which it scans whole for each `munmap`.

use std::collections::BTreeMap;

/// A piece of a mapping that is still there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) end: u64,
    pub(super) site: u32,
    pub(super) born_ms: u64,
}

/// What a `munmap` took from one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) site: u32,
    pub(super) bytes: u64,
    /// Pieces left of it: 0, 1, or 2 if its middle was taken.
    pub(super) left: u8,
}

#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// By start and a number that tells ranges of one start apart.
    pieces: BTreeMap<(u64, u64), Piece>,
    next: u64,
    /// No piece is longer: how far before an address one may begin that reaches it.
    longest: u64,
}

impl Ranges {
    /// Adds a mapping; one of no bytes is none.
    pub(super) fn add(&mut self, start: u64, size: u64, site: u32, born_ms: u64) {
        if size == 0 {
            return;
        }
        let end = start.saturating_add(size);
        self.longest = self.longest.max(end - start);
        self.pieces
            .insert((start, self.next), Piece { end, site, born_ms });
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
                bytes: piece.end.min(end) - from.max(start),
                left,
            });
        }
    }

    /// Every piece.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.values()
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
            for (step, (add, start, size)) in steps.into_iter().enumerate() {
                let site = step as u32;
                if add {
                    ranges.add(start, size, site, 0);
                    model.extend((start..start + size).map(|byte| (site, byte)));
                } else {
                    ranges.remove(start, size, &mut taken);
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
        }
    }
}
