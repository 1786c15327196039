//! Any number of memory readings, in bounded memory.

use crate::model::Moment;

/// Largest number of readings. When it is reached, every second one is dropped, and from then on only every second one is
/// taken.
pub(crate) const MOST_MOMENTS: usize = 1 << 16;

#[derive(Debug)]
pub(super) struct Timeline {
    moments: Vec<Moment>,
    /// Number of readings of which one is kept.
    stride: u64,
    readings: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline {
            moments: Vec::new(),
            stride: 1,
            readings: 0,
        }
    }
}

impl Timeline {
    pub(super) fn add(&mut self, moment: Moment) {
        if self.readings.is_multiple_of(self.stride) {
            if self.moments.len() == MOST_MOMENTS {
                halve(&mut self.moments);
                self.stride *= 2;
            }
            if self.readings.is_multiple_of(self.stride) {
                self.moments.push(moment);
            }
        }
        self.readings += 1;
    }

    /// Returns whether there were no readings.
    pub(super) fn is_empty(&self) -> bool {
        self.moments.is_empty()
    }

    pub(super) fn into_moments(self) -> Vec<Moment> {
        self.moments
    }
}

/// Drops every second reading.
pub(crate) fn halve(moments: &mut Vec<Moment>) {
    let mut index = 0usize;
    moments.retain(|_| {
        index += 1;
        index % 2 == 1
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_week_of_readings_is_thinned_evenly() {
        let mut timeline = Timeline::default();
        for at_ms in 0..300_000 {
            timeline.add(Moment {
                at_ms,
                ..Moment::default()
            });
        }
        let moments = timeline.into_moments();
        assert!((MOST_MOMENTS / 2..=MOST_MOMENTS).contains(&moments.len()));
        assert!(
            moments
                .iter()
                .zip(0..)
                .all(|(moment, n)| moment.at_ms == n * 8)
        );
    }
}
