//! Growth of the heap: its size, its growth by a step, and its growth within a time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::condition::Condition;
use super::reason::{Reason, TriggerKind};
use super::settings::{Slope, WatchSettings};
use heapray_report::units::{duration, size};

/// Number of moments that are remembered within a slope's time.
const MOMENTS: u32 = 64;

/// State of the heap's growth.
#[derive(Debug, Default)]
pub(super) struct Growth {
    size: Condition,
    step: Condition,
    /// The smallest size since the last report of a step.
    base: Option<u64>,
    slope: Condition,
    history: VecDeque<(Instant, u64)>,
}

impl Growth {
    /// Checks `live` bytes. Returns the reason for a report, if one is due.
    pub(super) fn look(
        &mut self,
        settings: &WatchSettings,
        live: u64,
        now: Instant,
    ) -> Option<Reason> {
        // All three are checked, so that each is up to date.
        let (size, step, slope) = (
            self.look_at_size(settings, live, now),
            self.look_at_step(settings, live, now),
            self.look_at_slope(settings, live, now),
        );
        size.or(step).or(slope)
    }

    fn look_at_size(
        &mut self,
        settings: &WatchSettings,
        live: u64,
        now: Instant,
    ) -> Option<Reason> {
        let wanted = settings.size?;
        let over = live < wanted / 10 * 9;
        let fires = self.size.fires(live >= wanted, over, now, settings.pause);
        fires.then(|| Reason {
            kind: TriggerKind::Size,
            text: format!(
                "the heap has reached {} ({} are live)",
                size(wanted),
                size(live)
            ),
        })
    }

    fn look_at_step(
        &mut self,
        settings: &WatchSettings,
        live: u64,
        now: Instant,
    ) -> Option<Reason> {
        let wanted = settings.step?;
        let base = self.base.map_or(live, |base| base.min(live));
        self.base = Some(base);
        let grown = live - base;
        // Each step begins at the height of the last one.
        let fires = self.step.fires(grown >= wanted, true, now, settings.pause);
        fires.then(|| {
            self.base = Some(live);
            Reason {
                kind: TriggerKind::Step,
                text: format!(
                    "the heap has grown by {}, from {} to {}",
                    size(grown),
                    size(base),
                    size(live)
                ),
            }
        })
    }

    fn look_at_slope(
        &mut self,
        settings: &WatchSettings,
        live: u64,
        now: Instant,
    ) -> Option<Reason> {
        let Slope { bytes, within } = settings.slope?;
        let since = |at: Instant| now.saturating_duration_since(at);
        while self.history.len() > 1
            && self
                .history
                .get(1)
                .is_some_and(|one| since(one.0) >= within)
        {
            self.history.pop_front();
        }
        let apart = within / MOMENTS;
        if self
            .history
            .back()
            .is_none_or(|last| since(last.0) >= apart)
        {
            self.history.push_back((now, live));
        }
        let (at, before) = *self.history.front()?;
        // Before the time is over nothing is known: a service that starts up grows.
        let is_so = since(at) >= within && live.saturating_sub(before) >= bytes;
        let fires = self
            .slope
            .fires(is_so, !is_so, now, settings.pause.max(within));
        fires.then(|| {
            self.history.clear();
            Reason {
                kind: TriggerKind::Slope,
                text: format!(
                    "the heap has grown by {} within {}, to {}",
                    size(live - before),
                    duration(since(at).as_millis() as u64),
                    size(live)
                ),
            }
        })
    }
}

/// Returns the time from one check to the next, if growth within a time is checked.
pub(super) fn every(settings: &WatchSettings) -> Option<Duration> {
    settings.slope.map(|slope| slope.within / MOMENTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight_recorder::OomThreshold;

    fn settings() -> WatchSettings {
        WatchSettings {
            out_of_memory: false,
            threshold: OomThreshold::Usual,
            size: None,
            step: None,
            slope: None,
            pause: Duration::from_secs(1),
            sigusr2: false,
            root: "/".into(),
        }
    }

    /// Returns the seconds at which a report is due, for one reading a second.
    fn due_at(settings: &WatchSettings, readings: &[u64]) -> Vec<usize> {
        let (mut growth, start) = (Growth::default(), Instant::now());
        let seconds = readings.iter().enumerate();
        seconds
            .filter(|&(second, &live)| {
                let now = start + Duration::from_secs(second as u64);
                growth.look(settings, live, now).is_some()
            })
            .map(|(second, _)| second)
            .collect()
    }

    #[test]
    fn a_size_fires_when_it_is_reached_and_after_it_was_left_by_a_tenth() {
        let settings = WatchSettings {
            size: Some(100),
            ..settings()
        };
        assert_eq!(
            due_at(&settings, &[10, 99, 100, 150, 95, 100, 89, 100]),
            [2, 7]
        );
    }

    #[test]
    fn a_step_begins_where_the_last_one_ended_or_lower() {
        let settings = WatchSettings {
            step: Some(100),
            ..settings()
        };
        assert_eq!(
            due_at(&settings, &[500, 590, 600, 650, 699, 700, 20, 110, 120]),
            [2, 5, 8]
        );
    }

    #[test]
    fn a_slope_fires_when_its_time_is_over_and_not_at_a_start() {
        let settings = WatchSettings {
            slope: Some(Slope {
                bytes: 100,
                within: Duration::from_secs(10),
            }),
            ..settings()
        };
        let steady: Vec<u64> = (0..40).map(|second| second * 11).collect();
        assert_eq!(due_at(&settings, &steady), [10, 21, 32]);
        let slow: Vec<u64> = (0..100).map(|second| second * 9).collect();
        assert_eq!(due_at(&settings, &slow), [0; 0]);
        let mut up_and_down: Vec<u64> = (0..100).map(|second| second % 2 * 1000).collect();
        assert!(due_at(&settings, &up_and_down).len() <= 9);
        up_and_down.fill(1000);
        assert_eq!(due_at(&settings, &up_and_down), [0; 0]);
    }
}
