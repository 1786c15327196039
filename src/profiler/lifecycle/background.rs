//! The session in the background, with `MEMRAY_PROFILER_CONTINUOUS`: it runs whenever no other does, and samples, so that it can
//! always run. Metrics, profiles and the live page are of it; a report is of it until somebody asks for a session.

use std::sync::Arc;

use super::{Lifecycle, Wish};
use crate::profiler::Error;
use crate::profiler::machine::View;
use heapray_report::error_chain;

/// Bytes between two of its samples, on average: what Go's profiler and jemalloc's have.
const SAMPLE: u64 = 512 << 10;

impl Lifecycle {
    /// Begins a session in the background, unless a session runs.
    ///
    /// # Errors
    ///
    /// [`Error::Directory`] or [`Error::Start`].
    pub(in crate::profiler) fn start_in_background_blocking(
        self: &Arc<Lifecycle>,
    ) -> Result<(), Error> {
        let lifecycle = Arc::clone(self);
        self.control
            .run(move || match lifecycle.machine.running() {
                Some(_) => Ok(()),
                None => lifecycle.begin(SAMPLE, Wish::Background),
            })?
    }

    /// Ends the session in the background, if there is one, with a last profile for the store, but without a report.
    pub(super) fn end_background(&self) {
        let Some((number, session)) = self.machine.end_background() else {
            return;
        };
        self.flight.release_disk();
        match session.stop() {
            Ok(last) => self.remember(View::new(number, last)),
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), "the session in the background was lost")
            }
        }
    }

    /// Begins a session in the background if there is to be one, now that no other runs; or else notes that none runs.
    pub(super) fn fall_back(self: &Arc<Lifecycle>) {
        self.machine.stopped();
        if !self.config.continuous || self.reports.is_ending() {
            return;
        }
        if let Err(error) = self.begin(SAMPLE, Wish::Background) {
            tracing::error!(error = %error_chain(&error), "recording in the background did not start");
            self.machine.note_trouble(&error);
        }
    }
}
