//! Listeners of the profiler's own, which end with it.

use std::fmt;

use super::lock::{Lock, Rank};

/// Closes one listener, and returns when it is closed.
type Close = Box<dyn FnOnce() + Send>;

/// The listeners that are open.
pub(crate) struct Listeners {
    open: Lock<Vec<Close>>,
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").finish_non_exhaustive()
    }
}

impl Listeners {
    pub(super) fn new() -> Listeners {
        Listeners {
            open: Lock::new(Rank::Listeners, Vec::new()),
        }
    }

    /// Has `close` called when the profiler ends.
    pub(crate) fn add(&self, close: impl FnOnce() + Send + 'static) {
        self.open.lock().push(Box::new(close));
    }

    /// Closes every listener.
    pub(super) fn close(&self) {
        let open = std::mem::take(&mut *self.open.lock());
        for close in open {
            close();
        }
    }
}
