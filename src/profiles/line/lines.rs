//! The readings at each line of one call.

use super::function::Semantics;

/// Reading of a metric.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) bytes: u64,
    /// Number of allocations up to now, if it is known.
    pub(super) allocations: u64,
}

/// Figures of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// The highest reading as control left the line.
    pub(super) highest: u64,
    /// Sum of the differences.
    pub(super) increment: i64,
    /// Number of times that control left the line; 0 if the line did not run.
    pub(super) occurrences: u64,
    pub(super) allocations: u64,
}

impl Row {
    /// Adds another call.
    pub(super) fn add(&mut self, other: &Row) {
        self.highest = self.highest.max(other.highest);
        self.increment += other.increment;
        self.occurrences += other.occurrences;
        self.allocations += other.allocations;
    }
}

/// Lines of a function during one call.
#[derive(Debug)]
pub(super) struct Lines {
    first: u32,
    semantics: Semantics,
    rows: Vec<Row>,
    /// Index of the line that control is on.
    current: usize,
    /// The line that control left last.
    previous: Option<usize>,
    last: Reading,
    /// The first reading.
    entry: Option<u64>,
}

impl Lines {
    /// Begins on the first line.
    pub(super) fn new(first: u32, count: u32, semantics: Semantics) -> Lines {
        Lines {
            first,
            semantics,
            rows: vec![Row::default(); count.max(1) as usize],
            current: 0,
            previous: None,
            last: Reading::default(),
            entry: None,
        }
    }

    pub(super) fn current(&self) -> u32 {
        self.first + u32::try_from(self.current).unwrap_or_default()
    }

    /// Moves control from the present line, where `reading` was taken, to another.
    pub(super) fn go(&mut self, line: u32, reading: Reading) {
        self.leave(reading);
        self.set(line);
    }

    /// Sets the line that control is on, without leaving one.
    pub(super) fn set(&mut self, line: u32) {
        let index = line.checked_sub(self.first).map(|index| index as usize);
        if let Some(index) = index.filter(|&index| index < self.rows.len()) {
            self.current = index;
        }
    }

    /// Leaves the present line.
    pub(super) fn leave(&mut self, reading: Reading) {
        let before = match self.semantics {
            Semantics::Readings => self.last.bytes,
            // memory_profiler uses the highest reading so far of the line that was left before this one.
            Semantics::MemoryProfiler => self
                .previous
                .map_or(0, |previous| self.rows[previous].highest),
        };
        let row = &mut self.rows[self.current];
        row.increment += difference(reading.bytes, before);
        row.highest = row.highest.max(reading.bytes);
        row.occurrences += 1;
        row.allocations += reading.allocations.saturating_sub(self.last.allocations);
        self.previous = Some(self.current);
        self.last = reading;
        self.entry.get_or_insert(reading.bytes);
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the reading at the beginning of the call, which is the first line's first increment.
    pub(super) fn entry(&self) -> u64 {
        self.entry.unwrap_or(0)
    }

    /// Returns the highest of all readings.
    pub(super) fn highest(&self) -> u64 {
        self.rows.iter().map(|row| row.highest).max().unwrap_or(0)
    }
}

pub(super) fn difference(now: u64, before: u64) -> i64 {
    i64::try_from(now).unwrap_or(i64::MAX) - i64::try_from(before).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(bytes: u64) -> Reading {
        Reading {
            bytes,
            allocations: bytes / 10,
        }
    }

    fn walked(semantics: Semantics) -> Vec<(u64, i64, u64, u64)> {
        let mut lines = Lines::new(10, 4, semantics);
        for (line, bytes) in [(11, 100), (12, 150), (11, 120), (12, 170), (99, 130)] {
            lines.go(line, reading(bytes));
        }
        let row = |row: &Row| (row.highest, row.increment, row.occurrences, row.allocations);
        lines.rows().iter().map(row).collect()
    }

    #[test]
    fn increments_are_differences_to_the_reading_before() {
        assert_eq!(
            walked(Semantics::Readings),
            [
                (100, 100, 1, 10),
                (170, 50 + 50, 2, 5 + 5),
                (130, -30 - 40, 2, 0),
                (0, 0, 0, 0)
            ]
        );
    }

    #[test]
    fn theirs_are_differences_to_the_running_maximum_of_the_line_before() {
        assert_eq!(
            walked(Semantics::MemoryProfiler),
            [
                (100, 100, 1, 10),
                (170, (150 - 100) + (170 - 120), 2, 10),
                (130, (120 - 150) + (130 - 170), 2, 0),
                (0, 0, 0, 0)
            ]
        );
    }
}
