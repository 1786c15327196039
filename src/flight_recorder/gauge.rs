//! A condition that is reported once, and again only after it was over for a while.

use std::time::{Duration, Instant};

/// ```text
/// armed ── condition holds, and the pause is over ──▶ reported ── condition is clearly over ──▶ armed
/// ```
#[derive(Debug)]
pub(super) struct Gauge {
    armed: bool,
    told: Option<Instant>,
}

impl Default for Gauge {
    fn default() -> Gauge {
        Gauge {
            armed: true,
            told: None,
        }
    }
}

impl Gauge {
    /// Returns whether the condition is to be reported now. `over` is true if the condition is clearly over, by more than
    /// normal fluctuation.
    pub(super) fn tells(&mut self, is_so: bool, over: bool, now: Instant, pause: Duration) -> bool {
        if over && !is_so {
            self.armed = true;
        }
        let tells = is_so && self.armed && self.is_rested(now, pause);
        if tells {
            self.armed = false;
            self.told = Some(now);
        }
        tells
    }

    /// Returns whether the pause since the last report is over.
    pub(super) fn is_rested(&self, now: Instant, pause: Duration) -> bool {
        self.told
            .is_none_or(|told| now.saturating_duration_since(told) >= pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_again_only_after_it_was_over_and_the_pause_has_passed() {
        let mut gauge = Gauge::default();
        let (start, pause) = (Instant::now(), Duration::from_secs(60));
        let mut at = |seconds, is_so, over| {
            gauge.tells(is_so, over, start + Duration::from_secs(seconds), pause)
        };
        assert!(at(0, true, false));
        assert!(!at(100, true, false), "it is so all the time");
        assert!(!at(101, false, false), "a little better");
        assert!(!at(102, true, false));
        assert!(!at(103, false, true), "over");
        assert!(at(104, true, false));
        assert!(!at(105, false, true));
        assert!(!at(106, true, false), "too soon");
        assert!(at(164, true, false), "and so it is still");
    }
}
