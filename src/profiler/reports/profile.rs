//! Profiles that are neither kept nor shared: made from a view that the caller has, and given to it as bytes.

use std::sync::Arc;

use super::make::written_output;
use super::making::{Input, Making};
use super::{Reports, or_panicked};
use crate::profiler::Error;
use crate::profiler::machine::View;
use crate::profiler::store::OutputKey;
use crate::symbolize::Wanted;

impl Reports {
    /// Makes the output `key` of `view`, after what clients have asked for until now. Blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Output`] if it could not be made.
    pub(in crate::profiler) fn profile_blocking(
        self: &Arc<Reports>,
        view: View,
        key: OutputKey,
    ) -> Result<Vec<u8>, Error> {
        let reports = Arc::clone(self);
        self.output
            .run(move || or_panicked(|| reports.profile_now(view, key)))?
    }

    fn profile_now(&self, view: View, key: OutputKey) -> Result<Vec<u8>, Error> {
        let mut making = Making::new(Input::Session { view, key }, &Wanted::default());
        let profile = written_output(&mut making, key, false, || Ok(Vec::new()));
        profile.map_err(|failure| self.failed(failure))
    }
}
