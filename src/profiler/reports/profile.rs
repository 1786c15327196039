//! Profiles for a profile store: made from a view that the caller has, and given to it as bytes.

use std::sync::Arc;

use heapray_report::formats::Format;

use super::make::draft_of;
use super::making::{Input, Making};
use super::{Reports, or_panicked};
use crate::profiler::Error;
use crate::profiler::machine::View;
use crate::profiler::store::{OutputKey, OutputKind};
use crate::symbolize::Wanted;

impl Reports {
    /// Makes a profile of `view` for pprof, as scrapers get it, after what clients have asked for until now. Blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Output`] if it could not be made.
    pub(in crate::profiler) fn profile_blocking(
        self: &Arc<Reports>,
        view: View,
    ) -> Result<Vec<u8>, Error> {
        let reports = Arc::clone(self);
        self.output
            .run(move || or_panicked(|| reports.profile_now(view)))?
    }

    fn profile_now(&self, view: View) -> Result<Vec<u8>, Error> {
        let key = OutputKey::new(OutputKind::File(Format::Pprof));
        let mut making = Making::new(Input::Session { view, key }, &Wanted::default());
        let profile = draft_of(&mut making, key, false, || Ok(Vec::new()));
        profile.map_err(|failure| self.failed(failure))
    }
}
