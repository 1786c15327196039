//! An optional `FUNC` line for each HTTP request.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::extract::MatchedPath;
use axum::http::Request;
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::span::Span;
use crate::capture::untracked;

/// Returns a layer that marks each request in the memory log, from its arrival until there is a response (whose body may
/// still be on its way) or the client has gone. If no memory log is written, it costs one load per request.
///
/// A line's name is method and route, `GET:/users/{id}`. Dots are written as `%2E`, since `mprof` cuts its labels at dots.
/// Add the layer to an axum router after its routes. Otherwise the route is not known, and each part of the path with a
/// digit in it is written as `{}`. Requests that run at the same time have different levels.
///
/// ```
/// use axum::{Router, routing::get};
///
/// let app = Router::new()
///     .route("/users/{id}", get(|| async { "a user" }))
///     .layer(heapray::memory_requests());
/// let app: Router = heapray::mount(app);
/// ```
#[must_use]
pub fn memory_requests() -> MemoryRequestsLayer {
    MemoryRequestsLayer(())
}

/// Layer of [`memory_requests`].
#[derive(Debug, Clone, Copy)]
pub struct MemoryRequestsLayer(());

/// Service whose requests are marked. See [`memory_requests`].
#[derive(Debug, Clone, Copy)]
pub struct MemoryRequests<S>(S);

impl<S> Layer<S> for MemoryRequestsLayer {
    type Service = MemoryRequests<S>;

    fn layer(&self, inner: S) -> MemoryRequests<S> {
        MemoryRequests(inner)
    }
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for MemoryRequests<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = MemoryRequestFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let span = Span::request(|| name(&request));
        let inner = match &span {
            Some(span) => span.around(|| self.0.call(request)),
            None => self.0.call(request),
        };
        MemoryRequestFuture { inner, span }
    }
}

pin_project! {
    /// Answer of a service whose requests are marked.
    pub struct MemoryRequestFuture<F> {
        #[pin]
        inner: F,
        span: Option<Span>,
    }
}

impl<F> std::fmt::Debug for MemoryRequestFuture<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryRequestFuture")
            .finish_non_exhaustive()
    }
}

impl<F: Future> Future for MemoryRequestFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(span) = this.span else {
            return this.inner.poll(context);
        };
        let polled = span.around(|| this.inner.poll(context));
        if polled.is_ready() {
            *this.span = None;
        }
        polled
    }
}

fn name<B>(request: &Request<B>) -> String {
    let _untracked = untracked::enter();
    let method = request.method();
    let route = match request.extensions().get::<MatchedPath>() {
        Some(route) => route.as_str().to_owned(),
        None => shape(request.uri().path()),
    };
    format!("{method}:{}", route.replace('.', "%2E"))
}

/// Returns a path with `{}` for each part that looks like a number, a date or a key. Otherwise there would be too many
/// names.
fn shape(path: &str) -> String {
    let part = |part: &str| {
        let varies = part.contains(|c: char| c.is_ascii_digit()) || part.len() > 64;
        if varies {
            "{}".to_owned()
        } else {
            part.to_owned()
        }
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_route_what_varies_is_left_out() {
        for (path, name_of) in [
            ("/", "GET:/"),
            ("/users/17/orders", "GET:/users/{}/orders"),
            ("/f/9ad3-x.json", "GET:/f/{}"),
            ("/openapi.json", "GET:/openapi%2Ejson"),
        ] {
            let request = Request::builder().uri(path).body(()).unwrap();
            assert_eq!(name(&request), name_of);
        }
    }
}
