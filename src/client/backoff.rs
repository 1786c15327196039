//! The pause after a failure: twice as long each time, and not the same in two processes, so that a server that comes back
//! is not asked by all at once.

use std::time::Duration;

use crate::os::unique::unique;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);

/// Failures in a row.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Notes a failure. Returns the pause until the next try, which is at least `asked`, a wish of the server's, within
    /// reason.
    pub(crate) fn fail(&mut self, asked: Option<Duration>) -> Duration {
        let doubled = FIRST
            .saturating_mul(1 << self.failures.min(16))
            .min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        // From a half to the whole of it.
        let random = unique() % 1000;
        let pause = doubled / 2 + doubled / 2 * u32::try_from(random).unwrap_or(0) / 1000;
        pause.max(asked.unwrap_or_default().min(LONGEST))
    }

    /// Notes a success.
    pub(crate) fn succeed(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, FIRST, LONGEST};
    use std::time::Duration;

    #[test]
    fn pauses_double_up_to_five_minutes_and_differ() {
        let mut backoff = Backoff::default();
        let mut expected = FIRST;
        for _ in 0..40 {
            let pause = backoff.fail(None);
            assert!(pause >= expected / 2 && pause <= expected, "{pause:?}");
            expected = (expected * 2).min(LONGEST);
        }
        let all: std::collections::HashSet<Duration> =
            (0..20).map(|_| backoff.fail(None)).collect();
        assert!(all.len() > 5);
        backoff.succeed();
        assert!(backoff.fail(None) <= FIRST);
    }

    #[test]
    fn a_server_may_ask_for_a_longer_pause_but_not_for_an_endless_one() {
        let mut backoff = Backoff::default();
        let asked = Duration::from_secs(30);
        assert_eq!(backoff.fail(Some(asked)), asked);
        assert_eq!(backoff.fail(Some(Duration::MAX)), LONGEST);
    }
}
