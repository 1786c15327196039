//! The work of a session: how far it has come at each moment of its history, from 0 to 1.

use crate::model::Report;
use crate::views::intervals::duration_ms;

/// Below this part of the average rate of allocation, the time of a span counts less and less: an idle service makes no
/// progress.
const IDLE: f64 = 0.05;
/// Fewest spans of time, and fewest of them with work, about which anything can be said.
const FEWEST: usize = 8;
const FEWEST_ACTIVE: usize = 3;

/// Returns the bytes that the session of `report` had allocated, at the milliseconds since its start: at the start, at the
/// moments of the history, and at the end.
pub(crate) fn allocated_by_time(report: &Report) -> Vec<(u64, u64)> {
    let moments = report.history.moments.iter();
    let moments = moments.map(|moment| (moment.at_ms, moment.allocated.bytes));
    let mut known: Vec<(u64, u64)> = std::iter::once((0, 0)).chain(moments).collect();
    let (last_ms, last) = known[known.len() - 1];
    known.push((
        duration_ms(report).max(last_ms),
        report.totals.allocated.bytes.max(last),
    ));
    known
}

/// Work of a session. All curves of lines have a value for each of its bounds: the start, the moments of the history, and
/// the end.
#[derive(Debug)]
pub(super) struct Work {
    /// Milliseconds since the start at each bound.
    pub(super) at_ms: Vec<u64>,
    /// Work done until each bound, from 0 to 1: half of it is active time, half of it is allocated bytes.
    done: Vec<f64>,
}

impl Work {
    pub(super) fn of(report: &Report) -> Work {
        let (at_ms, allocated): (Vec<u64>, Vec<u64>) =
            allocated_by_time(report).into_iter().unzip();
        let steps = |curve: &[u64]| -> Vec<f64> {
            curve
                .windows(2)
                .map(|pair| pair[1].saturating_sub(pair[0]) as f64)
                .collect()
        };
        let (times, bytes) = (steps(&at_ms), steps(&allocated));
        let mean = bytes.iter().sum::<f64>() / times.iter().sum::<f64>().max(1.0);
        let active: Vec<f64> = times
            .iter()
            .zip(&bytes)
            .map(|(&time, &bytes)| time.min(bytes / (mean * IDLE).max(f64::MIN_POSITIVE)))
            .collect();
        let (active_sum, bytes_sum) = (active.iter().sum::<f64>(), bytes.iter().sum::<f64>());
        let mut done = vec![0.0];
        let mut sum = 0.0;
        for (active, bytes) in active.iter().zip(&bytes) {
            sum += active / active_sum.max(1.0) / 2.0 + bytes / bytes_sum.max(1.0) / 2.0;
            done.push(sum);
        }
        for done in &mut done {
            *done /= sum.max(f64::MIN_POSITIVE);
        }
        Work { at_ms, done }
    }

    pub(super) fn is_long_enough(&self) -> bool {
        let active = self.done.windows(2).filter(|pair| pair[1] > pair[0]);
        self.done.len() > FEWEST && active.count() >= FEWEST_ACTIVE
    }

    /// Returns the number of bounds.
    pub(super) fn bounds(&self) -> usize {
        self.done.len()
    }

    /// Returns the work done at bound `bound`.
    pub(super) fn at_bound(&self, bound: usize) -> f64 {
        self.done[bound]
    }

    /// Returns the value of `curve`, which has one for each bound, when `done` of the work was done.
    pub(super) fn value(&self, curve: &[f64], done: f64) -> f64 {
        let after = self
            .done
            .partition_point(|&at| at < done)
            .min(self.done.len() - 1);
        let Some(before) = after.checked_sub(1) else {
            return curve[0];
        };
        let (from, to) = (self.done[before], self.done[after]);
        let part = if to > from {
            (done - from) / (to - from)
        } else {
            1.0
        };
        curve[before] + (curve[after] - curve[before]) * part.clamp(0.0, 1.0)
    }

    /// Returns the milliseconds since the start at which `done` of the work was done.
    pub(super) fn time_ms(&self, done: f64) -> u64 {
        let at_ms: Vec<f64> = self.at_ms.iter().map(|&ms| ms as f64).collect();
        self.value(&at_ms, done) as u64
    }
}
