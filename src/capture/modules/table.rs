//! A module's unwind rules, compact and quick to search.
//!
//! ```text
//! index    one u32 for each 256 bytes of code: the first row of that block
//! rows     low byte of the first address that the row is for | rule number << 8
//! rules    the distinct rules
//! ```
//! A look-up is two cache misses (index, rows) and one load that mostly hits. Four bytes a row: 1.3 MB for 10 MB of
//! code where a sorted list of addresses and rules takes 2.6.

use crate::capture::arch::Rule;
use crate::capture::memory::{GrowArray, OwnedArray};

/// Rules by address, relative to the first byte of the module's code. A table lives forever, because hooks may be reading
/// it.
#[derive(Debug)]
pub(crate) struct Table {
    /// First row of each block, and one more entry at the end.
    index: GrowArray<u32>,
    rows: GrowArray<u32>,
    rules: GrowArray<u32>,
    length: u32,
    row_count: u32,
}

const BLOCK: u32 = 256;

impl Table {
    /// Returns the rule for the code at `offset`.
    #[inline]
    pub(crate) fn rule(&self, offset: u64) -> Rule {
        if offset >= u64::from(self.length) {
            return Rule::NONE;
        }
        let (block, low) = ((offset / u64::from(BLOCK)) as usize, offset as u32 % BLOCK);
        let index = self.index.as_slice();
        let rows = &self.rows.as_slice()[index[block] as usize..index[block + 1] as usize];
        let at_or_before = rows.iter().take_while(|&&row| row % BLOCK <= low).count();
        // There is always an earlier row: row 0 says `NONE`, and no block begins before row 1.
        let row = self.rows.as_slice()[index[block] as usize + at_or_before - 1];
        Rule::from_bits(self.rules.as_slice()[(row / BLOCK) as usize])
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.row_count as usize
    }

    /// Returns the bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        (self.index.capacity() + self.rows.capacity() + self.rules.capacity()) * size_of::<u32>()
    }
}

/// Builder that collects rows in the order of their addresses, in pages of heapray's own. Megabytes in the service's
/// allocator would change how it treats the service's own blocks (glibc adjusts `M_MMAP_THRESHOLD` when one is freed).
#[derive(Debug)]
pub(crate) struct TableBuilder {
    index: Column,
    rows: Column,
    rules: Column,
    /// Hash table by rule, with open addressing: the rule's number + 1, or 0.
    numbers: Vec<u32>,
    /// The rule of the last row, and the end of its range.
    last: Rule,
    covered: u32,
    length: u32,
}

impl TableBuilder {
    /// Makes a builder for `length` bytes of code. Returns `None` if there is no memory.
    pub(crate) fn new(length: u32) -> Option<TableBuilder> {
        Some(TableBuilder {
            index: Column::of(1)?,
            rows: Column::of(0)?,
            rules: Column::of(Rule::NONE.to_bits())?,
            numbers: vec![0; 1024],
            last: Rule::NONE,
            covered: 0,
            length,
        })
    }

    /// Adds `rule` for the code from `start` to `end`. Ranges come in the order of their starts; code that an earlier range
    /// covers keeps its rule.
    pub(crate) fn push(&mut self, start: u32, end: u32, rule: Rule) {
        let (start, end) = (start.max(self.covered), end.min(self.length));
        if start >= end {
            return;
        }
        // Even a tiny gap between two functions gets a row. A stack that was made by hand has the beginning of a function as
        // a return address, and the byte before it does not belong to the previous function.
        if start > self.covered {
            self.row(self.covered, Rule::NONE);
        }
        self.row(start, rule);
        self.covered = end;
    }

    fn row(&mut self, start: u32, rule: Rule) {
        if rule == self.last {
            return;
        }
        self.last = rule;
        let number = self.number(rule);
        self.begin_blocks((start / BLOCK) as usize);
        self.rows.push((start % BLOCK) | (number * BLOCK));
    }

    /// Lets the blocks up to and including `block` begin at the next row.
    fn begin_blocks(&mut self, block: usize) {
        let next = self.rows.len() as u32;
        while self.index.len() <= block && self.index.push(next) {}
    }

    fn number(&mut self, rule: Rule) -> u32 {
        if self.rules.len() * 2 > self.numbers.len() {
            let larger = self.numbers.len() * 2;
            self.numbers.clear();
            self.numbers.resize(larger, 0);
            for number in 0..self.rules.len() as u32 {
                let slot = self.slot(Rule::from_bits(self.rules.at(number)));
                self.numbers[slot] = number + 1;
            }
        }
        let slot = self.slot(rule);
        if self.numbers[slot] == 0 {
            // A rule number has 24 bits. Rules beyond that are marked as unsupported.
            if self.rules.len() >= 1 << 24 {
                return 0;
            }
            self.rules.push(rule.to_bits());
            self.numbers[slot] = self.rules.len() as u32;
        }
        self.numbers[slot] - 1
    }

    fn slot(&self, rule: Rule) -> usize {
        let mask = self.numbers.len() - 1;
        let mut slot = (rule.to_bits().wrapping_mul(0x9e37_79b9) >> 8) as usize & mask;
        while self.numbers[slot] != 0 && self.rules.at(self.numbers[slot] - 1) != rule.to_bits() {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Returns the table, in pages of heapray's own, or `None` if there is no memory for it.
    pub(crate) fn finish(mut self) -> Option<Table> {
        if self.covered < self.length {
            self.row(self.covered, Rule::NONE);
        }
        self.begin_blocks(self.length.div_ceil(BLOCK) as usize);
        let row_count = self.rows.len() as u32;
        Some(Table {
            index: self.index.finish()?,
            rows: self.rows.finish()?,
            rules: self.rules.finish()?,
            length: self.length,
            row_count,
        })
    }
}

/// Column of values.
#[derive(Debug)]
struct Column {
    values: OwnedArray<u32>,
    len: usize,
    /// Set if there was no memory for a value.
    lacks: bool,
}

impl Column {
    fn of(first: u32) -> Option<Column> {
        let mut values = OwnedArray::mapped(1)?;
        values.as_mut_slice()[0] = first;
        Some(Column {
            values,
            len: 1,
            lacks: false,
        })
    }

    fn len(&self) -> usize {
        self.len
    }

    fn at(&self, number: u32) -> u32 {
        self.values.as_slice()[number as usize]
    }

    fn push(&mut self, value: u32) -> bool {
        let capacity = self.values.as_slice().len();
        if self.len == capacity && !self.values.grow(capacity * 2) {
            self.lacks = true;
            return false;
        }
        self.values.as_mut_slice()[self.len] = value;
        self.len += 1;
        true
    }

    fn finish(mut self) -> Option<GrowArray<u32>> {
        self.values.shrink(self.len);
        (!self.lacks).then(|| self.values.keep())
    }
}

#[cfg(all(test, heapray_native))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[allow(clippy::unwrap_used)] // a test's helper
    fn table(length: u32, ranges: &[(u32, u32, Rule)]) -> Table {
        let mut builder = TableBuilder::new(length).unwrap();
        for &(start, end, rule) in ranges {
            builder.push(start, end, rule);
        }
        builder.finish().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_table_answers_as_a_list_of_ranges_does(
            pieces in prop::collection::vec((0u32..700, 1u32..700, 0u32..2000), 0..200),
            tail in 0u32..1000,
        ) {
            let mut ranges = Vec::new();
            let mut at = 0;
            for (gap, length, rule) in pieces {
                let gap = if gap < 400 { 0 } else { gap };
                ranges.push((at + gap, at + gap + length, Rule::from_bits(rule << 11 | 1)));
                at += gap + length;
            }
            let table = table(at + tail, &ranges);
            let mut expected = vec![Rule::NONE; (at + tail + 10) as usize];
            for &(start, end, rule) in &ranges {
                expected[start as usize..end as usize].fill(rule);
            }
            for (offset, &rule) in expected.iter().enumerate() {
                prop_assert_eq!(table.rule(offset as u64), rule, "at {}", offset);
            }
        }
    }

    #[test]
    fn padding_between_functions_belongs_to_neither() {
        let rule = Rule::FRAME_POINTER;
        let table = table(4096, &[(0, 10, rule), (11, 32, rule), (32, 64, rule)]);
        assert_eq!(table.rule(9), rule);
        assert_eq!(table.rule(10), Rule::NONE);
        assert_eq!(table.rule(11), rule);
        assert_eq!(table.rule(32), rule);
        assert_eq!(table.rule(64), Rule::NONE);
        assert_eq!(table.rows(), 5);
    }

    #[test]
    fn the_first_range_that_covers_an_address_wins() {
        let (first, second) = (Rule::FRAME_POINTER, Rule::OUTERMOST);
        let table = table(
            100,
            &[
                (0, 50, first),
                (20, 40, second),
                (30, 70, second),
                (60, 200, first),
            ],
        );
        assert_eq!(
            [0, 30, 49, 50, 69, 70, 99, 100].map(|at| table.rule(at)),
            [
                first,
                first,
                first,
                second,
                second,
                first,
                first,
                Rule::NONE
            ]
        );
    }
}
