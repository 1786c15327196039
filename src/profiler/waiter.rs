//! Waiting for a result that one of the profiler's threads makes.

use std::sync::mpsc;

/// Something that waits for a `V`.
pub(crate) trait Wait<V>: Send {
    /// Passes the result on. Runs on the thread that made it, so it must do nothing else.
    fn give(self: Box<Self>, value: V);

    /// Returns whether nobody waits for the result any more.
    fn is_gone(&self) -> bool;
}

/// A waiter of any kind.
pub(crate) type Waiter<V> = Box<dyn Wait<V>>;

/// A thread that blocks until the result is there: it never stops waiting.
impl<V: Send> Wait<V> for mpsc::Sender<V> {
    fn give(self: Box<Self>, value: V) {
        let _ = self.send(value);
    }

    fn is_gone(&self) -> bool {
        false
    }
}

/// A request: it stops waiting when its client has gone.
#[cfg(feature = "http")]
impl<V: Send> Wait<V> for tokio::sync::oneshot::Sender<V> {
    fn give(self: Box<Self>, value: V) {
        // If it fails, the client has gone just now.
        let _ = self.send(value);
    }

    fn is_gone(&self) -> bool {
        self.is_closed()
    }
}
