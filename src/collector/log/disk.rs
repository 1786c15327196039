//! How long the collector waits for the log's disk.
//!
//! While the collector waits, rings become full, and their threads wait too. A disk that is slower than the events would hold
//! the service to its own speed for as long as the session lasts. So the log is given up then; sums and stacks stay exact.

use std::time::{Duration, Instant};

use crate::capture::room::LONGEST_WAIT_MS;

/// Longest wait at once for which threads wait too. Longer, and they would lose events.
const AT_ONCE: Duration = Duration::from_millis(LONGEST_WAIT_MS / 2);
/// Longest wait at once while no thread waits; and the sum of those for which threads wait.
const LONGEST: Duration = Duration::from_secs(2);
/// Part of all time for which threads may wait besides: one of so many.
const PART: u32 = 10;

/// What is left of the time for which the disk may be waited for.
#[derive(Debug)]
pub(super) struct Patience {
    /// Time for which threads have waited, less their part of the time since.
    waited: Duration,
    until: Instant,
}

impl Patience {
    pub(super) fn new() -> Patience {
        Patience {
            waited: Duration::ZERO,
            until: Instant::now(),
        }
    }

    /// Begins a wait at `now`.
    pub(super) fn begin(&mut self, now: Instant) -> Wait<'_> {
        let allowed = (now - self.until) / PART;
        self.waited = self.waited.saturating_sub(allowed);
        self.until = now;
        Wait {
            patience: self,
            alone: Duration::ZERO,
            with_threads: Duration::ZERO,
        }
    }
}

/// One wait for the disk.
#[derive(Debug)]
pub(super) struct Wait<'p> {
    patience: &'p mut Patience,
    alone: Duration,
    with_threads: Duration,
}

impl Wait<'_> {
    /// Adds a part of the wait. `threads_wait` tells whether threads of the service wait meanwhile.
    ///
    /// # Errors
    /// The reason why there is no more waiting.
    pub(super) fn add(&mut self, time: Duration, threads_wait: bool) -> Result<(), String> {
        if threads_wait {
            self.with_threads += time;
            self.patience.waited += time;
        } else {
            self.alone += time;
        }
        let is_too_long =
            self.with_threads > AT_ONCE || self.patience.waited > LONGEST || self.alone > LONGEST;
        if is_too_long {
            return Err("its disk is too slow for the events".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_millis(50);
    const PAUSE: Duration = Duration::from_millis(1);

    /// Waits so many times for 50 ms, with pauses between the waits. Returns the number after which the disk is too slow.
    fn too_slow_after(waits: u32, pause_ms: u64) -> Option<u32> {
        let mut patience = Patience::new();
        let mut now = Instant::now();
        (1..=waits).find(|_| {
            now += WAIT + Duration::from_millis(pause_ms);
            patience.begin(now).add(WAIT, true).is_err()
        })
    }

    #[test]
    fn threads_may_wait_for_two_seconds_and_a_tenth_of_the_time() {
        assert_eq!(too_slow_after(1000, 0), Some(45));
        assert_eq!(too_slow_after(1000, 200), Some(80));
        assert_eq!(too_slow_after(1000, 450), None);
    }

    #[test]
    fn threads_wait_no_longer_at_once_than_they_keep_their_events() {
        let mut patience = Patience::new();
        let mut wait = patience.begin(Instant::now());
        wait.add(WAIT, true).unwrap();
        wait.add(WAIT * 30, false).unwrap();
        wait.add(WAIT, true).unwrap();
        wait.add(PAUSE, true).unwrap_err();
    }

    #[test]
    fn the_collector_does_not_wait_for_ever_if_no_thread_does() {
        let mut patience = Patience::new();
        let mut wait = patience.begin(Instant::now());
        wait.add(LONGEST, false).unwrap();
        wait.add(PAUSE, false).unwrap_err();
        patience.begin(Instant::now()).add(WAIT, true).unwrap();
    }
}
