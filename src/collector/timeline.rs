//! Memory over time, in a buffer of fixed size for a session of any length.
//!
//! A row stands for a *step* of time, 10 ms at first. When all rows are used, neighbours are merged and the step doubles:
//! 8,192 rows hold 82 seconds at 10 ms, and a week at 82 seconds. A row has the maximum of each column in its step, so that
//! no spike is ever lost. Its moment is that of the reading with the largest heap.

use heapray_report::model::Moment;

const ROWS: usize = 8192;
const FIRST_STEP_MS: u64 = 10;

/// Memory over time; see the module.
#[derive(Debug)]
pub struct Timeline {
    rows: Vec<Moment>,
    limit: usize,
    step_ms: u64,
    /// The step of the last row.
    last_step: u64,
    /// The latest reading, unmerged.
    latest: Option<Moment>,
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline::with_rows(ROWS)
    }
}

impl Timeline {
    /// Makes a timeline of at most `limit` rows, at least 2.
    fn with_rows(limit: usize) -> Timeline {
        Timeline {
            rows: Vec::new(),
            limit: limit.max(2),
            step_ms: FIRST_STEP_MS,
            last_step: 0,
            latest: None,
        }
    }

    /// Adds a reading. One that is not later than the last belongs to the last row. Returns whether it began a new row.
    pub fn push(&mut self, reading: Moment) -> bool {
        let step = reading.at_ms / self.step_ms;
        self.latest = Some(reading);
        match self.rows.last_mut() {
            Some(last) if step <= self.last_step => {
                *last = larger(*last, reading);
                return false;
            }
            _ => {}
        }
        self.last_step = step;
        self.rows.push(reading);
        if self.rows.len() >= self.limit {
            self.double_step();
        }
        true
    }

    /// Returns the milliseconds from one row to the next. More frequent readings add nothing.
    #[must_use]
    pub fn step_ms(&self) -> u64 {
        self.step_ms
    }

    /// Returns the rows, oldest first, followed by the latest reading if the last row differs from it.
    #[must_use]
    pub fn rows(&self) -> Vec<Moment> {
        let mut rows = self.rows.clone();
        if let (Some(latest), Some(last)) = (self.latest, rows.last())
            && *last != latest
            && latest.at_ms > last.at_ms
        {
            rows.push(latest);
        }
        rows
    }

    /// Returns the bytes of memory of the rows.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (self.rows.capacity() * size_of::<Moment>()) as u64
    }

    /// Merges rows until half of them are free or each stands for a step of its own.
    fn double_step(&mut self) {
        while self.rows.len() >= self.limit && self.step_ms < u64::MAX {
            self.step_ms = self.step_ms.saturating_mul(2);
            let step_ms = self.step_ms;
            self.rows.dedup_by(|next, kept| {
                let same = next.at_ms / step_ms == kept.at_ms / step_ms;
                if same {
                    *kept = larger(*kept, *next);
                }
                same
            });
        }
        self.last_step = self.rows.last().map_or(0, |row| row.at_ms / self.step_ms);
    }
}

/// Merges two readings into one row.
fn larger(earlier: Moment, later: Moment) -> Moment {
    let at_ms = if later.heap > earlier.heap {
        later.at_ms.max(earlier.at_ms)
    } else {
        earlier.at_ms
    };
    Moment {
        at_ms,
        rss: earlier.rss.max(later.rss),
        heap: earlier.heap.max(later.heap),
        own: earlier.own.max(later.own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reading(at_ms: u64, heap: u64) -> Moment {
        Moment {
            at_ms,
            rss: heap / 2,
            heap,
            own: 7,
        }
    }

    #[test]
    fn a_week_fits() {
        let mut timeline = Timeline::default();
        let mut at_ms = 0;
        while at_ms < 7 * 24 * 3600 * 1000 {
            timeline.push(reading(at_ms, at_ms));
            at_ms += timeline.step_ms();
        }
        let rows = timeline.rows();
        assert!((ROWS / 2..=ROWS + 1).contains(&rows.len()));
        assert!(timeline.memory_bytes() <= 1 << 19);
        assert!(rows[1].at_ms - rows[0].at_ms <= 200_000);
    }

    #[test]
    fn the_latest_reading_is_shown_as_it_was() {
        let mut timeline = Timeline::default();
        timeline.push(reading(1, 100));
        timeline.push(reading(2, 10));
        assert_eq!(timeline.rows(), [reading(1, 100), reading(2, 10)]);
    }

    proptest! {
        #[test]
        fn nothing_that_stands_out_is_lost(
            limit in 2usize..20,
            gaps in prop::collection::vec((0u64..100, 0u64..1000), 1..150),
        ) {
            let mut timeline = Timeline::with_rows(limit);
            let (mut at_ms, mut all) = (0, Vec::new());
            for (gap, heap) in gaps {
                at_ms += gap;
                all.push(reading(at_ms, heap));
                timeline.push(reading(at_ms, heap));
                prop_assert!(timeline.rows.len() < limit.max(2));
                let max = |rows: &[Moment], column: fn(&Moment) -> u64| rows.iter().map(column).max();
                let rows = timeline.rows();
                prop_assert_eq!(max(&rows, |row| row.heap), max(&all, |row| row.heap));
                prop_assert_eq!(max(&rows, |row| row.rss), max(&all, |row| row.rss));
                prop_assert!(rows.is_sorted_by(|a, b| a.at_ms < b.at_ms));
                prop_assert_eq!(rows.last().map(|row| row.at_ms >= at_ms.saturating_sub(timeline.step_ms())), Some(true));
                // Every step in which there was a reading has its row.
                let step = |row: &Moment| row.at_ms / timeline.step_ms();
                prop_assert!(all.iter().all(|one| rows.iter().any(|row| step(row) == step(one))));
                // The largest heap keeps the moment of one of the readings that had it.
                let top = rows.iter().max_by_key(|row| row.heap).unwrap();
                prop_assert!(all.iter().any(|row| row.heap == top.heap && row.at_ms == top.at_ms));
            }
        }
    }
}
