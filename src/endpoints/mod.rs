//! The HTTP face of the profiler: routes, OpenAPI description, Swagger UI, and the ways to have them answered: in an
//! axum app, in any tower stack, on a thread of their own.
//!
//! ```text
//! request ─▶ Mounted: prefix off; ours or the app's? ─▶ Door: untracked, token, origin ─▶ one handler a file
//! ```
//!
//! Nothing here blocks, and nothing that a request of ours allocates is recorded: every poll of a handler and of a
//! response body happens inside [`untracked`](crate::capture::untracked).

mod described;
mod docs;
mod door;
mod download;
mod error;
mod failures;
mod file_body;
mod global;
mod guard;
mod live;
mod mark;
mod mount;
mod mounted;
mod negotiate;
mod openapi;
mod outputs;
mod params;
mod patient;
mod precondition;
mod query;
mod range;
mod reply;
mod reports;
mod route;
mod schemas;
mod serve;
mod start;
mod status;
mod stop;
mod ticket;
mod timeline;
mod unrouted;
mod untracked;

pub use global::{mount, openapi, router, serve};
pub use mounted::{HeaprayLayer, MountFuture, Mounted, NoApp};
pub use serve::ServeError;
