//! What was made or checked a moment ago.

use std::collections::VecDeque;

use super::Origin;
use crate::profiler::lock::{Lock, LockGuard, Rank};
use crate::profiler::store::{Output, OutputKey, ReportId, Stored};

/// Outputs that have no name in the profiler's directory: a page that is asked for in pieces is made once.
#[derive(Debug)]
pub(super) struct RecentOutputs {
    outputs: Lock<VecDeque<(Origin, OutputKey, Output)>>,
}

/// Outputs without a name take disk space all the same: this many are remembered, none longer than [`LONGEST`].
const OUTPUTS: usize = 12;
const LONGEST: u64 = 32 << 20;

impl RecentOutputs {
    pub(super) fn new() -> RecentOutputs {
        RecentOutputs {
            outputs: Lock::new(Rank::RecentOutputs, VecDeque::new()),
        }
    }

    pub(super) fn find(&self, origin: Origin, key: OutputKey) -> Option<Output> {
        let outputs = self.outputs.lock();
        let found = outputs.iter().find(|(o, k, _)| (*o, *k) == (origin, key));
        found.map(|(_, _, output)| output.clone())
    }

    pub(super) fn remember(&self, origin: Origin, key: OutputKey, output: &Output) {
        if output.len() <= LONGEST {
            let mut outputs = self.outputs.lock();
            outputs.truncate(OUTPUTS - 1);
            outputs.push_front((origin, key, output.clone()));
        }
    }

    /// Forgets everything: others need the disk space.
    pub(super) fn make_room(&self) {
        self.outputs.lock().clear();
    }

    pub(super) fn forget(&self, id: ReportId) {
        let mut outputs = self.outputs.lock();
        outputs.retain(|(other, key, _)| {
            *other != Origin::Kept(id) && key.compared_with() != Some(id)
        });
    }
}

/// Kept reports whose bytes were compared with their checksum.
#[derive(Debug)]
pub(super) struct VerifiedReports {
    reports: Lock<VecDeque<(ReportId, Stored)>>,
}

const REPORTS: usize = 16;

impl VerifiedReports {
    pub(super) fn new() -> VerifiedReports {
        VerifiedReports {
            reports: Lock::new(Rank::VerifiedReports, VecDeque::new()),
        }
    }

    fn lock(&self) -> LockGuard<'_, VecDeque<(ReportId, Stored)>> {
        self.reports.lock()
    }

    pub(super) fn find(&self, id: ReportId) -> Option<Stored> {
        let reports = self.lock();
        let known = reports.iter().find(|(other, _)| *other == id);
        known.map(|(_, stored)| stored.clone())
    }

    pub(super) fn remember(&self, id: ReportId, stored: Stored) {
        let mut reports = self.lock();
        reports.retain(|(other, _)| *other != id);
        reports.truncate(REPORTS - 1);
        reports.push_front((id, stored));
    }

    pub(super) fn forget(&self, id: ReportId) {
        self.lock().retain(|(other, _)| *other != id);
    }
}
