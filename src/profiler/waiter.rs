//! Those who wait for what one of the profiler's threads makes.

use std::sync::mpsc;

/// One who waits for a `V`.
pub(crate) trait Wait<V>: Send {
    /// Hands the result on. Runs on the thread that made it, so it does nothing else.
    fn give(self: Box<Self>, value: V);

    /// Whether nobody is there any more to take the result.
    fn is_gone(&self) -> bool;
}

/// Somebody who waits.
pub(crate) type Waiter<V> = Box<dyn Wait<V>>;

/// A thread that blocks until the result is there: it never goes.
impl<V: Send> Wait<V> for mpsc::Sender<V> {
    fn give(self: Box<Self>, value: V) {
        let _ = self.send(value);
    }

    fn is_gone(&self) -> bool {
        false
    }
}

/// A request: gone when its client is.
#[cfg(feature = "http")]
impl<V: Send> Wait<V> for tokio::sync::oneshot::Sender<V> {
    fn give(self: Box<Self>, value: V) {
        // The client has gone just now: nobody needs it.
        let _ = self.send(value);
    }

    fn is_gone(&self) -> bool {
        self.is_closed()
    }
}
