//! Functions for a service with one profiler. Each calls the method of [`Profiler`] with the same name.

use std::net::{SocketAddr, ToSocketAddrs};

use axum::Router;

use super::ServeError;
#[cfg(doc)]
use crate::profiler::Profiler;
use crate::profiler::init;

/// Does what [`Profiler::mount`] does. Calls [`init`] first if the service has not.
pub fn mount(app: Router) -> Router {
    init().mount(app)
}

/// Returns what [`Profiler::router`] returns. Calls [`init`] first if the service has not.
pub fn router() -> Router {
    init().router()
}

/// Does what [`Profiler::serve`] does. Calls [`init`] first if the service has not.
///
/// # Errors
///
/// The same as [`Profiler::serve`].
pub fn serve(address: impl ToSocketAddrs) -> Result<Option<SocketAddr>, ServeError> {
    init().serve(address)
}

/// Returns what [`Profiler::openapi`] returns. Calls [`init`] first if the service has not.
#[cfg(feature = "openapi")]
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    init().openapi()
}
