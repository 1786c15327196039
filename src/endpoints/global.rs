//! The ways in for a service with one profiler: each as the method of [`Profiler`] of its name.

use std::net::{SocketAddr, ToSocketAddrs};

use axum::Router;

use super::ServeError;
#[cfg(doc)]
use crate::profiler::Profiler;
use crate::profiler::init;

/// Does what [`Profiler::mount`] does, after [`init`] where nobody called it.
pub fn mount(app: Router) -> Router {
    init().mount(app)
}

/// What [`Profiler::router`] gives, after [`init`] where nobody called it.
pub fn router() -> Router {
    init().router()
}

/// Does what [`Profiler::serve`] does, after [`init`] where nobody called it.
///
/// # Errors
///
/// Those of [`Profiler::serve`].
pub fn serve(address: impl ToSocketAddrs) -> Result<Option<SocketAddr>, ServeError> {
    init().serve(address)
}

/// What [`Profiler::openapi`] gives, after [`init`] where nobody called it.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    init().openapi()
}
