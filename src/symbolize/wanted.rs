//! Whether what is being made is still to be made.

use std::fmt;
use std::sync::Arc;

/// Asked now and then by what takes long. Where the answer is no, the rest is left out: the caller throws away what it gets.
#[derive(Clone, Default)]
pub(crate) struct Wanted(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Wanted {
    /// As long as `is_wanted` says so.
    pub(crate) fn while_it(is_wanted: impl Fn() -> bool + Send + Sync + 'static) -> Wanted {
        Wanted(Some(Arc::new(is_wanted)))
    }

    /// Whether to go on.
    pub(crate) fn still(&self) -> bool {
        self.0.as_ref().is_none_or(|is_wanted| is_wanted())
    }
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wanted")
    }
}
