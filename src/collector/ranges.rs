//! Ranges that `mmap` returned and `munmap` has not unmapped. They never overlap.
//!
//! A `munmap` need not match one `mmap`. memray's rule: a range that loses its beginning or its end stays one block with
//! fewer bytes; a range that is cut in the middle becomes two blocks; a range is freed only when all of it is gone.

use std::collections::BTreeMap;

use super::birth::Birth;
use super::live::Block;
use super::sites::SiteId;

#[derive(Debug, Clone, Copy)]
struct Range {
    end: u64,
    site: SiteId,
    birth: Birth,
    /// Set while nothing of the range was unmapped.
    whole: bool,
}

/// Part that a `munmap` removed from one range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Start of the range.
    pub(super) start: u64,
    pub(super) site: SiteId,
    /// Removed bytes.
    pub(super) bytes: u64,
    /// Removed blocks: 1, 0 where a part is left, -1 where two parts are left.
    pub(super) blocks: i64,
    /// Set if this removed all that `mmap` returned.
    pub(super) whole: bool,
}

/// Live ranges; see the module.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    by_start: BTreeMap<u64, Range>,
    bytes: u64,
}

impl Ranges {
    /// Adds the range of `size` bytes at `start`. No other range may be there: [`cut`](Self::cut) it out before.
    pub(super) fn insert(&mut self, start: u64, size: u64, site: SiteId, birth: Birth) {
        let end = start.saturating_add(size);
        let range = Range {
            end,
            site,
            birth,
            whole: true,
        };
        self.by_start.insert(start, range);
        self.bytes += end - start;
    }

    /// Removes `size` bytes from `start` on, from the last range that overlaps them. Call it until it returns `None`.
    pub(super) fn cut(&mut self, start: u64, size: u64) -> Option<Cut> {
        let end = start.saturating_add(size);
        // The last range that begins before `end` is the only one that can extend beyond it, so take from the back.
        let (&old_start, &old) = self.by_start.range(..end).next_back()?;
        if old.end <= start || size == 0 {
            return None;
        }
        let (cut_start, cut_end) = (old_start.max(start), old.end.min(end));
        let part = Range {
            whole: false,
            ..old
        };
        if old_start < cut_start {
            let head = Range {
                end: cut_start,
                ..part
            };
            self.by_start.insert(old_start, head);
        } else {
            self.by_start.remove(&old_start);
        }
        if cut_end < old.end {
            self.by_start.insert(cut_end, part);
        }
        self.bytes -= cut_end - cut_start;
        let parts_left = i64::from(old_start < cut_start) + i64::from(cut_end < old.end);
        Some(Cut {
            start: old_start,
            site: old.site,
            bytes: cut_end - cut_start,
            blocks: 1 - parts_left,
            whole: parts_left == 0 && old.whole,
        })
    }

    /// Returns all ranges, as blocks.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        self.by_start.iter().map(|(start, range)| Block {
            size: range.end - start,
            site: range.site,
            birth: range.birth,
        })
    }

    /// Returns the bytes of all ranges together.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes of memory, approximately: a tree's nodes are two thirds full on average.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.by_start.len() * size_of::<(u64, Range)>() * 3 / 2) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGES: u64 = 24;

    /// The (site, block) of each page, as a naive model keeps it.
    type Pages = [Option<(u32, u32)>; PAGES as usize];

    fn blocks(pages: &Pages) -> Vec<(u32, u64)> {
        let mut list: Vec<(u32, u64)> = Vec::new();
        let mut last = None;
        for &page in pages {
            match page {
                Some((site, _)) if page != last => list.push((site, 1)),
                Some(_) => list.last_mut().unwrap().1 += 1,
                None => {}
            }
            last = page;
        }
        list
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_map_of_pages(steps in prop::collection::vec((any::<bool>(), 0..PAGES, 1..8u64), 0..60)) {
            let (mut ranges, mut pages): (Ranges, Pages) = (Ranges::default(), [None; PAGES as usize]);
            for (number, (map, start, size)) in (0u32..).zip(steps) {
                let size = size.min(PAGES - start);
                let before = blocks(&pages);
                let (mut bytes, mut gone) = (0, 0);
                while let Some(cut) = ranges.cut(start * 4096, size * 4096) {
                    prop_assert!(cut.bytes > 0);
                    bytes += cut.bytes;
                    gone += cut.blocks;
                }
                // A block that is split becomes two: the part after the hole gets a new number.
                let hole = start as usize..(start + size) as usize;
                prop_assert_eq!(bytes / 4096, pages[hole.clone()].iter().flatten().count() as u64);
                pages[hole.clone()].fill(None);
                if let Some(block) = pages.get(hole.end).copied().flatten() {
                    let fresh = number | 1 << 31;
                    pages[hole.end..].iter_mut().take_while(|page| **page == Some(block)).for_each(|page| *page = Some((block.0, fresh)));
                }
                prop_assert_eq!(blocks(&pages).len() as i64, before.len() as i64 - gone);
                if map {
                    ranges.insert(start * 4096, size * 4096, SiteId(number), Birth::at_ms(0));
                    pages[hole].fill(Some((number, number)));
                }
                let kept: Vec<_> = ranges.by_start.iter().map(|(start, range)| (range.site.0, (range.end - start) / 4096)).collect();
                prop_assert_eq!(kept, blocks(&pages));
            }
        }
    }
}
