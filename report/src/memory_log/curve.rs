//! Readings over time in bounded memory: neighbours are joined to the larger of them, so that no spike is lost.

use super::Reading;

/// Curve with a limited number of readings.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    rows: Vec<Reading>,
    most: usize,
    /// Seconds of a row; 0 while every reading is kept.
    step: f64,
    latest: Option<Reading>,
}

impl Curve {
    /// Makes a curve of at most `most` readings, at least 2, and the latest one.
    #[must_use]
    pub fn new(most: usize) -> Curve {
        Curve {
            rows: Vec::new(),
            most: most.max(2),
            step: 0.0,
            latest: None,
        }
    }

    /// Adds a reading.
    pub fn push(&mut self, reading: Reading) {
        self.latest = Some(reading);
        match self.rows.last_mut() {
            Some(last) if self.step > 0.0 && same(*last, reading, self.step) => {
                *last = larger(*last, reading);
            }
            _ => self.rows.push(reading),
        }
        if self.rows.len() >= self.most {
            self.coarsen();
        }
    }

    /// Returns the latest reading.
    #[must_use]
    pub fn latest(&self) -> Option<Reading> {
        self.latest
    }

    /// Returns the rows, oldest first. The last one is the latest reading, unchanged.
    #[must_use]
    pub fn into_rows(self) -> Vec<Reading> {
        let mut rows = self.rows;
        if let Some(latest) = self.latest
            && rows.last() != Some(&latest)
        {
            rows.push(latest);
        }
        rows
    }

    fn coarsen(&mut self) {
        let ends = self.rows.first().zip(self.rows.last());
        let span = ends.map_or(0.0, |(first, last)| last.at - first.at);
        self.step = (self.step * 2.0).max(2.0 * span / self.most as f64);
        let step = self.step;
        self.rows.dedup_by(|next, kept| {
            let one = same(*kept, *next, step);
            if one {
                *kept = larger(*kept, *next);
            }
            one
        });
        // If the clock jumps back and forth, neighbours never share a step. Then halve the rows by number.
        if self.rows.len() >= self.most {
            let halves = self.rows.chunks(2);
            let half = |pair: &[Reading]| pair.iter().copied().reduce(larger);
            self.rows = halves.filter_map(half).collect();
        }
    }
}

fn same(one: Reading, two: Reading, step: f64) -> bool {
    (one.at / step).floor() == (two.at / step).floor()
}

fn larger(one: Reading, two: Reading) -> Reading {
    if two.mib > one.mib { two } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_bounded_ends_where_it_ended_and_keeps_its_peak(
            readings in prop::collection::vec((0u32..1000, -1i32..50), 1..600), most in 2usize..40
        ) {
            let mut curve = Curve::new(most);
            let (mut at, mut all) = (0.0, Vec::new());
            for (mib, gap) in readings {
                at += f64::from(gap);
                let reading = Reading { mib: f64::from(mib), at };
                curve.push(reading);
                all.push(reading);
            }
            let rows = curve.into_rows();
            prop_assert!(rows.len() <= most + 1, "{} rows", rows.len());
            prop_assert_eq!(rows.last(), all.last());
            let peak = |rows: &[Reading]| rows.iter().map(|row| row.mib).fold(0.0, f64::max);
            prop_assert_eq!(peak(&rows), peak(&all));
            if all.len() < most {
                prop_assert_eq!(rows, all);
            }
        }
    }
}
