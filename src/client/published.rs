//! Figures for status and metrics: written by the thread that sends, read by any.

use std::sync::{Mutex, PoisonError};

/// The place where they are published.
#[derive(Debug, Default)]
pub(crate) struct Published<T>(Mutex<T>);

impl<T: Clone> Published<T> {
    /// Returns the figures of now.
    pub(crate) fn read(&self) -> T {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Changes the figures. `change` must be short and must not panic.
    pub(crate) fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
