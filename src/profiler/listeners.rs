//! Listeners of the profiler's own, which end with it.

use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Closes one listener, and returns when it is closed.
type Close = Box<dyn FnOnce() + Send>;

/// The listeners that are open.
#[derive(Default)]
pub(crate) struct Listeners {
    open: Mutex<Vec<Close>>,
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").finish_non_exhaustive()
    }
}

impl Listeners {
    /// Has `close` called when the profiler ends.
    pub(crate) fn add(&self, close: impl FnOnce() + Send + 'static) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push(Box::new(close));
    }

    /// Closes every listener.
    pub(super) fn close(&self) {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        for close in open {
            close();
        }
    }
}
