//! A heap profiler that a long-running service carries inside itself.
//!
//! Set `MEMRAY_PROFILER=true`, and the service records every allocation from its first instruction on and answers `start`,
//! `stop`, `report`, `flamegraph` and `stats` over HTTP, beside its own routes. This needs no shell in the container, no
//! operator, and no rebuild. If the profiler is not enabled, nothing of it exists: no route, no thread, no hook.
//!
//! Reports have the file format of [memray](https://github.com/bloomberg/memray): `memray flamegraph`, `tree`, `table` and
//! `stats` from PyPI open them. The full engine is for Linux on x86-64 and AArch64 with glibc. Elsewhere the wrapper
//! [`Alloc`] records with a plain unwinder.
//!
//! As a user of heapray, your responsibilities are the following:
//!
//! - Call [`init`] (or a method of [`builder()`]) in the first line of `main`. Earlier allocations are not recorded.
//! - Build with debug information (`debug = 1`). Without it a report has no files and lines.
//! - Wrap the global allocator in [`Alloc`] if it is jemalloc or mimalloc, or if the program is linked statically.
//! - Call [`shutdown`] where the service ends. Otherwise the report of its last session is lost.
//! - Mind which clients can reach the endpoints: a report reveals much about a program, and recording costs speed. Set a
//!   token ([`Builder::token`]) if strangers can call, or layer a guard on top.
//!
//! In turn, heapray has the following responsibilities:
//!
//! - Allocations of the profiler, and of requests to it, do not show up in a report.
//! - Nothing slow runs on your async workers. Symbols, pages and files are made on threads of heapray's own.
//! - No failure of the profiler, not even a full disk, ends or blocks the service.
//! - Memory and disk space are bounded, however long the service runs ([`Builder::overhead_limit`],
//!   [`Builder::keep_bytes`]).
//! - Allocations that could not be recorded, or were lost, are counted, and each report says so.
//! - When memory is nearly used up, a report is written first ([`Builder::oom`], [`Builder::on_trigger`]).
//!
//! # Speed
//!
//! Heapray records quickly in the following ways:
//!
//! 1. A stopped profiler costs nothing (with [`Alloc`], one load per call). Recording changes the pointers through which a
//!    program calls `malloc`, and a stop restores the original pointers.
//! 2. The rules for unwinding are compiled when a library is loaded: a step from a frame to its caller is a table lookup.
//! 3. A thread keeps its last call stack. The next one is unwound only as far as it differs, and the rest is verified by
//!    comparing stack memory.
//! 4. A thread writes fixed-size events into a ring of its own: no lock, no allocation, no system call inside `malloc`.
//! 5. One collector thread owns all tables. Names are looked up when a report is made.
//! 6. Where that costs too much, [`Builder::sample`] records samples instead: light enough to leave on.
//!
//! The figures, beside those of other profilers, are in `docs/benchmarks.md`; the design is in `docs/how-it-works.md`.
//!
//! # Example
//!
//! An axum service:
//!
//! ```
//! use axum::{Router, routing::get};
//!
//! # #[cfg(feature = "http")] {
//! // The first line of `main`: earlier allocations are not recorded.
//! let profiler = heapray::init();
//!
//! let app = Router::new().route("/hello", get(|| async { "hello" }));
//! let app: Router = heapray::mount(app);
//! // axum::serve(listener, app).with_graceful_shutdown(…).await?;
//!
//! // The last line: the recorded session becomes a report.
//! profiler.shutdown()?;
//! # }
//! # Ok::<(), heapray::Error>(())
//! ```
//!
//! and in its `Cargo.toml`:
//!
//! ```toml
//! [profile.release]
//! debug = 1
//! ```
//!
//! A program without HTTP of its own has the routes served on a thread and a runtime that answer even while the program
//! hangs:
//!
//! ```
//! # #[cfg(feature = "http")] {
//! heapray::init();
//! heapray::serve("127.0.0.1:7001")?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Profiler::layer`] and [`Profiler::service`] do the same for any tower service, such as one on plain hyper
//! (`examples/plain_hyper.rs`); [`Profiler::router`] gives the bare routes; [`Profiler::mount_documented`] joins
//! our OpenAPI document with the service's own. Without the feature `http`, [`start`], [`stop`], [`status`],
//! [`report()`], [`flamegraph`] and [`stats`] do in code what the endpoints do.
//!
//! # Access
//!
//! A layer that is added last, after `mount`, guards every request, to service and profiler, with and without the prefix:
//!
//! ```
//! # #[cfg(feature = "http")] {
//! use axum::{Router, extract::Request, http::StatusCode, middleware, response::Response, routing::get};
//!
//! async fn guard(request: Request, next: middleware::Next) -> Result<Response, StatusCode> {
//!     let key = request.headers().get("x-api-key");
//!     if key.is_some_and(|key| key == "the key") {
//!         return Ok(next.run(request).await);
//!     }
//!     Err(StatusCode::UNAUTHORIZED)
//! }
//!
//! let app = Router::new().route("/hello", get(|| async { "hello" }));
//! let app: Router = heapray::mount(app).layer(middleware::from_fn(guard));
//! # }
//! ```
//!
//! With [`Profiler::layer`] the guard is outside of it; with plain hyper it is in the function that hyper is given; with
//! [`serve`] it is the token ([`Builder::token`]). A layer that was added to the app before `mount` does not see the
//! profiler's requests. Below the prefix there are only the profiler's own paths, so that a rule about the service's paths
//! cannot be bypassed there. With [`Builder::routes_below_prefix`] such a rule must be layered before and after.
//! [`Builder::hosts`] lists the host names under which a client without a token is answered.
//!
#![doc = include_str!("../docs/endpoints.md")]
//!
#![doc = include_str!("../docs/configuration.md")]
//!
//! # Single functions
//!
//! [`#[heapray::profile]`](profile) prints how each line of a function changed the memory, as Python's memory_profiler does;
//! with `metric = "heap"` it prints exactly what the call allocated and has not freed. [`scope()`] reports the same for any
//! part of a function, with the live memory at its end by call site. Both are explained in `docs/line-profile.md`.
//!
//! [`capture_scope`], [`capture_scope_async`] and [`CaptureScope`] write a report of a part of the program, with a
//! high-water mark of its own. The process may record meanwhile or not.
//!
//! # Versions
//!
//! Types of these crates are part of signatures, so a new major version of one is a new major version of heapray:
//!
//! - `axum` 0.8 ([`mount`], [`router`]), with `http`, `http-body` and `bytes` 1;
//! - `tokio` 1 ([`spawn`], [`spawn_blocking`]);
//! - `tower` 0.5, with `tower-layer` and `tower-service` 0.3 ([`HeaprayLayer`], [`Mounted`], [`memory_requests`]);
//! - `utoipa` 6 ([`openapi`], [`Profiler::mount_documented`]) and `serde` 1 (status types can be written as JSON);
//! - `prometheus-client` 0.25 ([`MetricsCollector`]);
//! - `tracing-subscriber` 0.3 ([`parallel_profile::TaskLayer`]).
//!
//! [`Format`], [`Measure`], [`Unit`], [`Version`] and [`AllocatorMemory`] are types of `heapray-report`, which is released
//! together with heapray under the same version. No other crate's types are used. The whole interface is listed in
//! `docs/public-api.txt`.
//!
//! # Features
//!
//! - `http` (default): [`mount`], [`router`], [`serve`] and everything else that answers requests. Without it there is no
//!   dependency on tokio or axum.
//! - `macros` (default): the attributes [`profile`](macro@profile), [`single_thread_profiler`] and [`parallel_profiler`]. Without it they leave a function as it is, and need no other crates.
//! - `parallel`: for [`parallel_profile`], pools of a size of their own, and [`parallel_profile::TaskLayer`], which makes
//!   tasks of `tracing` spans.
//! - `prometheus-client`: [`MetricsCollector`], for a service whose metrics are in a registry of that crate.
//! - `push`: profiles of the running session are pushed to Pyroscope, Parca or an OpenTelemetry collector
//!   ([`Builder::push`]). It brings an HTTP client with TLS.
//! - `store`: kept reports are copied to an object storage, such as S3 ([`Builder::store`]). It brings the same client, the
//!   crate `object_store`, and tokio.
//! - `openapi` (part of `swagger-ui`): the OpenAPI document at `/openapi.json`, [`openapi`], and
//!   [`Profiler::mount_documented`].
//! - `swagger-ui` (default): Swagger UI at `/docs/`.
//!
//! The README says how many crates, how much time and how many bytes they cost.
//!
//! The oldest Rust it builds with is 1.88.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod alloc;
mod announce;
#[cfg(feature = "store")]
mod bucket;
#[cfg(any(feature = "push", feature = "store"))]
mod client;
mod contexts;
#[cfg(feature = "http")]
mod endpoints;
mod flight_recorder;
mod helper;
mod hex;
mod metrics;
mod os;
mod profiler;
mod profiles;
#[cfg(feature = "push")]
mod push;

// For this repository's tests, benchmarks and command line. Not part of the public interface: it may change at any time.
#[doc(hidden)]
pub mod capture;
#[doc(hidden)]
pub mod collector;
#[doc(hidden)]
pub mod config;
#[doc(hidden)]
pub mod memory_log;
mod nearest;
#[doc(hidden)]
pub mod session;
#[doc(hidden)]
pub mod symbolize;

pub use alloc::Alloc;
#[cfg(feature = "http")]
pub use capture::trace::TraceContext;
pub use config::{ConfigError, MemoryChildren, MemoryMetric, MemoryRole, SymbolMode};
#[cfg(feature = "spans")]
pub use contexts::SpanContexts;
pub use contexts::{Context, ContextGuard, InContext, LabelKey, WithContext, context, inherit};
#[cfg(feature = "http")]
pub use contexts::{spawn, spawn_blocking};
#[cfg(feature = "http")]
#[doc(hidden)]
pub use endpoints::elsewhere;
#[cfg(feature = "openapi")]
pub use endpoints::openapi;
#[cfg(feature = "http")]
pub use endpoints::{
    ByRoute, ContextLayer, InContextFuture, InRequestContext, NameRequest, by_request, by_route,
};
#[cfg(feature = "http")]
pub use endpoints::{HeaprayLayer, MountFuture, Mounted, NoApp, ServeError, mount, router, serve};
pub use flight_recorder::{OomThreshold, TriggerKind};
#[cfg(feature = "macros")]
pub use heapray_macros::{parallel_profiler, profile, single_thread_profiler};
pub use heapray_report::formats::pprof::{
    Labels as PprofLabels, UnknownLabel as UnknownPprofLabel,
};
pub use heapray_report::formats::{Format, UnknownFormat};
pub use heapray_report::memray::Version;
pub use heapray_report::model::AllocatorMemory;
pub use heapray_report::views::{Measure, Unit};
#[cfg(feature = "http")]
pub use memory_log::{MemoryRequestFuture, MemoryRequests, MemoryRequestsLayer, memory_requests};
pub use memory_log::{MemorySpan, memory_span};
#[cfg(feature = "prometheus-client")]
pub use metrics::MetricsCollector;
pub use metrics::metrics_text;
pub use os::memory::allocator_memory;
pub use profiler::store::{Output, OutputKey, OutputKind, ReportId};
pub use profiler::{
    Blocks, Builder, CallSite, Confidence, DiskStatus, Error, InitError, KeptReport, LeakCandidate,
    Mark, OverheadStatus, Profiler, PushStatus, ReportStatus, SamplingStatus, State, Status,
    StoreStatus, Trigger, TriggerCause, builder, flamegraph, init, mark, profiler, report,
    shutdown, start, stats, status, stop, try_init,
};
pub use profiles::capture_scope::{
    CaptureScope, CaptureScopeError, CaptureScopeReport, capture_scope, capture_scope_async,
};
pub use profiles::line::print_profiles;
pub use profiles::scope::{Scope, ScopeUsage, scope};
pub use session::recover::{RecoverError, Recovered, recover};
pub use session::{SessionError, StartError};
pub use symbolize::{NameMode, ReportOptions, ThreadMode};

#[doc(hidden)]
pub use profiles::line as line_profile;
pub use profiles::{cpu as cpu_profile, parallel as parallel_profile};

/// Code that the attributes expand to. Not part of the public interface.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub use profiles::expanded as __private;

/// The example in the README.
#[cfg(all(doctest, feature = "http"))]
#[doc = include_str!("../README.md")]
struct Readme;
