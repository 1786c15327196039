//! A bucket of an object storage, and what is put into it.
//!
//! ```text
//! profiler::storing ── a report and its note ──▶ Bucket ──▶ object_store ──▶ HttpClient ──▶ the storage
//!        └── Published<StoreCounts> ──▶ status, metrics
//! ```
//!
//! All of it runs on one thread of the profiler's own, and blocks there. The crate `object_store` speaks to the storages and
//! reads their variables. Its requests are made by the HTTP client that pushes profiles, too: a service gets one client, with
//! one set-up of TLS.

mod figures;
mod http;
mod object;
mod put;

pub(crate) use figures::StoreCounts;
pub(crate) use object::ObjectName;
pub(crate) use put::{Bucket, BucketError, Content};
