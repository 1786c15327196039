//! The lines of many runs, in pages of heapray's own.

use super::index::Region;
use super::run::{self, CLASSES, LINES};
use super::slot::Line;
use crate::capture::memory::OwnedArray;

/// Lines of a page, below which nothing is to be gained.
const PAGE: usize = 4096 / size_of::<Line>();

#[derive(Debug)]
pub(super) struct Pool {
    lines: OwnedArray<Line>,
    /// Number of lines that have been given out. All after them are unused.
    used: usize,
    /// First lines of runs that were given back, by class.
    free: [Vec<u32>; CLASSES],
    /// Number of lines that they have.
    pub(super) free_lines: usize,
    /// For tests: as if the kernel had no pages.
    #[cfg(test)]
    pub(super) refuses: bool,
}

impl Pool {
    pub(super) fn new() -> Pool {
        Pool {
            lines: OwnedArray::mapped(1).expect("a session needs its first pages"),
            used: 0,
            free: Default::default(),
            free_lines: 0,
            #[cfg(test)]
            refuses: false,
        }
    }

    /// Returns the number of lines that have been given out, those that were given back included.
    #[inline]
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Returns the line to which the block at an offset of a region belongs; another one if the region has none.
    #[inline(always)]
    pub(super) fn home(&self, region: Region, offset: u32) -> &Line {
        &self.lines.as_slice()[region.first() + run::home(offset, region.lines())]
    }

    #[inline(always)]
    pub(super) fn home_mut(&mut self, region: Region, offset: u32) -> &mut Line {
        &mut self.lines.as_mut_slice()[region.first() + run::home(offset, region.lines())]
    }

    /// Returns the lines of a region.
    pub(super) fn run(&self, region: Region) -> &[Line] {
        &self.lines.as_slice()[region.range()]
    }

    pub(super) fn run_mut(&mut self, region: Region) -> &mut [Line] {
        &mut self.lines.as_mut_slice()[region.range()]
    }

    /// Returns whether a run of `class` would need more pages while more than an eighth of the lines is free. Then the others should
    /// be moved together.
    pub(super) fn wants_order(&self, class: usize) -> bool {
        let needs_pages = self.used + usize::from(LINES[class]) > self.lines.as_slice().len();
        needs_pages && !self.has_free(class) && self.free_lines > self.used / 8
    }

    /// Returns whether more than half of the lines, and more than a page of them, are free.
    pub(super) fn is_mostly_free(&self) -> bool {
        self.free_lines > (self.used / 2).max(PAGE)
    }

    /// Moves the blocks of `region` to a run of `class`. Returns the region's new run, or `None` without memory for it.
    pub(super) fn move_to(&mut self, region: Region, class: usize) -> Option<Region> {
        let moved = region.moved(self.take(class)?, class);
        self.run_mut(moved).fill(Line::EMPTY);
        let lines = self.lines.as_mut_slice();
        for at in region.range() {
            let line = lines[at];
            for slot in line.used() {
                let home = run::home(slot.offset(), moved.lines());
                run::put(&mut lines[moved.range()], home, slot);
            }
        }
        self.give(region);
        Some(moved)
    }

    fn take(&mut self, class: usize) -> Option<u32> {
        let lines = usize::from(LINES[class]);
        if let Some(first) = self.take_free(class) {
            self.free_lines -= lines;
            return Some(first);
        }
        let (first, end) = (self.used, self.used + lines);
        let capacity = self.lines.as_slice().len();
        if end > capacity && !self.grow(end.max(capacity + capacity / 8)) {
            return None;
        }
        let first = u32::try_from(first).ok()?;
        self.used = end;
        Some(first)
    }

    fn has_free(&self, class: usize) -> bool {
        let classes = class..(class + 2).min(CLASSES);
        !self.free[classes].iter().all(Vec::is_empty)
    }

    /// Returns a run that was given back, or a part of one of the next class: when a heap shrinks, those are what is free.
    fn take_free(&mut self, class: usize) -> Option<u32> {
        self.free[class].pop().or_else(|| {
            let first = self.free.get_mut(class + 1)?.pop()?;
            let rest = run::rest_class(class);
            self.free[rest].push(first + u32::from(LINES[class]));
            Some(first)
        })
    }

    fn grow(&mut self, lines: usize) -> bool {
        #[cfg(test)]
        if self.refuses {
            return false;
        }
        self.lines.grow(lines)
    }

    /// Takes back the run of a region that has one.
    pub(super) fn give(&mut self, region: Region) {
        if let Some(class) = region.class() {
            self.free[class].push(region.first() as u32);
            self.free_lines += region.lines() as usize;
        }
    }

    /// Moves all runs together. `regions` are those that have one. Gives unused pages back.
    pub(super) fn compact(&mut self, mut regions: Vec<&mut Region>) {
        regions.sort_unstable_by_key(|region| region.first());
        self.used = 0;
        for region in regions {
            // A run moves towards the beginning, where no other run is any more.
            let (from, to) = (region.range(), self.used);
            self.used += from.len();
            self.lines.as_mut_slice().copy_within(from, to);
            if let Some(class) = region.class() {
                *region = region.moved(to as u32, class);
            }
        }
        self.free = Default::default();
        self.free_lines = 0;
        self.lines.shrink(self.used + self.used / 8);
    }

    pub(super) fn mapped_bytes(&self) -> usize {
        self.lines.bytes()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let free: usize = self.free.iter().map(Vec::capacity).sum();
        self.mapped_bytes() + free * size_of::<u32>()
    }
}
