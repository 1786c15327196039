//! Blocking work that can be awaited on any executor.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use crate::capture::untracked;

/// Result of the thread, or the waker of the task that waits for it.
enum Slot<T> {
    Empty(Option<Waker>),
    Made(T),
}

/// Does `work` on a separate thread, or on the calling one if no thread can be started.
pub(super) fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = T> + Send {
    let _untracked = untracked::enter();
    let slot = Arc::new(Mutex::new(Slot::Empty(None)));
    let put = |slot: &Mutex<Slot<T>>, made: T| {
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Slot::Empty(Some(waker)) = std::mem::replace(&mut *slot, Slot::Made(made)) {
            waker.wake();
        }
    };
    // Shared, so that the work still exists if no thread can be started.
    let work = Arc::new(Mutex::new(Some(work)));
    let take = |work: &Mutex<Option<_>>| {
        let mut work = work.lock().unwrap_or_else(PoisonError::into_inner);
        work.take()
    };
    let (its_slot, its_work) = (Arc::clone(&slot), Arc::clone(&work));
    let thread = std::thread::Builder::new().name("heapray-scope".into());
    let spawned = thread.spawn(move || {
        untracked::for_good();
        if let Some(work) = take(&its_work) {
            put(&its_slot, work());
        }
    });
    if spawned.is_err()
        && let Some(work) = take(&work)
    {
        put(&slot, work());
    }
    poll_fn(move |context| {
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *slot, Slot::Empty(Some(context.waker().clone()))) {
            Slot::Made(made) => Poll::Ready(made),
            Slot::Empty(_) => Poll::Pending,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::run;
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake};

    struct Unpark(std::thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    #[test]
    fn what_a_thread_has_made_comes_back() {
        let waker = Arc::new(Unpark(std::thread::current())).into();
        let mut work = pin!(run(|| 7));
        let made = loop {
            match work.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(made) => break made,
                Poll::Pending => std::thread::park(),
            }
        };
        assert_eq!(made, 7);
    }
}
