//! A condition that is reported once, and again only after it was over for a while.

use std::time::{Duration, Instant};

/// ```text
/// armed ── condition holds, and the pause is over ──▶ reported ── condition is clearly over ──▶ armed
/// ```
#[derive(Debug)]
pub(super) struct Condition {
    armed: bool,
    reported: Option<Instant>,
}

impl Default for Condition {
    fn default() -> Condition {
        Condition {
            armed: true,
            reported: None,
        }
    }
}

impl Condition {
    /// Returns whether the condition is to be reported now. `over` is true if the condition is clearly over, by more than
    /// normal fluctuation.
    pub(super) fn fires(&mut self, holds: bool, over: bool, now: Instant, pause: Duration) -> bool {
        if over && !holds {
            self.armed = true;
        }
        let fires = holds && self.armed && self.is_rested(now, pause);
        if fires {
            self.armed = false;
            self.reported = Some(now);
        }
        fires
    }

    /// Returns whether the pause since the last report is over.
    pub(super) fn is_rested(&self, now: Instant, pause: Duration) -> bool {
        self.reported
            .is_none_or(|reported| now.saturating_duration_since(reported) >= pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_fires_again_only_after_it_was_over_and_the_pause_has_passed() {
        let mut condition = Condition::default();
        let (start, pause) = (Instant::now(), Duration::from_secs(60));
        let mut at = |seconds, holds, over| {
            condition.fires(holds, over, start + Duration::from_secs(seconds), pause)
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
