//! The parallel work of a function, on one page: which task ran on which worker thread when, CPU and memory over time, time
//! by function, and allocations by worker and by call site.
//!
//! ```
//! use heapray::parallel_profile::{builder, task};
//!
//! # let page = std::env::temp_dir().join(format!("heapray-doc-{}.html", std::process::id()));
//! let sum: u64 = builder("sums").report_name(&page).run(|| {
//!     std::thread::scope(|scope| {
//!         let parts: Vec<_> = (0..4)
//!             .map(|part| {
//!                 scope.spawn(move || {
//!                     let _task = task("sum a part");
//!                     (part * 1000..(part + 1) * 1000).sum::<u64>()
//!                 })
//!             })
//!             .collect();
//!         parts.into_iter().map(|part| part.join().expect("no part panics")).sum()
//!     })
//! });
//! # assert_eq!(sum, 7_998_000);
//! # std::fs::remove_file(page)?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The attribute [`parallel_profiler`](crate::parallel_profiler) does this for each call of a function.
//!
//! # Workers
//!
//! Without a size, every thread of the process is a worker. With [`Builder::n_workers`], a future runs where it is awaited,
//! and the tasks that it spawns (`tokio::spawn`, `spawn_blocking`) run on a tokio runtime of that size, which ends with it:
//! unfinished tasks are cancelled. A plain function runs on a rayon pool of that size ([`Builder::run_on_rayon`]). Both need
//! the feature `parallel`. Without the feature the size is ignored, and the page says so.
//!
//! # Tasks
//!
//! With the feature `parallel`, add [`TaskLayer`] to the service's `tracing` subscriber: each span is a task, and each
//! period in which it is entered is drawn. If no subscriber is installed, the pool's threads and the function itself get one
//! that has only this layer. [`task`] names a task by hand. The function itself, or each poll of it, is a task as well.
//!
//! # Bounds
//!
//! One function is profiled at a time, since workers and tasks belong to the process. A function that begins while another
//! is profiled runs without a profile. A page keeps 500,000 tasks and 2,000 moments. Nothing fails: a missing part is noted
//! on the page or logged, and the function's result, its errors and its panics stay its own.

mod allocations;
mod monitor;
mod open;
mod options;
mod pool;
mod profile;
mod report;
#[cfg(feature = "parallel")]
mod span_layer;
mod tasks;

#[cfg(feature = "macros")]
pub(crate) mod attribute;

pub use options::{Builder, builder};
pub use profile::ParallelProfile;
#[cfg(feature = "parallel")]
pub use span_layer::TaskLayer;
pub use tasks::{Task, task};
