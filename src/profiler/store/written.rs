//! How many reports this process has written, and why, and when the last one was written.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::note::millis;
use crate::flight_recorder::TriggerKind;

/// Causes: that the session was stopped, and each trigger of the flight recorder.
const CAUSES: usize = 1 + TriggerKind::ALL.len();

/// Reports that this process has written, by cause.
#[derive(Debug, Default)]
pub(crate) struct WrittenReports([Written; CAUSES]);

#[derive(Debug, Default)]
struct Written {
    reports: AtomicU64,
    /// Milliseconds from the Unix epoch to the last one; 0 if there is none.
    last: AtomicU64,
}

/// Reports of one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReportsOfCause {
    /// What caused them; `None`: their sessions were stopped.
    pub(crate) cause: Option<TriggerKind>,
    pub(crate) reports: u64,
    /// When the last one was written, to the millisecond; also before this process began.
    pub(crate) last: Option<SystemTime>,
}

impl WrittenReports {
    pub(super) fn count(&self, cause: Option<TriggerKind>) {
        self.recall(cause, SystemTime::now());
        self.of(cause).reports.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes when a report was written, without counting it.
    pub(super) fn recall(&self, cause: Option<TriggerKind>, written: SystemTime) {
        self.of(cause)
            .last
            .fetch_max(millis(written), Ordering::Relaxed);
    }

    fn of(&self, cause: Option<TriggerKind>) -> &Written {
        let place = TriggerKind::ALL
            .iter()
            .position(|kind| Some(*kind) == cause);
        &self.0[place.map_or(0, |place| 1 + place)]
    }

    /// Returns the reports of each cause, also of those that have not occurred.
    pub(crate) fn by_cause(&self) -> impl Iterator<Item = ReportsOfCause> {
        let causes = std::iter::once(None).chain(TriggerKind::ALL.map(Some));
        causes.zip(&self.0).map(|(cause, written)| {
            let last = written.last.load(Ordering::Relaxed);
            ReportsOfCause {
                cause,
                reports: written.reports.load(Ordering::Relaxed),
                last: (last > 0).then(|| SystemTime::UNIX_EPOCH + Duration::from_millis(last)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_own_number() {
        let written = WrittenReports::default();
        assert!(
            written
                .by_cause()
                .all(|of| of.reports == 0 && of.last.is_none())
        );
        written.count(None);
        written.count(Some(TriggerKind::Slope));
        written.count(Some(TriggerKind::Slope));
        let counted: Vec<_> = written
            .by_cause()
            .filter(|of| of.reports > 0 && of.last.is_some())
            .map(|of| (of.cause, of.reports))
            .collect();
        assert_eq!(counted, [(None, 1), (Some(TriggerKind::Slope), 2)]);
    }

    #[test]
    fn a_report_of_before_has_a_time_and_is_not_counted() {
        let written = WrittenReports::default();
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        written.recall(Some(TriggerKind::Slope), at(20));
        written.recall(Some(TriggerKind::Slope), at(10));
        let of = |kind| written.by_cause().find(|of| of.cause == kind).unwrap();
        let slope = of(Some(TriggerKind::Slope));
        assert_eq!((slope.reports, slope.last), (0, Some(at(20))));
        assert_eq!(of(None).last, None);
    }
}
