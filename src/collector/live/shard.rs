//! A shard: lines in the order of keys, and the blocks that did not fit into their lines.

use std::ops::Range;

use super::super::hash::Map;
use super::map_bytes;
use super::slot::{BESIDE, BESIDE_SHIFT, EMPTY, KEY_SHIFT, Line, SLOTS, Slot, has, position};
use crate::capture::memory::OwnedArray;

/// Average number of blocks in a line above which a shard grows, by a quarter.
pub(super) const FULL: usize = 3;
/// Smallest number of lines of a shard: a page.
pub(super) const FEWEST_LINES: usize = 51;

/// Number of lines after a full one to which the full line's blocks may go.
const NEAR: usize = 4;

#[derive(Debug)]
pub(super) struct Shard {
    pub(super) lines: OwnedArray<Line>,
    /// Number of lines in use. The others are empty.
    pub(super) count: usize,
    /// Number of blocks, including those beside their lines.
    pub(super) len: usize,
    /// The shard shrinks with fewer blocks than this, and grows with more than `most`.
    pub(super) fewest: usize,
    pub(super) most: usize,
    /// Slots of blocks whose line and the lines after it were full, by key.
    pub(super) far: Map<u64, Slot>,
}

impl Shard {
    pub(super) fn of(count: usize) -> Shard {
        let mut shard = Shard {
            lines: OwnedArray::mapped(count).expect("a session needs its first pages"),
            count,
            len: 0,
            fewest: 0,
            most: 0,
            far: Map::default(),
        };
        shard.set_bounds();
        shard
    }

    pub(super) fn set_bounds(&mut self) {
        self.most = self.count * FULL;
        self.fewest = if self.count >= FEWEST_LINES * 3 {
            self.count / 2
        } else {
            0
        };
    }

    #[inline(always)]
    pub(super) fn lines(&self) -> &[Line] {
        self.lines.as_slice()
    }

    #[inline(always)]
    pub(super) fn line_mut(&mut self, at: usize) -> &mut Line {
        &mut self.lines.as_mut_slice()[at]
    }

    /// Returns the line of `key`.
    #[inline(always)]
    pub(super) fn line(&self, key: u64) -> usize {
        line_among(self.count, key)
    }

    /// Returns whether there may be a block of `key`. Looks at one line.
    #[inline(always)]
    pub(super) fn may_have(&self, key: u64) -> bool {
        let line = &self.lines()[self.line(key)];
        has(line, key) | (line[0][0] & BESIDE != 0)
    }

    #[inline]
    pub(super) fn slot(&self, key: u64) -> Option<&Slot> {
        let line = &self.lines()[self.line(key)];
        line.get(position(line, key))
    }

    /// Does what [`slot`](Self::slot) does, and also looks beside the line.
    pub(super) fn find(&self, key: u64) -> Option<&Slot> {
        let at = self.line(key);
        let beside = || {
            self.near(at).find_map(|at| {
                let line = &self.lines()[at];
                line.get(position(line, key))
            })
        };
        let far = || self.far.get(&key);
        self.slot(key).or_else(beside).or_else(far)
    }

    /// Returns the lines for blocks that have no room in line `at`.
    #[inline]
    fn near(&self, at: usize) -> Range<usize> {
        at + 1..(at + NEAR + 1).min(self.count)
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, new: Slot, spare: &mut Vec<Slot>) -> Option<Slot> {
        let key = new[0] >> KEY_SHIFT;
        let at = self.line(key);
        let line = self.line_mut(at);
        let found = position(line, key);
        if let Some(slot) = line.get_mut(found) {
            let old = *slot;
            *slot = [new[0] | (old[0] & BESIDE), new[1]];
            return Some(old);
        }
        let empty = position(line, 0);
        if empty == SLOTS || line[0][0] & BESIDE != 0 {
            return self.insert_crowded(at, new, spare);
        }
        line[empty] = new;
        self.grown(spare)
    }

    /// Inserts into a line that is full, or that has blocks beside it.
    #[cold]
    fn insert_crowded(&mut self, at: usize, new: Slot, spare: &mut Vec<Slot>) -> Option<Slot> {
        let key = new[0] >> KEY_SHIFT;
        if self.lines()[at][0][0] & BESIDE != 0 {
            for near in self.near(at) {
                let line = self.line_mut(near);
                let found = position(line, key);
                if let Some(slot) = line.get_mut(found) {
                    let old = *slot;
                    *slot = [new[0] | (old[0] & BESIDE), new[1]];
                    return Some(old);
                }
            }
            if let Some(slot) = self.far.get_mut(&key) {
                return Some(std::mem::replace(slot, new));
            }
        }
        self.put(at, new);
        self.grown(spare)
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, key: u64, spare: &mut Vec<Slot>) -> Option<Slot> {
        let at = self.line(key);
        let line = self.line_mut(at);
        let found = position(line, key);
        if let Some(slot) = line.get_mut(found) {
            let old = *slot;
            slot[0] &= BESIDE;
            self.shrunk(spare);
            return Some(old);
        }
        if line[0][0] & BESIDE == 0 {
            return None;
        }
        self.remove_beside(at, key, spare)
    }

    #[cold]
    fn remove_beside(&mut self, at: usize, key: u64, spare: &mut Vec<Slot>) -> Option<Slot> {
        let near = self.near(at).find_map(|near| {
            let line = self.line_mut(near);
            let found = position(line, key);
            let slot = line.get_mut(found)?;
            let old = *slot;
            slot[0] &= BESIDE;
            Some(old)
        });
        let old = near.or_else(|| self.far.remove(&key))?;
        let first = &mut self.line_mut(at)[0][0];
        if *first & BESIDE != BESIDE {
            *first -= 1 << BESIDE_SHIFT;
        }
        self.shrunk(spare);
        Some(old)
    }

    #[inline(always)]
    fn grown(&mut self, spare: &mut Vec<Slot>) -> Option<Slot> {
        self.len += 1;
        if self.len > self.most {
            self.grow(spare);
        }
        None
    }

    #[inline(always)]
    fn shrunk(&mut self, spare: &mut Vec<Slot>) {
        self.len -= 1;
        if self.len < self.fewest {
            self.shrink(spare);
        }
    }

    /// Goes from the last line to the first, since a block's line stays or becomes a later one. So no block moves into a
    /// line whose own blocks still have to move. `spare` is room for blocks that are set aside, kept for the next time.
    #[cold]
    fn grow(&mut self, spare: &mut Vec<Slot>) {
        let (before, now) = (self.count, self.count * 5 / 4);
        if !self.lines.grow(now) {
            // Without memory, more blocks lie beside their lines. Try again when there are twice as many.
            self.most *= 2;
            return;
        }
        self.count = now;
        self.take_far(spare);
        for at in (0..before).rev() {
            self.move_line(at, before, spare);
        }
        self.put_all(spare);
    }

    /// Shrinks in the opposite direction of [`grow`](Self::grow).
    #[cold]
    fn shrink(&mut self, spare: &mut Vec<Slot>) {
        let (before, now) = (self.count, self.count / 3);
        self.count = now;
        self.take_far(spare);
        for at in 0..before {
            self.move_line(at, before, spare);
        }
        self.lines.shrink(now);
        self.put_all(spare);
    }

    fn take_far(&mut self, spare: &mut Vec<Slot>) {
        spare.clear();
        spare.extend(std::mem::take(&mut self.far).into_values());
    }

    /// Moves the blocks of a line to their new lines. Blocks that were, or would be, beside their line are set aside.
    #[inline(always)]
    fn move_line(&mut self, at: usize, before: usize, beside: &mut Vec<Slot>) {
        let line = *self.line_mut(at);
        *self.line_mut(at) = EMPTY;
        for slot in &line {
            let key = slot[0] >> KEY_SHIFT;
            if key == 0 {
                continue;
            }
            let slot = [slot[0] & !BESIDE, slot[1]];
            let home = self.line(key);
            let moved = line_among(before, key) == at && self.put_at_home(home, slot);
            if !moved {
                beside.push(slot);
            }
        }
    }

    /// Inserts the blocks that were set aside, after all others have been moved.
    fn put_all(&mut self, beside: &[Slot]) {
        for &slot in beside {
            self.put(self.line(slot[0] >> KEY_SHIFT), slot);
        }
        self.set_bounds();
    }

    /// Puts a block, whose key is not in the shard, into line `at` if that has room.
    #[inline(always)]
    fn put_at_home(&mut self, at: usize, slot: Slot) -> bool {
        let line = self.line_mut(at);
        let empty = position(line, 0);
        let Some(place) = line.get_mut(empty) else {
            return false;
        };
        *place = [slot[0] | (place[0] & BESIDE), slot[1]];
        true
    }

    /// Puts a block, whose key is not in the shard, into line `at`, or beside it.
    fn put(&mut self, at: usize, slot: Slot) {
        if self.put_at_home(at, slot) {
            return;
        }
        let first = &mut self.line_mut(at)[0][0];
        if *first & BESIDE != BESIDE {
            *first += 1 << BESIDE_SHIFT;
        }
        if !self.near(at).any(|near| self.put_at_home(near, slot)) {
            self.far.insert(slot[0] >> KEY_SHIFT, slot);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        let slots = self.lines().iter().flatten();
        slots
            .filter(|slot| slot[0] >> KEY_SHIFT != 0)
            .chain(self.far.values())
    }

    pub(super) fn mapped_bytes(&self) -> usize {
        self.lines.bytes()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.mapped_bytes() + map_bytes::<(u64, Slot)>(self.far.capacity())
    }
}

/// Returns the line of `key` among `lines` lines. It never falls as the key rises, or as the number of lines rises.
#[inline]
pub(super) fn line_among(lines: usize, key: u64) -> usize {
    ((u128::from(key << KEY_SHIFT) * lines as u128) >> 64) as usize
}
