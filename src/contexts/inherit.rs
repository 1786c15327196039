//! Work on other threads that stays in the context of the thread that starts it.

use super::Context;
#[cfg(feature = "http")]
use super::InContext;

/// Returns a closure that calls `work` in the context that the calling thread is in now. For threads, and for pools such as
/// rayon's.
///
/// ```
/// let tenant = heapray::context([("tenant", "acme")]);
/// let _guard = tenant.enter();
/// let thread = std::thread::spawn(heapray::inherit(heapray::Context::current));
/// assert_eq!(thread.join().unwrap(), tenant);
/// ```
pub fn inherit<R>(work: impl FnOnce() -> R) -> impl FnOnce() -> R {
    let context = Context::current();
    move || context.run(work)
}

/// Does what `tokio::spawn` does. The task is in the context that the calling thread is in now, whichever thread polls it.
///
/// # Panics
/// If it is called outside of a tokio runtime, as `tokio::spawn`.
#[cfg(feature = "http")]
#[track_caller]
pub fn spawn<F>(future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    tokio::spawn(future.in_current_context())
}

/// Does what `tokio::task::spawn_blocking` does, in the context that the calling thread is in now.
///
/// # Panics
/// If it is called outside of a tokio runtime, as `tokio::task::spawn_blocking`.
#[cfg(feature = "http")]
#[track_caller]
pub fn spawn_blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> tokio::task::JoinHandle<R> {
    tokio::task::spawn_blocking(inherit(work))
}
