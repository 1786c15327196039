//! Cancellation of long work whose result is not needed any more.

use std::fmt;
use std::sync::Arc;

/// A condition that long work checks now and then. If it is false, the work leaves out the rest: the caller discards the
/// result.
#[derive(Clone, Default)]
pub(crate) struct Wanted(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Wanted {
    /// Returns a `Wanted` that holds as long as `is_wanted` returns `true`.
    pub(crate) fn while_it(is_wanted: impl Fn() -> bool + Send + Sync + 'static) -> Wanted {
        Wanted(Some(Arc::new(is_wanted)))
    }

    /// Returns whether the work should go on.
    pub(crate) fn still(&self) -> bool {
        self.0.as_ref().is_none_or(|is_wanted| is_wanted())
    }
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wanted")
    }
}
