//! The pools that functions run on, and the lists of their threads.

use std::sync::{Arc, Mutex, PoisonError};

use super::Builder;
use super::monitor;
use crate::capture::arch;
use crate::capture::untracked;

/// Pool, or the reason why there is none.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) kind: Kind,
    /// Threads that are known to be workers.
    pub(super) members: Members,
    /// Description of the pool on the page.
    pub(super) text: String,
    pub(super) note: Option<String>,
}

/// Numbers and names of threads.
pub(super) type Members = Arc<Mutex<Vec<(u32, String)>>>;

pub(super) enum Kind {
    /// Every thread of the process may be a worker.
    Present,
    #[cfg(feature = "parallel")]
    Tokio(tokio::runtime::Runtime),
    #[cfg(feature = "parallel")]
    Rayon(rayon::ThreadPool),
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Present => "Present",
            #[cfg(feature = "parallel")]
            Kind::Tokio(_) => "Tokio",
            #[cfg(feature = "parallel")]
            Kind::Rayon(_) => "Rayon",
        })
    }
}

impl Pool {
    fn present(note: Option<String>) -> Pool {
        Pool {
            kind: Kind::Present,
            members: Members::default(),
            text: "all threads of the process".to_owned(),
            note,
        }
    }

    #[allow(dead_code)] // where no pool can be made
    fn of(kind: Kind, members: Members, name: &str, (workers, threads): (usize, usize)) -> Pool {
        let plural = |number: usize| if number == 1 { "" } else { "s" };
        Pool {
            kind,
            members,
            text: format!(
                "{name}, {workers} worker{} of {threads} thread{}",
                plural(workers),
                plural(threads)
            ),
            note: None,
        }
    }

    /// Makes a tokio runtime of the size that `options` want.
    pub(super) fn tokio(options: &Builder) -> Pool {
        let Some(size) = options.size() else {
            return Pool::present(None);
        };
        tokio_of(size).unwrap_or_else(Pool::without)
    }

    /// Makes a rayon pool of the size that `options` want.
    pub(super) fn rayon(options: &Builder) -> Pool {
        let Some(size) = options.size() else {
            return Pool::present(None);
        };
        rayon_of(size).unwrap_or_else(Pool::without)
    }

    fn without(reason: String) -> Pool {
        tracing::warn!(%reason, "heapray profiles on the present threads");
        Pool::present(Some(format!("Not on a pool of its own: {reason}.")))
    }

    /// Adds the calling thread to the pool's members.
    pub(super) fn join(members: &Members, name: impl FnOnce() -> String) {
        let _untracked = untracked::enter();
        let tid = arch::gettid();
        let mut members = members.lock().unwrap_or_else(PoisonError::into_inner);
        if members.iter().all(|(member, _)| *member != tid) {
            members.push((tid, name()));
        }
    }

    pub(super) fn join_here(&self) {
        Pool::join(&self.members, monitor::own_name);
    }
}

/// Returns the name of a pool's thread `number`: `worker-0`, or `worker-0.1` if workers have several threads.
#[allow(dead_code)] // where no pool can be made
fn thread_name(number: usize, (workers, threads): (usize, usize)) -> String {
    match (number / threads, number % threads) {
        (worker, _) if worker >= workers => format!("blocking-{}", number - workers * threads),
        (worker, _) if threads == 1 => format!("worker-{worker}"),
        (worker, thread) => format!("worker-{worker}.{thread}"),
    }
}

#[cfg(feature = "parallel")]
fn tokio_of(size: (usize, usize)) -> Result<Pool, String> {
    use std::sync::atomic::{AtomicUsize, Ordering};

    let members = Members::default();
    let (joined, next) = (Arc::clone(&members), AtomicUsize::new(0));
    let spare = super::span_layer::Spare::new();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(size.0 * size.1)
        .enable_all()
        .thread_name_fn(move || thread_name(next.fetch_add(1, Ordering::Relaxed), size))
        .on_thread_start(move || {
            Pool::join(&joined, monitor::own_name);
            stay(&spare);
        })
        .build();
    let runtime = runtime.map_err(|error| format!("a tokio runtime can't be made ({error})"))?;
    Ok(Pool::of(Kind::Tokio(runtime), members, "tokio", size))
}

#[cfg(feature = "parallel")]
fn rayon_of(size: (usize, usize)) -> Result<Pool, String> {
    let members = Members::default();
    let joined = Arc::clone(&members);
    let spare = super::span_layer::Spare::new();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(size.0 * size.1)
        .thread_name(move |number| thread_name(number, size))
        .start_handler(move |_| {
            Pool::join(&joined, monitor::own_name);
            stay(&spare);
        })
        .build();
    let pool = pool.map_err(|error| format!("a rayon pool can't be made ({error})"))?;
    Ok(Pool::of(Kind::Rayon(pool), members, "rayon", size))
}

#[cfg(not(feature = "parallel"))]
fn tokio_of(_size: (usize, usize)) -> Result<Pool, String> {
    Err(WITHOUT_FEATURE.to_owned())
}

#[cfg(not(feature = "parallel"))]
fn rayon_of(_size: (usize, usize)) -> Result<Pool, String> {
    Err(WITHOUT_FEATURE.to_owned())
}

#[cfg(not(feature = "parallel"))]
const WITHOUT_FEATURE: &str = "that needs heapray's feature parallel";

/// Receives the calling thread's spans until the thread ends, if no other subscriber does.
#[cfg(feature = "parallel")]
fn stay(spare: &super::span_layer::Spare) {
    use std::cell::Cell;
    use tracing::dispatcher::DefaultGuard;

    thread_local! {
        static STAYS: Cell<Option<DefaultGuard>> = const { Cell::new(None) };
    }
    STAYS.with(|stays| stays.set(spare.stay()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_named_by_worker() {
        let named =
            |size, count: usize| (0..count).map(|n| thread_name(n, size)).collect::<Vec<_>>();
        assert_eq!(named((2, 1), 3), ["worker-0", "worker-1", "blocking-0"]);
        let expected = [
            "worker-0.0",
            "worker-0.1",
            "worker-1.0",
            "worker-1.1",
            "blocking-0",
        ];
        assert_eq!(named((2, 2), 5), expected);
    }
}
