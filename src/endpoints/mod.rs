//! The HTTP interface of the profiler: routes, OpenAPI description and Swagger UI. An axum app, any tower stack or a thread
//! of their own can serve the routes.
//!
//! ```text
//! request ─▶ Mounted: remove the prefix; ours or the app's? ─▶ Api: untracked, token, origin ─▶ one handler a file
//! ```
//!
//! Nothing here blocks. The allocations of our own requests are not recorded: every poll of a handler and of a response body
//! happens inside [`untracked`](crate::capture::untracked).

mod api;
mod by_request;
mod debug_pprof;
mod docs;
mod download;
pub mod elsewhere;
mod error;
mod file_body;
mod global;
mod guard;
mod live;
mod mark;
mod metrics;
mod mount;
mod mounted;
mod negotiate;
#[cfg(feature = "openapi")]
mod openapi;
mod outputs;
mod params;
mod precondition;
mod query;
mod range;
mod reply;
mod reports;
mod route;
mod serve;
mod stall_timeout;
mod start;
mod status;
mod stop;
mod ticket;
mod timeline;
mod unrouted;
mod untracked;

pub use by_request::{
    ByRoute, ContextLayer, InContextFuture, InRequestContext, NameRequest, by_request, by_route,
};
#[cfg(feature = "openapi")]
pub use global::openapi;
pub use global::{mount, router, serve};
pub use mounted::{HeaprayLayer, MountFuture, Mounted, NoApp};
pub use serve::ServeError;
