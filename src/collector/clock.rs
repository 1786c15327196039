//! Converts time stamps to milliseconds since the start of the session.

use super::birth::Birth;

/// Rate and start of time stamps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clock {
    /// The time stamp at the start of the session.
    pub start_stamp: u64,
    /// Ticks in a millisecond; more than 0.
    pub ticks_per_ms: f64,
}

impl Clock {
    /// Returns the whole milliseconds from the start to `stamp`; 0 for a stamp before the start, or if the clock does not
    /// run.
    #[must_use]
    pub fn at_ms(&self, stamp: u64) -> u64 {
        if self.ticks_per_ms > 0.0 {
            (stamp.saturating_sub(self.start_stamp) as f64 / self.ticks_per_ms) as u64
        } else {
            0
        }
    }
}

/// Clock that divides at most once a millisecond, for any number of events in it.
#[derive(Debug)]
pub(super) struct CoarseClock {
    clock: Clock,
    now_ms: u64,
    now: Birth,
    /// The stamp from which on `now_ms` may be too small.
    until: u64,
}

impl CoarseClock {
    pub(super) fn new(clock: Clock) -> CoarseClock {
        CoarseClock {
            clock,
            now_ms: 0,
            now: Birth::at_ms(0),
            until: clock.start_stamp,
        }
    }

    /// Returns the milliseconds at `stamp`. A stamp before an earlier one gets the earlier one's result: time never goes
    /// back.
    #[inline]
    pub(super) fn at_ms(&mut self, stamp: u64) -> u64 {
        if stamp >= self.until {
            self.advance(stamp);
        }
        self.now_ms
    }

    /// Returns the birth of a block that is allocated at `stamp`.
    #[inline]
    pub(super) fn birth(&mut self, stamp: u64) -> Birth {
        self.at_ms(stamp);
        self.now
    }

    #[cold]
    fn advance(&mut self, stamp: u64) {
        self.now_ms = self.now_ms.max(self.clock.at_ms(stamp));
        self.now = Birth::at_ms(self.now_ms);
        let next = (self.now_ms + 1) as f64 * self.clock.ticks_per_ms;
        // Rounded up, so that the quotient at `until` has really reached the next millisecond. A floating-point error costs
        // another division there, not a wrong result.
        self.until = self.clock.start_stamp.saturating_add(next as u64);
    }

    /// Returns the underlying clock, for stamps in any order.
    pub(super) fn clock(&self) -> Clock {
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_clock_that_does_not_run_stays_at_zero() {
        for ticks_per_ms in [0.0, -1.0, f64::NAN] {
            let clock = Clock {
                start_stamp: 5,
                ticks_per_ms,
            };
            assert_eq!(clock.at_ms(u64::MAX), 0);
            assert_eq!(CoarseClock::new(clock).at_ms(u64::MAX), 0);
        }
    }

    proptest! {
        #[test]
        fn the_coarse_clock_agrees_with_the_division(
            start_stamp in 0..u64::MAX / 2,
            ticks_per_ms in 0.5f64..5e6,
            mut offsets in prop::collection::vec(0u64..1 << 45, 1..50),
        ) {
            let clock = Clock { start_stamp, ticks_per_ms };
            let mut coarse = CoarseClock::new(clock);
            offsets.sort_unstable();
            for offset in offsets {
                for near in 0..3 {
                    let stamp = start_stamp + offset + near;
                    prop_assert_eq!(coarse.at_ms(stamp), clock.at_ms(stamp));
                }
            }
        }

        #[test]
        fn the_coarse_clock_never_runs_back(stamps in prop::collection::vec(0u64..1 << 40, 1..50)) {
            let mut coarse = CoarseClock::new(Clock { start_stamp: 1 << 20, ticks_per_ms: 3000.0 });
            let mut last = 0;
            for stamp in stamps {
                let now = coarse.at_ms(stamp);
                prop_assert!(now >= last);
                last = now;
            }
        }
    }
}
